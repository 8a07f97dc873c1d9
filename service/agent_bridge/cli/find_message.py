"""The message that a person means by its id or the beginning of it."""

from __future__ import annotations

from collections.abc import Iterator

from agent_bridge.channel.errors import AmbiguousError, InvalidError, UnknownError
from agent_bridge.channel.model import Message
from agent_bridge.cli.messages_shown import first_line, shown_name
from agent_bridge.cli.printing import harmless_line
from agent_bridge.client.http import Registry, View

_PAGE = 200
_MOST_PAGES = 50
_VIEWS: tuple[View, ...] = ("open", "all")
_LISTED = 8


def find_message(registry: Registry, agent_id: str, key: str, conversation: str | None) -> Message:
    """The message that `key` means: its id, or the beginning of it in that conversation or the agent's inbox.

    Raises UnknownError, or AmbiguousError with the candidates.
    """
    whole = _whole(registry, key, conversation)
    if whole is not None:
        return whole
    found: dict[str, Message] = {}
    for messages in _pages(registry, agent_id, conversation):
        for message in messages:
            if key and message.message_id.startswith(key):
                found[message.message_id] = message
    if len(found) > 1:
        shown = [f"{harmless_line(one.message_id)}  {first_line(one.content)}" for one in found.values()]
        raise AmbiguousError(
            f"{shown_name(key)!r} means several messages.",
            detail="\n".join(shown[:_LISTED]),
            remedy="Say more of the id.",
        )
    if not found:
        place = "that conversation" if conversation else "the inbox"
        raise UnknownError(
            f"There is no message {shown_name(key)!r} in {place}.",
            remedy="`agent-bridge inbox --all` lists what came; others need the whole id.",
        )
    return next(iter(found.values()))


def _whole(registry: Registry, key: str, conversation: str | None) -> Message | None:
    """The message with exactly that id, if it is where it should be."""
    if not key:
        return None
    try:
        found = registry.message(key)
    except (InvalidError, UnknownError):
        return None
    return found if conversation in (None, found.conversation_id) else None


def _pages(registry: Registry, agent_id: str, conversation: str | None) -> Iterator[tuple[Message, ...]]:
    """Where it may be: in the conversation; else in the inbox, what still awaits its recipient first."""
    before: str | None = None
    for view in _VIEWS if conversation is None else _VIEWS[:1]:
        for _ in range(_MOST_PAGES):
            if conversation is None:
                page = registry.inbox(agent_id, view=view, limit=_PAGE, before=before)
                messages, before = page.items, page.next_before
            else:
                thread = registry.conversation(conversation, limit=_PAGE, before=before)
                messages, before = thread.messages, thread.next_before
            yield messages
            if before is None:
                break
        before = None
