"""The tool `channel_clear`: threads that are done are put away, for this session alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agent_bridge.channel.ids import MAX_ID
from agent_bridge.channel.model import ConversationStatus
from agent_bridge.channel.plain import one_line
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.writes import Revive, Suppress
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.own_row import present
from agent_bridge.mcp.tool import Answer, Hints, Parameters, Tool

if TYPE_CHECKING:
    from agent_bridge.channel.storage.store import Store

LOOKED_AT = 1_000
"""Threads that one call looks at, the newest first."""
_STEP = 5
_AT_ONCE = 50
_TOLD = 20
_STATUSES: dict[str, frozenset[ConversationStatus]] = {
    "answered": frozenset((ConversationStatus.ANSWERED,)),
    "failed": frozenset((ConversationStatus.FAILED, ConversationStatus.EXPIRED)),
    "all": frozenset(ConversationStatus) - {ConversationStatus.PENDING},
}


class ChannelClearParameters(Parameters):
    """Which threads."""

    scope: str = Field(
        min_length=1,
        description="answered, failed (also expired), all (whatever awaits nobody), or one conversationId.",
    )


async def channel_clear(call: Call, wanted: ChannelClearParameters) -> Answer:
    """Hide threads from this session's lists; a new message shows them again."""
    session = call.session
    identity, agent_id = session.hello.identity, session.agent_id
    await present(call)
    scope = wanted.scope.strip()
    statuses = _STATUSES.get(scope)
    if statuses is None:
        agents, is_for_all = await session.channel.read(lambda store: store.agents_in(identity, scope))
        names = [scope] if agent_id in agents or is_for_all else []
        has_more = False
    else:
        names, has_more = await session.channel.read(
            lambda store: _matching(store, identity, agent_id, statuses)
        )
    cleared, failed = await _hide(call, names)
    if statuses is not None:
        cleared = await _without_new(call, cleared)
    return _answer(scope, cleared, failed, has_more=has_more)


def _matching(
    store: Store, identity: str, agent_id: str, statuses: frozenset[ConversationStatus]
) -> tuple[list[str], bool]:
    """The agent's threads in one of these states in which nothing awaits it; whether there may be more."""
    unread = {one.conversation_id for one in store.awaiting(identity, agent_id, "open")}
    query = ConversationQuery(
        identity=identity, participant=agent_id, agent_id=agent_id, archived=None, limit=_STEP
    )
    found: list[str] = []
    for _ in range(LOOKED_AT // _STEP):
        page = store.conversations(query)
        found += [
            one.conversation_id
            for one in page.items
            if one.status in statuses and one.conversation_id not in unread
        ]
        if page.next is None:
            return found, False
        query = replace(query, before=page.next)
    return found, True


async def _hide(call: Call, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Hide them; those that are hidden now, and why the others aren't."""
    session = call.session
    cleared: list[str] = []
    failed: dict[str, str] = {}
    for begin in range(0, len(names), _AT_ONCE):
        some = names[begin : begin + _AT_ONCE]
        writes = [Suppress(session.hello.identity, session.agent_id, name) for name in some]
        outcomes = await asyncio.gather(*map(session.channel.write, writes), return_exceptions=True)
        for name, outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, AgentBridgeError):
                failed[name] = outcome.sentence()
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                cleared.append(name)
    return cleared, failed


async def _without_new(call: Call, cleared: list[str]) -> list[str]:
    """Show again what got a message while it was being put away: nothing unanswered disappears."""
    session = call.session
    identity, agent_id = session.hello.identity, session.agent_id
    if not cleared:
        return cleared
    unread = {
        one.conversation_id
        for one in await session.channel.read(
            lambda store: store.awaiting(identity, agent_id, "open", with_hidden=True)
        )
    }
    for name in unread.intersection(cleared):
        await session.channel.write(Revive(identity, agent_id, name))
    return [name for name in cleared if name not in unread]


def _answer(scope: str, cleared: list[str], failed: dict[str, str], *, has_more: bool) -> Answer:
    lines = [f"Cleared {len(cleared)} conversation(s) from the inbox (scope: {one_line(scope, MAX_ID)})."]
    data: dict[str, Any] = {"scope": scope, "cleared": len(cleared), "failed": []}
    if failed:
        told = list(failed.items())[:_TOLD]
        lines.append(f"{len(failed)} couldn't be cleared, and are still there:")
        lines += [f"  {one_line(name, MAX_ID)}: {why}" for name, why in told]
        data["failed"] = [{"conversationId": name, "reason": why} for name, why in told]
        data["failedCount"] = len(failed)
    if has_more:
        lines.append(f"There may be older ones: the {LOOKED_AT:,} newest were looked at. Call it again.")
        data["more"] = True
    return Answer("\n".join(lines), data, is_error=bool(failed) and not cleared)


CHANNEL_CLEAR = Tool(
    name="channel_clear",
    title="Put threads away",
    description=(
        "Put threads that are done out of this session's inbox; nothing is deleted, the other side still has"
        " them, and a new message brings one back. scope is `answered`, `failed` (expired too), `all`"
        " (everything but what awaits an answer or wasn't read), or the id of one conversation, which goes"
        " even if it awaits you."
    ),
    parameters=ChannelClearParameters,
    output_schema={
        "type": "object",
        "properties": {
            "scope": {"type": "string"},
            "cleared": {"type": "integer"},
            "failed": {"type": "array"},
        },
        "required": ["scope", "cleared", "failed"],
    },
    hints=Hints(idempotent=True),
    run=channel_clear,
)
