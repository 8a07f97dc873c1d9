"""The channel's verbs against a real service: commands in this process, agents on threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent_bridge.channel import ids
from agent_bridge.channel.model import Message
from agent_bridge.cli import entry
from agent_bridge.client import address
from agent_bridge.client.http import Registry
from agent_bridge.client.requests import Registration
from agent_bridge.client.runtime import DISPLAYED, Receipt, Session

from .conftest import Ran

Answer = Callable[[Message], str | None]


def run(*words: str, stdin: str | bytes = "") -> Ran:
    """`agent-bridge WORDS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    typed = io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin))
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["agent-bridge", *words], typed
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = entry.main()
    finally:
        sys.argv, sys.stdin = before
    assert "Traceback" not in err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Channel:
    """A running service, in a home that nothing else uses."""

    home: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def registry(self, identity: str = "global") -> Registry:
        """The registry, to ask it beside the commands."""
        return Registry(address.find(), identity)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`agent-bridge WORDS` in a process of its own, with pipes."""
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_bridge.cli.entry", *words],
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what is left of the commands that were started."""
        while self.started:
            process = self.started.pop()
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()

    @contextlib.contextmanager
    def agent(
        self,
        project: str,
        *,
        client: str = "claude-code",
        identity: str = "global",
        answer: Answer = lambda _: None,
    ) -> Iterator[str]:
        """A session that shows what it gets and answers it; gives its id."""
        registration = Registration(
            agent_id=ids.client_id(client, f"/src/{project}", identity),
            name=f"{client} in {project}",
            project_path=f"/src/{project}",
            project_name=project,
            identity=identity,
            client_name=client,
            client_version="1.0",
        )
        player = _Player(registration, answer)
        player.start()
        try:
            yield registration.agent_id
        finally:
            player.stop()


class _Player(threading.Thread):
    """Runs a session on a loop of its own."""

    def __init__(self, registration: Registration, answer: Answer) -> None:
        super().__init__(name=registration.agent_id)
        self._registration = registration
        self._answer = answer
        self._is_there = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()

    def start(self) -> None:
        """Return once it can be written to."""
        super().start()
        assert self._is_there.wait(20)

    def stop(self) -> None:
        """End the session and the thread."""
        self._loop.call_soon_threadsafe(self._over.set)
        self.join(20)

    def run(self) -> None:
        """The thread."""
        self._loop.run_until_complete(self._live())
        self._loop.close()

    async def _live(self) -> None:
        waiting: set[asyncio.Task[None]] = set()

        async def show(message: Message) -> Receipt | None:
            text = self._answer(message)
            if text is not None:
                waiting.add(asyncio.create_task(reply(message, text)))
            return DISPLAYED

        async def reply(message: Message, text: str) -> None:
            await session.send(
                text,
                to=message.from_agent_id,
                reply_to=message.message_id,
                conversation_id=message.conversation_id,
                expects_response=False,
            )

        async with Session(self._registration, show) as session:
            await session.online()
            self._is_there.set()
            await self._over.wait()
            await asyncio.gather(*waiting)


def sealed(home: Path, run_directory: Path) -> dict[str, str | None]:
    """The environment of such a home: what to set, and with None what to remove."""
    cleared = ("AGENT_BRIDGE_", "CLAUDE", "CODEX", "GIT_", "XDG_", "OPENCODE", "GEMINI")
    values: dict[str, str | None] = {name: None for name in os.environ if name.startswith(cleared)}
    return values | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_RUNTIME_DIR": str(run_directory),
    }
