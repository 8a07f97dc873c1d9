"""A call of a tool, and the session it comes from."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge.mcp.hello import Hello

if TYPE_CHECKING:
    from agent_bridge.mcp.ports import ChannelPort, MemoryPort

_CALLS = uuid.UUID("7f0f6a7e-51c4-4c1e-9d5b-0d6b6c3f8f7a")


@dataclass(slots=True)
class Session:
    """A client program that is connected. One asyncio loop changes it; tools read it.

    `start` is the directory from which its project is found: told by the client's roots, else by its
    environment or its working directory; None where nothing tells it. `agent_id` is its row's id in the
    registry. `profile` is the kind of client: `claude-code`, `codex`, `opencode`, `gemini`, `antigravity` or
    `unknown`.
    """

    hello: Hello
    memory: MemoryPort
    channel: ChannelPort
    agent_id: str = ""
    profile: str = "unknown"
    start: Path | None = None
    has_been_told_of_init: bool = False
    """Whether the hint to run `init` was given; it is given once a session."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    `request_id` is the JSON text of the request's id. `is_replay`: the same call was sent before and may
    have been carried out, but its answer never arrived.
    """

    session: Session
    request_id: str
    is_replay: bool = False

    @property
    def key(self) -> str:
        """A name of this call that a repetition of it has too: for ids that make it happen once."""
        return str(uuid.uuid5(_CALLS, f"{self.session.hello.nonce}/{self.request_id}"))
