"""`tail`: what happens on the channel, as it happens, for as long as somebody looks on."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Annotated

import typer

from agent_bridge.channel.clock import wall_ms
from agent_bridge.cli.app import JsonOption, Verbs
from agent_bridge.cli.durations import seconds
from agent_bridge.cli.event_stream import Connected, Event, EventStream, Lost
from agent_bridge.cli.events_shown import shown_event
from agent_bridge.cli.person import Person, person
from agent_bridge.cli.presence import Presence, present
from agent_bridge.cli.printing import put, tell
from agent_bridge.cli.registry_access import IdentityOption, connect, identity_of
from agent_bridge.cli.result import Result
from agent_bridge.cli.until_told import run_until_told
from agent_bridge.client.http import Registry
from agent_bridge.config import load_settings
from agent_bridge.errors import AgentBridgeError

_PANEL = "Channel"
_PAGE = 200
_QUIET = ("agent.heartbeat", "claude.notify")
"""Signs of life are no news, and the second repeats a message for older clients."""
_GONE = ("agent.deregistered", "agent.removed", "agent.unhealthy")


def register(verbs: Verbs) -> None:
    """Add the command of this module."""
    verbs.verb("tail", panel=_PANEL)(tail)


def tail(
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="Begin earlier: 45s, 10m, 2h ago; or after an event's number, 0 for all that is kept.",
        ),
    ] = None,
    messages: Annotated[bool, typer.Option("--messages", help="Only messages.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show whole texts.")] = False,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Show messages and all else as it happens, until Ctrl-C; goes on when the service starts again.

    Nothing is marked as displayed by that. With --json each event is one object on a line of its own.
    """
    who = person(identity_of(identity))
    looking = _Looking(who, only_messages=messages, full=full, as_json=as_json)
    with connect(identity) as registry:
        begin = _begin(registry, since)
    run_until_told(looking.go_on(begin, load_settings().agent_unhealthy_s))
    raise AgentBridgeError("The stream has ended.")  # it never does by itself


class _Looking:
    """Who looks on, and how they want it shown."""

    def __init__(self, who: Person, *, only_messages: bool, full: bool, as_json: bool) -> None:
        self._who = who
        self._only_messages = only_messages
        self._full = full
        self._as_json = as_json
        self._is_lost = False

    async def go_on(self, since: int | None, unhealthy_s: float) -> None:
        """Show what happens until cancelled."""
        async with (
            present(self._who, unhealthy_s) as presence,
            aclosing(EventStream(self._who.identity, since=since).items()) as items,
        ):
            async for item in items:
                if isinstance(item, Event):
                    self._happened(item, presence)
                elif isinstance(item, Connected):
                    presence.refresh()
                    self._connected(item)
                else:
                    self._lost(item)

    def _happened(self, event: Event, presence: Presence) -> None:
        if event.type in _GONE and event.data.get("agentId") == self._who.agent_id:
            presence.refresh()  # another command of this person has ended, and took the row with it
        if event.type in _QUIET or (self._only_messages and event.type != "channel.message"):
            return
        if self._as_json:
            put(json.dumps(event.frame))
        else:
            put(shown_event(event, full=self._full))

    def _connected(self, item: Connected) -> None:
        if item.gap:
            self._remark("tail.gap", item.gap)
        if self._is_lost:
            self._is_lost = False
            self._remark("tail.connected", "The registry is back.")

    def _lost(self, item: Lost) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._remark("tail.lost", f"{item.why} Waiting until it is back.")

    def _remark(self, kind: str, text: str) -> None:
        if self._as_json:
            put(json.dumps({"type": kind, "text": text}))
        else:
            tell(text)


def _begin(registry: Registry, since: str | None) -> int | None:
    """The number of the event after which to begin; None for from now on."""
    if since is None:
        registry.health()  # nobody there is told before anything else
        return None
    if since.isascii() and since.isdigit():
        return int(since)
    return _before(registry, wall_ms() - int(seconds(since, "--since") * 1000))


def _before(registry: Registry, moment: int) -> int | None:
    """The number just before the first message that was stored after `moment` (wall ms)."""
    numbers: list[int] = []
    for archived in (False, True):
        before: str | None = None
        while True:
            page = registry.conversations(archived=archived, limit=_PAGE, before=before)
            recent = [one for one in page.items if one.updated_at >= moment]
            for one in recent:
                numbers += _numbers(registry, one.conversation_id, moment)
            before = page.next_before
            if before is None or len(recent) < len(page.items):
                break
    return min(numbers) - 1 if numbers else None


def _numbers(registry: Registry, conversation_id: str, moment: int) -> list[int]:
    found: list[int] = []
    before: str | None = None
    while True:
        thread = registry.conversation(conversation_id, limit=_PAGE, before=before)
        recent = [one.seq for one in thread.messages if one.created_at >= moment]
        found += recent
        before = thread.next_before
        if before is None or len(recent) < len(thread.messages):
            return found
