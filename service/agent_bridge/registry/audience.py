"""Who gets an event: the sockets by identity, by agent and by what they want to hear. Pure.

The wall between identities stands here: an event reaches sockets of its own identity and of `*` (the
dashboard's), nobody else; one whose own identity is `*` reaches all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from agent_bridge.channel.model import ALL_IDENTITIES
from agent_bridge.channel.writes import Event

Wants = Literal["all", "own", "none"]
"""Everything of the identity; what concerns the socket's agent or everybody; nothing."""

S = TypeVar("S", bound=Hashable)


@dataclass(slots=True)
class _Circle(Generic[S]):
    """The sockets of one identity. Dicts keep the order in which they came."""

    routes: dict[str, S] = field(default_factory=dict)
    everything: dict[S, None] = field(default_factory=dict)
    own: dict[str, S] = field(default_factory=dict)


class Audience(Generic[S]):
    """All sockets that listen, and which of them speaks for which agent."""

    def __init__(self) -> None:
        self._circles: dict[str, _Circle[S]] = {}

    def listen(self, socket: S, identity: str) -> None:
        """A socket that hears everything of its identity and speaks for nobody (yet)."""
        self._circle(identity).everything[socket] = None

    def claim(self, socket: S, identity: str, agent_id: str, wants: Wants) -> S | None:
        """A socket speaks for an agent from now on; returns the one that did so before."""
        circle = self._circle(identity)
        circle.everything.pop(socket, None)
        before = circle.routes.get(agent_id)
        if before is not None and before is not socket:
            self.leave(before, identity, agent_id)
            circle = self._circle(identity)
        circle.routes[agent_id] = socket
        circle.own.pop(agent_id, None)
        if wants == "all":
            circle.everything[socket] = None
        elif wants == "own":
            circle.own[agent_id] = socket
        return None if before is socket else before

    def leave(self, socket: S, identity: str, agent_id: str | None) -> bool:
        """A socket is gone. True if it was the one that spoke for `agent_id`."""
        circle = self._circles.get(identity)
        if circle is None:
            return False
        circle.everything.pop(socket, None)
        spoke = agent_id is not None and circle.routes.get(agent_id) is socket
        if agent_id is not None and spoke:
            del circle.routes[agent_id]
            circle.own.pop(agent_id, None)
        if not (circle.everything or circle.routes):
            del self._circles[identity]
        return spoke

    def speaker(self, identity: str, agent_id: str) -> S | None:
        """The socket that speaks for an agent."""
        circle = self._circles.get(identity)
        return None if circle is None else circle.routes.get(agent_id)

    def of(self, event: Event) -> Iterator[S]:
        """The sockets that are to have an event: its target first, each once."""
        if event.identity == ALL_IDENTITIES:
            for every in list(self._circles.values()):
                yield from _of_circle(every, event, None)
            return
        circle_of_all = self._circles.get(ALL_IDENTITIES)
        circle = self._circles.get(event.identity)
        if circle is not None:
            target = None if event.target is None else circle.routes.get(event.target)
            if target is not None:
                yield target
            yield from _of_circle(circle, event, target)
        if circle_of_all is not None:
            yield from _of_circle(circle_of_all, event, None)

    def _circle(self, identity: str) -> _Circle[S]:
        return self._circles.setdefault(identity, _Circle())


def concerns(event: Event, agent_id: str) -> bool:
    """Whether an event is for an agent or for everybody."""
    return event.target == agent_id or not event.concerns or agent_id in event.concerns


def _of_circle(circle: _Circle[S], event: Event, but: S | None) -> Iterator[S]:
    for socket in list(circle.everything):
        if socket is not but:
            yield socket
    own = circle.own
    if not own:
        return
    if not event.concerns:
        for socket in list(own.values()):
            if socket is not but:
                yield socket
        return
    for agent_id in event.concerns:
        found = own.get(agent_id)
        if found is not None and found is not but:
            yield found
