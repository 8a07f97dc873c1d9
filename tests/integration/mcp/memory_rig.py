"""Sessions that call the memory tools, over the stores as the service has them, in a sealed home."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import jsonschema

from agent_bridge import projects
from agent_bridge.config import Settings
from agent_bridge.daemon.mcp_memory import ServiceMemory
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.call import Call, Session
from agent_bridge.mcp.hello import Hello
from agent_bridge.mcp.memory_tools import TOOLS
from agent_bridge.mcp.tool import ANSWER_BYTES, Answer
from agent_bridge.memory.store import Store

BY_NAME = {tool.name: tool for tool in TOOLS}


class Rig:
    """The service's stores, and a loop for the tools. Ends with the `with` block."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.memory = ServiceMemory(Settings())
        self.runner = asyncio.Runner()

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.close()
        self.runner.close()

    def repository(self, name: str = "project") -> Path:
        """A new Git repository that nobody has set up."""
        root = (self.home / name).resolve()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        return root

    def project(self, name: str = "project") -> Path:
        """One that is set up."""
        root = self.repository(name)
        self.store(root).create()
        projects.add_project(projects.Project(projects.id_for(root), root))
        return root

    def store(self, root: Path) -> Store:
        """A project's store as another process sees it."""
        return Store(root / ".memory", state=projects.Project(projects.id_for(root), root).state)

    def agent(self, start: Path | None, profile: str = "codex", **environment: str) -> Agent:
        """A session that begins in that directory."""
        return Agent(self, start, profile, environment)


class Agent:
    """A session, and what its model calls."""

    def __init__(self, rig: Rig, start: Path | None, profile: str, environment: Mapping[str, str]) -> None:
        hello = Hello(nonce=os.urandom(16).hex(), pid=1, parent_pid=1, cwd="/", environment=environment)
        self._rig = rig
        # The memory tools use no channel.
        self.session = Session(hello, rig.memory, None, profile=profile, start=start)  # type: ignore[arg-type]
        self._calls = 0

    async def calling(self, name: str, *, is_replay: bool = False, **given: Any) -> Answer:  # noqa: ANN401
        """The answer to one call; what is raised comes through."""
        tool = BY_NAME[name]
        self._calls += 1
        call = Call(self.session, str(self._calls), is_replay)
        answer = await tool.run(call, tool.parameters.model_validate(given))
        assert len(answer.text.encode()) <= ANSWER_BYTES
        if not answer.is_error:
            jsonschema.validate(dict(answer.data), tool.output_schema)
        return answer

    def call(self, name: str, *, is_replay: bool = False, **given: Any) -> Answer:  # noqa: ANN401
        """The same from outside of the loop."""
        return self._rig.runner.run(self.calling(name, is_replay=is_replay, **given))

    def remember(self, text: str, **given: Any) -> str:  # noqa: ANN401
        """The id of a fact that is new."""
        data = self.call("remember", text=text, **given).data
        assert data["status"] == "added"
        return str(data["fact"]["id"])

    def refused(self, name: str, **given: Any) -> AgentBridgeError:  # noqa: ANN401
        """The error that a call ends with."""
        try:
            answer = self.call(name, **given)
        except AgentBridgeError as error:
            return error
        raise AssertionError(f"{name} was answered: {answer.text}")


def everything_below(*tops: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, and every directory, below some directories."""
    return {
        str(path): path.read_bytes() if path.is_file() else None for top in tops for path in top.rglob("*")
    }
