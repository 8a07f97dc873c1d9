"""The routes of the directory: who is there, and what agents tell each other outside the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import AmbiguousError, UnknownError, WrongIdentityError
from agent_bridge.channel.model import ALL_IDENTITIES, GLOBAL_IDENTITY
from agent_bridge.channel.writes import Event
from agent_bridge.registry import wire_agents
from agent_bridge.registry.answers import Answer, as_json

if TYPE_CHECKING:
    from agent_bridge.registry.calls import Call
    from agent_bridge.registry.hub import Hub

_SHOWN = 10


class AgentsRoutes:
    """Handlers that turn a call into changes of the hub's directory, and tell the sockets."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def register(self, call: Call) -> Answer:
        """`POST /agents`: 201 the row."""
        row = wire_agents.registration(await call.json(), call.caller.writes_as)
        self._hub.publish(self._hub.directory.register(row, self._hub.timeline.now()))
        return as_json(self._found(row.identity, row.agent_id).as_wire(), 201)

    async def remove(self, call: Call) -> Answer:
        """`DELETE /agents/{id}`: whether it was there."""
        events = self._hub.directory.remove(call.caller.sees, call.path_id("agent", "agentId"))
        self._hub.publish(events)
        return as_json({"removed": bool(events)})

    async def heartbeat(self, call: Call) -> Answer:
        """`POST /agents/{id}/heartbeat`: the body is read past; 404 tells the program to register again."""
        await call.body()
        now = self._hub.timeline.now()
        self._hub.publish(
            self._hub.directory.heartbeat(call.caller.sees, call.path_id("agent", "agentId"), now)
        )
        return as_json({"ok": True, "timestamp": now.wall})

    async def rows(self, call: Call) -> Answer:
        """`GET /agents`: the rows that the caller sees and that fit every filter."""
        rows = self._hub.directory.rows(
            call.caller.sees,
            skill=call.query_text("skill"),
            project=call.query_text("project"),
            healthy=call.query_flag("healthy"),
            entry_type=call.query_word("entryType", EntryType),
        )
        return as_json([row.as_wire() for row in rows])

    async def row(self, call: Call) -> Answer:
        """`GET /agents/{id}`."""
        return as_json(self._found(call.caller.sees, call.path_id("agent", "agentId")).as_wire())

    async def message(self, call: Call) -> Answer:
        """`POST /agents/{id or name}/message`: to its socket, and to whoever listens; counts like a send."""
        row = self._addressed(call)
        data = wire_agents.agent_message(
            await call.json(), self._hub.timeline.now().wall, to_agent_id=row.agent_id
        )
        identity = row.identity if call.caller.sees == ALL_IDENTITIES else call.caller.sees
        self._hub.rates.take(identity, data["fromAgentId"])
        # An AgentServer of another identity is told by its own address: no event crosses over there.
        reached = identity == row.identity and self._hub.reaches(identity, row.agent_id)
        self._hub.publish(
            [
                Event(
                    type="agent.message",
                    identity=identity,
                    data=data,
                    target=row.agent_id if reached else None,
                )
            ]
        )
        return as_json({"ok": True, "delivered": reached, "via": "websocket" if reached else "event-only"})

    async def task_update(self, call: Call) -> Answer:
        """`POST /events`: a task's new state, told to every socket of the identity."""
        data = wire_agents.task_update(await call.json(), self._hub.timeline.now().wall)
        self._hub.publish(
            [Event(type="task.update", identity=call.caller.writes_as or GLOBAL_IDENTITY, data=data)]
        )
        return as_json({"ok": True})

    def _addressed(self, call: Call) -> AgentRow:
        wanted = call.path_id("agent", "agentId")
        identity = call.caller.sees
        found = self._hub.directory.find(identity, wanted)
        if found is None:
            name = wanted.casefold()
            named = [row for row in self._hub.directory.rows(identity) if row.name.casefold() == name]
            named = [row for row in named if row.healthy] or named
            if len(named) > 1:
                raise AmbiguousError("Several agents have that name", detail=_listed(named))
            found = named[0] if named else None
        if found is None and self._hub.directory.lives_elsewhere(identity, wanted):
            raise WrongIdentityError("That agent lives in another identity", detail=wanted)
        if found is None:
            raise UnknownError("Agent not found", detail=wanted)
        return found

    def _found(self, identity: str, agent_id: str) -> AgentRow:
        row = self._hub.directory.find(identity, agent_id)
        if row is None:
            raise UnknownError("Agent not found", detail=agent_id)
        return row


def _listed(rows: list[AgentRow]) -> str:
    shown = [row.agent_id for row in rows[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else "")
