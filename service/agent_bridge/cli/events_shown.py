"""Events of the channel as a person sees them in a stream: one line of ours each, texts indented below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_bridge.cli.event_stream import Event
from agent_bridge.cli.messages_shown import clock, first_line, shown_ack, shown_line, shown_name
from agent_bridge.cli.printing import harmless_line
from agent_bridge.client import answers
from agent_bridge.client.answers import AnswerError

_NEWS = {
    "agent.registered": "is there",
    "agent.deregistered": "has left",
    "agent.removed": "gave no sign of life and was taken out of the list",
    "agent.unhealthy": "gives no sign of life",
}
_CONVERSATIONS = {
    "channel.conversation.suppressed": "is hidden",
    "channel.conversation.revived": "is no longer hidden",
}


def shown_event(event: Event, *, full: bool = False) -> str:
    """One event; what can't be understood is shown by its type and data."""
    data = event.data
    try:
        if event.type == "channel.message":
            return shown_line(answers.message(data), full=full)
        if event.type == "channel.ack":
            return shown_ack(answers.ack(data))
    except AnswerError:
        return _unknown(event)
    if event.type in _NEWS:
        name = f"{shown_name(_said(data, 'name'))} " if data.get("name") else ""
        return f"{clock(event.frame)}  {name}{harmless_line(_said(data, 'agentId'))} {_NEWS[event.type]}"
    if event.type in _CONVERSATIONS:
        conversation = harmless_line(_said(data, "conversationId"))
        return f"{clock(event.frame)}  conversation {conversation} {_CONVERSATIONS[event.type]}"
    if event.type == "task.update":
        by = shown_name(_said(data, "agentName") or _said(data, "agentId"))
        task = harmless_line(_said(data, "taskId"))
        return f"{clock(event.frame)}  {by}: task {task} {shown_name(_said(data, 'state'))}"
    return _unknown(event)


def _unknown(event: Event) -> str:
    return f"{clock(event.frame)}  {shown_name(event.type)}  {first_line(str(dict(event.data)))}"


def _said(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
