"""Sessions that call the channel's tools, over the registry as the service runs it, in this process."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import jsonschema

from agent_bridge.channel import ids
from agent_bridge.channel.model import Ack, AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge, Send
from agent_bridge.config import Settings
from agent_bridge.daemon.mcp_channel import ServiceChannel
from agent_bridge.daemon.mcp_memory import ServiceMemory
from agent_bridge.daemon.registry_host import RegistryHost
from agent_bridge.mcp.call import Call, Session
from agent_bridge.mcp.channel_tools import TOOLS
from agent_bridge.mcp.hello import Hello
from agent_bridge.mcp.profiles import profile_of
from agent_bridge.mcp.tool import ANSWER_BYTES, Answer

T = TypeVar("T")
BY_NAME = {tool.name: tool for tool in TOOLS}
PATIENCE = 20.0


class Rig:
    """A registry and a loop for the tools. Ends with the `with` block."""

    def __init__(self, home: Path, **settings: Any) -> None:  # noqa: ANN401
        self.home = home
        self.settings = Settings(**({"send_rate_per_s": 1e6, "send_burst": 1_000_000} | settings))
        self.host = RegistryHost(self.settings)
        self.channel = ServiceChannel(self.host)
        self.memory = ServiceMemory(self.settings)
        self.runner = asyncio.Runner()

    def __enter__(self) -> Rig:
        self.host.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()
        self.host.stop()
        self.memory.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What it returns, within PATIENCE."""
        return self.runner.run(asyncio.wait_for(work, PATIENCE))

    def agent(
        self, name: str, client: str = "codex-mcp-client", identity: str = "global", project: str = "project"
    ) -> Agent:
        """A session of that client; `name` tells it from others."""
        return Agent(self, name, client, identity, project)

    def message(self, message_id: str, identity: str = "global") -> Message:
        """A message as the store has it."""
        found = self.run(self.channel.read(lambda store: store.message(identity, message_id)))
        assert found is not None
        return found

    def thread(self, conversation_id: str, identity: str = "global") -> tuple[Message, ...]:
        """All messages of a conversation."""
        found = self.run(self.channel.read(lambda store: store.conversation(identity, conversation_id)))
        return tuple(found.messages)

    def acks(self, conversation_id: str, identity: str = "global") -> tuple[Ack, ...]:
        """All acks of a conversation."""
        return self.run(self.channel.read(lambda store: store.conversation(identity, conversation_id))).acks

    def ack(self, message: Message, state: AckState, actor: str = "bridge") -> None:
        """Somebody's word on a message."""
        self.run(
            self.channel.write(
                Acknowledge(
                    identity=message.identity,
                    conversation_id=message.conversation_id,
                    message_id=message.message_id,
                    state=state,
                    actor_id=actor,
                    actor_type=ActorType.BRIDGE,
                )
            )
        )

    async def sent(self, sender: str, to: str | None, text: str, **more: Any) -> Message:  # noqa: ANN401
        """Store a message, past the tools."""
        draft = Draft(
            **(
                {
                    "identity": "global",
                    "from_agent_id": sender,
                    "to_agent_id": to,
                    "kind": Kind.CHAT,
                    "content": text,
                    "expects_response": True,
                }
                | more
            )
        )
        outcome = await self.channel.write(Send(draft))
        message: Message = outcome.message  # type: ignore[union-attr]
        return message

    def send(self, sender: str, to: str | None, text: str, **more: Any) -> Message:  # noqa: ANN401
        """The same, done."""
        return self.run(self.sent(sender, to, text, **more))


class Agent:
    """A session of an agent program, and what its model calls."""

    def __init__(self, rig: Rig, name: str, client: str, identity: str, project: str) -> None:
        self.rig = rig
        place = (rig.home / project).resolve()
        place.mkdir(exist_ok=True)
        hello = Hello(
            nonce=uuid.uuid4().hex,
            pid=1,
            parent_pid=1,
            cwd=str(place),
            identity=identity,
            client_name=client,
            client_version="1",
        )
        self.id = f"{ids.client_id(client, str(place), identity)}-{name}"
        self.session = Session(
            hello,
            rig.memory,
            rig.channel,
            agent_id=self.id,
            profile=profile_of(client),
            start=place,
        )
        self._calls = 0

    def join(self) -> Agent:
        """Be in the list of sessions, as after a first call."""
        self.call("list_agents")
        return self

    async def calling(
        self,
        name: str,
        request: str | None = None,
        *,
        is_replay: bool = False,
        **words: Any,  # noqa: ANN401
    ) -> Answer:
        """Call a tool with these arguments; `request` is the call's id, a new one by default."""
        self._calls += 1
        tool = BY_NAME[name]
        call = Call(self.session, request or str(self._calls), is_replay)
        answer = await tool.run(call, tool.parameters.model_validate(words))
        assert len(answer.text.encode()) <= ANSWER_BYTES
        assert len(json.dumps(answer.data, ensure_ascii=False).encode()) <= ANSWER_BYTES
        jsonschema.validate(dict(answer.data), tool.output_schema)
        return answer

    def call(self, name: str, request: str | None = None, **words: Any) -> Answer:  # noqa: ANN401
        """The same, done."""
        return self.rig.run(self.calling(name, request, **words))

    def inbox(self, **words: Any) -> dict[str, Any]:  # noqa: ANN401
        """What `channel_inbox` says, as data."""
        return dict(self.call("channel_inbox", **words).data)
