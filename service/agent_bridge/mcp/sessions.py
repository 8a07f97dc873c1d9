"""Which sessions there are, and the agent id of each.

A session's id is made from what tells it from others: Claude Code's own session id, else the program, the
project and the identity. Two sessions of one program in one project get two ids, the second ending in `-2`;
who comes back finds its own again if it is free, and with it its inbox.
"""

from __future__ import annotations

import hashlib
import threading
import time
from asyncio import Event
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_bridge.channel import ids
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.call import Session
from agent_bridge.mcp.hello import Hello
from agent_bridge.mcp.profiles import profile_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_bridge.mcp.ports import ChannelPort, MemoryPort

MOST_SESSIONS = 512
"""Clients that may be connected at a time."""


class TooManySessionsError(AgentBridgeError):
    """More clients are connected than this service keeps."""

    code = "too_many"


@dataclass(slots=True, eq=False)
class Connected:
    """A session while its client is connected. `root` is its project's path, "" where there is none."""

    session: Session
    root: str
    since: float
    is_placed: Event = field(default_factory=Event)
    """Set once it is known where it works: the client's roots, where it has any, have been asked for."""
    moves: int = 0
    """How often the client has said that it has other roots, while it is asked for them."""
    in_flight: int = 0
    tell_id: Callable[[str], None] | None = None
    """Tells its shim another id than the welcome's; None where there is no shim."""
    is_closed: bool = False


class Sessions:
    """All that are connected, over the Unix socket and over HTTP. From any thread."""

    def __init__(self, memory: MemoryPort, channel: ChannelPort) -> None:
        self._memory = memory
        self._channel = channel
        self._held: dict[str, Connected] = {}
        self._lock = threading.Lock()

    def open(self, hello: Hello, start: Path | None, root: str) -> Connected:
        """A new session with an id of its own. Raises TooManySessionsError."""
        session = Session(
            hello,
            self._memory,
            self._channel,
            profile=profile_of(hello.client_name),
            start=start,
        )
        connected = Connected(session, root, time.time())
        with self._lock:
            if len(self._held) >= MOST_SESSIONS:
                raise TooManySessionsError(
                    f"{MOST_SESSIONS} clients are connected already", remedy="End some that aren't needed."
                )
            self._name(connected)
        return connected

    def move(self, connected: Connected, start: Path, root: str) -> bool:
        """Its client has told where it works; whether it got another id by that."""
        with self._lock:
            session = connected.session
            session.start = start
            if root == connected.root:
                return False
            before = session.agent_id
            self._release(connected)
            connected.root = root
            self._name(connected)
            return session.agent_id != before

    def close(self, connected: Connected) -> bool:
        """Its client has gone; whether nobody else goes by its id now."""
        with self._lock:
            connected.is_closed = True
            return self._release(connected)

    def calls_under_way(self) -> int:
        """How many calls aren't answered yet."""
        with self._lock:
            return sum(one.in_flight for one in self._held.values())

    def describe(self) -> list[dict[str, Any]]:
        """Who is connected, for the status, in the order in which they came."""
        with self._lock:
            held = list(self._held.values())
        return [
            {
                "client": one.session.hello.client_name,
                "version": one.session.hello.client_version,
                "agentId": one.session.agent_id,
                "project": one.root,
                "identity": one.session.hello.identity,
                "since": one.since,
            }
            for one in held
        ]

    def _name(self, connected: Connected) -> None:
        hello = connected.session.hello
        wanted = _wanted_id(hello, connected.root)
        before = hello.agent_id
        if before and _is_of(before, wanted) and self._is_free(before, hello):
            chosen = before
        else:
            chosen, number = wanted, 1
            while not self._is_free(chosen, hello):
                number += 1
                chosen = f"{wanted}-{number}"
        connected.session.agent_id = chosen
        self._held[_key(hello.identity, chosen)] = connected

    def _is_free(self, agent_id: str, hello: Hello) -> bool:
        """Nobody has it, or the same shim has, whose old connection hasn't been missed yet."""
        holder = self._held.get(_key(hello.identity, agent_id))
        return holder is None or holder.session.hello.nonce == hello.nonce

    def _release(self, connected: Connected) -> bool:
        key = _key(connected.session.hello.identity, connected.session.agent_id)
        if self._held.get(key) is not connected:
            return False
        del self._held[key]
        return True


def _wanted_id(hello: Hello, root: str) -> str:
    session_id = hello.environment.get("CLAUDE_CODE_SESSION_ID", "")
    if session_id and profile_of(hello.client_name) == "claude-code":
        text = f"{session_id}\n{hello.identity}".encode("utf-8", "surrogatepass")
        return f"client-claude-code-{hashlib.sha1(text, usedforsecurity=False).hexdigest()[:16]}"
    return ids.client_id(hello.client_name or "unknown", root, hello.identity)


def _is_of(agent_id: str, wanted: str) -> bool:
    """Whether it is one of the ids that such a session may get: nobody takes another's by naming it."""
    rest = agent_id.removeprefix(wanted)
    return agent_id.startswith(wanted) and (not rest or (rest[0] == "-" and rest[1:].isdecimal()))


def _key(identity: str, agent_id: str) -> str:
    return f"{identity}\n{agent_id}"
