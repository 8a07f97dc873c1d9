"""Messages in an answer: whole, cut, or by their beginning. Pure.

What others wrote stands between marked lines that it can't contain, or in quotes on one line; names and ids
stand on one line each. So nothing in a message can pass for another message, or for words of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent_bridge.channel.ids import MAX_ID
from agent_bridge.channel.model import AckState, Message
from agent_bridge.channel.plain import one_line
from agent_bridge.channel.prompt import cleaned, fenced
from agent_bridge.mcp.bounded import Part, bytes_of, first_bytes, quoted

PREVIEW = 160
"""Characters of a text that are shown where all of it isn't asked for."""
_NAME = 80
_AROUND = 400
"""Bytes of fence, offsets and the like around a text."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as it was shown; `is_whole`: the reader has now got its text up to the end."""

    message: Message
    part: Part
    is_whole: bool
    next_offset: int | None = None


def previewed(message: Message) -> Shown:
    """Its beginning on one line; a text that isn't longer than that is there in full."""
    text = cleaned(message.content)
    if len(text) <= PREVIEW:
        lines = [_head(message), f"  text: {quoted(text)}"]
        return Shown(
            message, Part("\n".join(lines), _data(message, len(text)) | {"content": text}), is_whole=True
        )
    preview = one_line(text, PREVIEW)
    lines = [
        _head(message),
        f"  begins: {quoted(preview)}",
        f"  All {len(text):,} characters: channel_inbox(messageId={quoted(message.message_id)})",
    ]
    return Shown(
        message, Part("\n".join(lines), _data(message, len(text)) | {"preview": preview}), is_whole=False
    )


def whole(message: Message, most: int, *, offset: int = 0, can_be_cut: bool = True) -> Shown | None:
    """Its text from `offset` (characters) on, so much as `most` bytes have room for; None where it would have
    to be cut and may not be."""
    text = cleaned(message.content)
    offset = min(offset, len(text))
    head, data = _head(message), _data(message, len(text))
    around = Part(head, data).weight() + _AROUND + bytes_of(message.message_id)
    shown = first_bytes(text[offset:], max(most - around, 0))
    end = offset + len(shown)
    if end < len(text) and (not can_be_cut or not shown):
        return None
    lines = [head, fenced(shown, message.message_id, message.from_agent_id)]
    data["content"] = shown
    if offset or end < len(text):
        lines.append(f"(Characters {offset:,} to {end:,} of {len(text):,}.)")
        data |= {"offset": offset}
    if end < len(text):
        lines.append(f"The rest: channel_inbox(messageId={quoted(message.message_id)}, offset={end})")
        data |= {"nextOffset": end}
    return Shown(
        message,
        Part("\n".join(lines), data),
        is_whole=end == len(text),
        next_offset=None if end == len(text) else end,
    )


def wants_receipt(shown: Shown, agent_id: str) -> bool:
    """Whether it is to be told that this agent has seen the message."""
    message = shown.message
    return (
        shown.is_whole
        and message.from_agent_id != agent_id
        and message.to_agent_id in (None, agent_id)
        and (message.to_agent_id is None or message.state.rank < AckState.DISPLAYED.rank)
    )


def name_of(message: Message) -> str:
    """Who wrote it, as they call themselves."""
    return one_line(message.from_agent_name or "", _NAME)


def _head(message: Message) -> str:
    to = "everybody" if message.to_agent_id is None else one_line(message.to_agent_id, MAX_ID)
    name = name_of(message)
    sender = one_line(message.from_agent_id, MAX_ID)
    facts = [f"state {message.state.value}"]
    if message.expects_response and not message.state.is_terminal:
        facts.append("awaits an answer")
    if message.reply_to:
        facts.append(f"in reply to {one_line(message.reply_to, MAX_ID)}")
    return (
        f"Message {one_line(message.message_id, MAX_ID)} from {sender}{f' ({name})' if name else ''} to {to},"
        f" {_moment(message.created_at)}; {'; '.join(facts)}"
    )


def _data(message: Message, length: int) -> dict[str, Any]:
    data: dict[str, Any] = {
        "messageId": message.message_id,
        "fromAgentId": message.from_agent_id,
        "fromAgentName": name_of(message),
        "createdAt": message.created_at,
        "state": message.state.value,
        "expectsResponse": message.expects_response,
        "length": length,
    }
    if message.to_agent_id is not None:
        data["toAgentId"] = message.to_agent_id
    if message.reply_to is not None:
        data["replyTo"] = message.reply_to
    if message.expires_at is not None:
        data["expiresAt"] = message.expires_at
    if message.task_id is not None:
        data["taskId"] = one_line(message.task_id, MAX_ID)
    return data


def _moment(wall_ms: int) -> str:
    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{wall_ms} ms"
