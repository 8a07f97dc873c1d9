"""Messages and conversations as a person sees them. What others wrote is indented below a head of ours.

`printing` makes control characters, terminal escapes and marks that reorder text visible; here names and ids
are kept on one line, so that no text can pass for a head, and long texts are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent_bridge.channel.model import Ack, AckState, Conversation, ConversationStatus, Message
from agent_bridge.cli.printing import harmless_line
from agent_bridge.cli.result import Table, counted

CONTENT_MOST = 2000
"""Characters of a text that are shown where it isn't asked for in full."""
LINES_MOST = 40
"""Lines of it."""
_NAME_MOST = 60
_YOU = "you"
_FIRST_LINE = 80
_RECEIPTS = {
    AckState.QUEUED: "stored",
    AckState.DELIVERED: "delivered",
    AckState.DISPLAYED: "displayed",
    AckState.FAILED: "failed",
    AckState.ANSWERED: "answered",
}


def receipt(state: AckState) -> str:
    """How far a message has come, in one word: stored, delivered, displayed, failed or answered."""
    return _RECEIPTS[state]


def moment(wall_ms: int) -> str:
    """A wall time in ms as local date and time."""
    try:
        return datetime.fromtimestamp(wall_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{wall_ms} ms"


def shown_name(text: str) -> str:
    """A name or an id on one line, cut where it is long."""
    line = harmless_line(text)
    return line if len(line) <= _NAME_MOST else line[: _NAME_MOST - 1] + "…"


def sender(message: Message, me: str | None = None) -> str:
    """Who wrote it: the name that they gave, and the id that the answer goes to; `me` is the reader's id."""
    if message.from_agent_id == me:
        return _YOU
    if message.from_agent_name and message.from_agent_name != message.from_agent_id:
        return f"{shown_name(message.from_agent_name)} ({harmless_line(message.from_agent_id)})"
    return _party(message.from_agent_id, me)


def _party(agent_id: str, me: str | None) -> str:
    """An id, or that it is the reader; nobody else passes for that."""
    if agent_id == me:
        return _YOU
    return repr(agent_id) if agent_id.casefold() == _YOU else harmless_line(agent_id)


def shown_message(
    message: Message, *, full: bool = False, now: int | None = None, me: str | None = None
) -> str:
    """One message with its head; `now` (wall ms) tells whether its time is over, `me` is the reader's id."""
    to = "everybody" if message.to_agent_id is None else _party(message.to_agent_id, me)
    lines = [
        f"{moment(message.created_at)}  {sender(message, me)} -> {to}",
        f"  {', '.join(_remarks(message, now))}",
        f"  message {harmless_line(message.message_id)}",
        f"  conversation {harmless_line(message.conversation_id)}",
    ]
    if message.reply_to:
        lines[2] += f", in reply to {harmless_line(message.reply_to)}"
    return "\n".join([*lines, "", indented(message.content, full=full)])


def clock(frame: Mapping[str, Any]) -> str:
    """When the registry told of an event, as `moment`; empty where it doesn't say."""
    try:
        told = datetime.fromisoformat(str(frame.get("timestamp")))
    except ValueError:
        return ""
    return moment(int(told.timestamp() * 1000))


def shown_line(message: Message, *, full: bool = False) -> str:
    """One message on one line, for a stream of many; the text follows below it, indented."""
    to = "everybody" if message.to_agent_id is None else shown_name(message.to_agent_id)
    name = shown_name(message.from_agent_name or message.from_agent_id)
    question = ", awaits an answer" if message.expects_response else ""
    again = f", attempt {message.attempt_count}" if message.attempt_count > 1 else ""
    head = f"{moment(message.created_at)}  {name} -> {to}  {message.kind.value}{question}{again}"
    return f"{head}  {harmless_line(message.message_id)}\n{indented(message.content, full=full)}"


def shown_ack(ack: Ack) -> str:
    """One ack on one line."""
    detail = f": {first_line(ack.detail)}" if ack.detail else ""
    return (
        f"{moment(ack.timestamp)}  {receipt(ack.state)}  {harmless_line(ack.message_id)}"
        f"  by {shown_name(ack.actor_id)}{detail}"
    )


def indented(text: str, *, full: bool = False) -> str:
    """A text of somebody else's, set in by four blanks, cut with a note of what is missing."""
    # splitlines would break at signs that `printing` shows; only these two are line breaks here.
    lines = text.replace("\r\n", "\n").split("\n")
    shown = lines if full else "\n".join(lines[:LINES_MOST])[:CONTENT_MOST].split("\n")
    left = len("\n".join(lines)) - len("\n".join(shown))
    body = "\n".join(f"    {line}".rstrip() for line in shown)
    return body if not left else f"{body}\n  … and {counted(left, 'character')} more: `--full` shows all."


def first_line(text: str) -> str:
    """The beginning of a text, on one line."""
    line = harmless_line(text.strip())
    return line if len(line) <= _FIRST_LINE else line[: _FIRST_LINE - 1] + "…"


def conversation_table(conversations: tuple[Conversation, ...], me: str | None = None) -> Table:
    """The list of conversations; piped: id, status, time, the last text and who takes part."""
    rows = tuple(
        (
            one.conversation_id,
            _status(one),
            moment(one.updated_at),
            first_line(one.last_message.content),
            _parties(one, me),
        )
        for one in conversations
    )
    return Table(("conversation", "status", "last", "last text", "between"), rows, piped=(0, 1, 2, 3, 4))


def _parties(one: Conversation, me: str | None) -> str:
    return ", ".join(_party(name, me) for name in sorted(one.participants, key=lambda name: name != me))


def _status(one: Conversation) -> str:
    pending = one.status in (ConversationStatus.PENDING, ConversationStatus.EXPIRED)
    words = [f"{one.status.value} ({one.pending_count})" if pending else one.status.value]
    words += ["archived"] if one.archived else []
    words += ["hidden"] if one.suppressed else []
    return ", ".join(words)


def _remarks(message: Message, now: int | None) -> list[str]:
    remarks = [message.kind.value, receipt(message.state)]
    if message.expects_response and not message.state.is_terminal:
        remarks.append("awaits an answer")
    if message.attempt_count > 1:
        remarks.append(f"attempt {message.attempt_count}")
    if message.expires_at is not None:
        over = now is not None and message.expires_at <= now
        remarks.append(f"{'expired' if over else 'expires'} {moment(message.expires_at)}")
    return remarks
