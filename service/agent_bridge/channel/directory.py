"""The directory: which agents and client sessions there are, and which of them are well. In memory only.

A row is known by (identity, agent id). Client rows are seen by their own identity; rows of AgentServers
(`entryType` agent) by all, but changed by their own only. Ages are reckoned in steady time, wall time is for
display. No lock: one thread uses it.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_bridge.channel import ids
from agent_bridge.channel.clock import Moment
from agent_bridge.channel.errors import InvalidError, TooLargeError, TooManyError, UnknownError
from agent_bridge.channel.model import ALL_IDENTITIES, GLOBAL_IDENTITY
from agent_bridge.channel.writes import Event

ROW_BYTES = 65_536
"""Bytes of JSON that one row may have: a card with its skills, not a library."""
ROWS_PER_IDENTITY = 4_096
"""Rows that one identity may have, so that one that floods can't shut the others out."""
TOTAL_BYTES = 16 * 1024 * 1024
"""Bytes of JSON that all rows together may have; those of one identity a quarter of it: some 2,500 sessions.
Every socket is told all that it sees when it opens, and with 60 MB each made all others wait for a second."""
_OVERHEAD = 1_024  # what a row costs in memory beside its text


class EntryType(enum.StrEnum):
    """What a row is: a server with skills, or the session of a client program."""

    AGENT = "agent"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One agent or client session (RegistryEntry).

    `registered_at` and `last_heartbeat` are wall times in ms, stamped by the directory; `beat` is the last
    sign of life in steady ms. `pid` and `host` are what the program says of itself.
    """

    agent_id: str
    name: str
    project_path: str
    identity: str = GLOBAL_IDENTITY
    entry_type: EntryType = EntryType.AGENT
    project_name: str = ""
    project_type: str = "unknown"
    url: str = ""
    ws_url: str = ""
    port: int = 0
    card: Mapping[str, Any] = field(default_factory=dict)
    client_name: str | None = None
    client_version: str | None = None
    pid: int | None = None
    host: str | None = None
    registered_at: int = 0
    last_heartbeat: int = 0
    healthy: bool = True
    beat: int = 0

    @property
    def is_client(self) -> bool:
        """Whether it is a client session, which only its own identity sees."""
        return self.entry_type is EntryType.CLIENT

    def visible_to(self, identity: str) -> bool:
        """Whether that identity sees the row; `*` sees all."""
        return not self.is_client or identity in (self.identity, ALL_IDENTITIES)

    def has_skill(self, skill: str) -> bool:
        """Whether its card has a skill with that id or tag, exactly."""
        skills = self.card.get("skills")
        for entry in skills if isinstance(skills, list) else ():
            if not isinstance(entry, Mapping):
                continue
            tags = entry.get("tags")
            if entry.get("id") == skill or (isinstance(tags, list) and skill in tags):
                return True
        return False

    def as_wire(self) -> dict[str, Any]:
        """The row as JSON."""
        wire: dict[str, Any] = {
            "agentId": self.agent_id,
            "name": self.name,
            "entryType": self.entry_type.value,
            "identity": self.identity,
            "projectPath": self.project_path,
            "projectName": self.project_name,
            "projectType": self.project_type,
            "url": self.url,
            "wsUrl": self.ws_url,
            "port": self.port,
            "card": {"skills": [], **self.card},
            "registeredAt": self.registered_at,
            "lastHeartbeat": self.last_heartbeat,
            "healthy": self.healthy,
        }
        if self.client_name is not None:
            wire["clientInfo"] = {
                "clientName": self.client_name,
                "clientVersion": self.client_version or "",
            }
        if self.pid is not None:
            wire["pid"] = self.pid
        if self.host is not None:
            wire["host"] = self.host
        return wire


class Directory:
    """All rows. What changes them answers with the events that the sockets are to be told.

    An event about an AgentServer has the identity `*`: it is for everybody. `unhealthy_ms` and `remove_ms`
    are the ages, without a sign of life, at which a row is marked and at which it goes.
    """

    def __init__(
        self,
        unhealthy_ms: int,
        remove_ms: int,
        *,
        rows_per_identity: int = ROWS_PER_IDENTITY,
        total_bytes: int = TOTAL_BYTES,
    ) -> None:
        self.unhealthy_ms = unhealthy_ms
        self.remove_ms = remove_ms
        self._most_rows = rows_per_identity
        self._most_bytes = total_bytes
        self._most_bytes_each = total_bytes // 4
        self._rows: dict[str, dict[str, AgentRow]] = {}
        self._weights: dict[tuple[str, str], int] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._identities: dict[str, dict[str, None]] = {}  # that have an id, in order

    def __len__(self) -> int:
        return len(self._weights)

    def register(self, row: AgentRow, now: Moment, *, replaces: bool = True) -> list[Event]:
        """Enter a row, or renew it; older rows of the same session go, one `agent.deregistered` each.

        The same session: a client row with the same identity, project path and client name; an agent row
        with the same identity and project path. `replaces` False, for who knows which sessions live:
        none goes. Raises InvalidError, TooLargeError (that row), TooManyError (all of them).
        """
        weight = _weight(row)
        replaced = self._same_session(row) if replaces else []
        self._check_room(row, weight, replaced)
        events = [self._drop(old, "agent.deregistered") for old in replaced]
        row = dataclasses.replace(
            row, registered_at=now.wall, last_heartbeat=now.wall, healthy=True, beat=now.steady
        )
        self._put(row, weight)
        return [*events, _event("agent.registered", row, row.as_wire())]

    def heartbeat(self, identity: str, agent_id: str, now: Moment) -> list[Event]:
        """A sign of life. Raises UnknownError: the program must register again."""
        row = self._own(identity, agent_id)
        if row is None:
            raise UnknownError("Agent not found", detail=agent_id)
        self._touch(row, now)
        data = {"agentId": agent_id, "identity": row.identity, "timestamp": now.wall}
        return [_event("agent.heartbeat", row, data, concerns=frozenset((agent_id,)))]

    def remove(self, identity: str, agent_id: str) -> list[Event]:
        """Take a row out; nothing where that identity has none."""
        row = self._own(identity, agent_id)
        return [] if row is None else [self._drop(row, "agent.deregistered")]

    def identified(self, identity: str, agent_id: str, now: Moment) -> list[Event]:
        """A socket speaks for that agent now: a sign of life, told where the row was marked unhealthy."""
        row = self._own(identity, agent_id)
        if row is None:
            return []
        told = [] if row.healthy else self.heartbeat(identity, agent_id, now)
        self._touch(row, now)
        return told

    def closed(self, identity: str, agent_id: str) -> list[Event]:
        """The socket that spoke for that agent is gone, and none took over: so is a client's row; an
        AgentServer's is marked unhealthy."""
        row = self._own(identity, agent_id)
        if row is None:
            return []
        if row.is_client:
            return [self._drop(row, "agent.deregistered")]
        return self._mark_unhealthy(row)

    def sweep(self, now: Moment) -> list[Event]:
        """Mark and remove what has given no sign of life for too long."""
        events: list[Event] = []
        for row in list(self._all()):
            age = now.steady - row.beat
            if age >= self.remove_ms:
                events.append(self._drop(row, "agent.removed"))
            elif age >= self.unhealthy_ms:
                events += self._mark_unhealthy(row)
        return events

    def excuse(self, ms: int, now: Moment) -> None:
        """Don't count so many milliseconds before `now` as time without a sign of life."""
        for row in list(self._all()):
            beat = max(row.beat, min(row.beat + ms, now.steady))
            self._rows[row.identity][row.agent_id] = dataclasses.replace(row, beat=beat)

    def rows(
        self,
        identity: str = ALL_IDENTITIES,
        *,
        skill: str | None = None,
        project: str | None = None,
        healthy: bool | None = None,
        entry_type: EntryType | None = None,
        client: str | None = None,
    ) -> list[AgentRow]:
        """The rows that `identity` sees and that fit every filter given.

        `skill` is a skill's id or tag, exactly; `project` a part of the project's path or name and `client`
        a part of the client's name, whatever their case.
        """
        part, kind = (text.casefold() if text else "" for text in (project, client))
        return [
            row
            for row in self._all()
            if row.visible_to(identity)
            and (healthy is None or row.healthy is healthy)
            and (entry_type is None or row.entry_type is entry_type)
            and (part in row.project_path.casefold() or part in row.project_name.casefold())
            and kind in (row.client_name or "").casefold()
            and (skill is None or row.has_skill(skill))
        ]

    def find(self, identity: str, agent_id: str) -> AgentRow | None:
        """The row of that id which `identity` sees: its own first."""
        own = self._own(identity, agent_id)
        if own is not None:
            return own
        found = (self._rows[other][agent_id] for other in self._identities.get(agent_id, ()))
        return next((row for row in found if row.visible_to(identity)), None)

    def lives_elsewhere(self, identity: str, agent_id: str) -> bool:
        """Whether only other identities have that id: a message to it is refused."""
        if identity == ALL_IDENTITIES or self._own(identity, agent_id) is not None:
            return False
        return agent_id in self._identities

    def _own(self, identity: str, agent_id: str) -> AgentRow | None:
        return self._rows.get(identity, {}).get(agent_id)

    def _all(self) -> Iterator[AgentRow]:
        return (row for held in self._rows.values() for row in held.values())

    def _same_session(self, row: AgentRow) -> list[AgentRow]:
        if row.is_client and row.client_name is None:
            return []
        return [
            other
            for other in self._rows.get(row.identity, {}).values()
            if other.agent_id != row.agent_id
            and other.entry_type is row.entry_type
            and other.project_path == row.project_path
            and (not row.is_client or other.client_name == row.client_name)
        ]

    def _check_room(self, row: AgentRow, weight: int, replaced: list[AgentRow]) -> None:
        goes = [(old.identity, old.agent_id) for old in replaced]
        if self._own(row.identity, row.agent_id) is not None:
            goes.append((row.identity, row.agent_id))
        grows = weight - sum(self._weights[key] for key in goes)
        rows = len(self._rows.get(row.identity, ())) + 1 - len(goes)
        if rows > self._most_rows or (
            grows > 0
            and (
                self._bytes.get(row.identity, 0) + grows > self._most_bytes_each
                or self._total + grows > self._most_bytes
            )
        ):
            raise TooManyError(
                "The directory is full",
                detail=f"identity {row.identity} has {len(self._rows.get(row.identity, ()))} rows",
                remedy="Rows without heartbeats go by themselves; `agent-bridge prune` removes dead ones.",
            )

    def _put(self, row: AgentRow, weight: int) -> None:
        key = (row.identity, row.agent_id)
        self._weigh(row.identity, weight - self._weights.get(key, 0))
        self._weights[key] = weight
        self._rows.setdefault(row.identity, {})[row.agent_id] = row
        self._identities.setdefault(row.agent_id, {})[row.identity] = None

    def _drop(self, row: AgentRow, event: str) -> Event:
        held, others = self._rows[row.identity], self._identities[row.agent_id]
        del held[row.agent_id], others[row.identity]
        self._weigh(row.identity, -self._weights.pop((row.identity, row.agent_id)))
        if not held:
            del self._rows[row.identity], self._bytes[row.identity]
        if not others:
            del self._identities[row.agent_id]
        return _event(event, row, {"agentId": row.agent_id, "identity": row.identity})

    def _weigh(self, identity: str, more: int) -> None:
        self._bytes[identity] = self._bytes.get(identity, 0) + more
        self._total += more

    def _touch(self, row: AgentRow, now: Moment) -> None:
        self._rows[row.identity][row.agent_id] = dataclasses.replace(
            row, last_heartbeat=now.wall, healthy=True, beat=now.steady
        )

    def _mark_unhealthy(self, row: AgentRow) -> list[Event]:
        if not row.healthy:
            return []
        self._rows[row.identity][row.agent_id] = dataclasses.replace(row, healthy=False)
        return [_event("agent.unhealthy", row, {"agentId": row.agent_id, "identity": row.identity})]


def _weight(row: AgentRow) -> int:
    ids.checked_identity(row.identity)
    ids.checked_id(row.agent_id, "agentId")
    try:
        size = len(json.dumps(row.as_wire()))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError("That registration can't be kept", detail=f"card: {error}") from error
    if size > ROW_BYTES:
        raise TooLargeError(
            "That registration is too large", detail=f"{size} bytes of JSON; a row may have {ROW_BYTES}"
        )
    return size + _OVERHEAD


def _event(
    event: str, row: AgentRow, data: Mapping[str, Any], concerns: frozenset[str] = frozenset()
) -> Event:
    identity = row.identity if row.is_client else ALL_IDENTITIES
    return Event(type=event, identity=identity, data=data, concerns=concerns)
