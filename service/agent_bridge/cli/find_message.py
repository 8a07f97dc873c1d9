"""The message that a person means by its id or the beginning of it."""

from __future__ import annotations

from collections.abc import Iterator

from agent_bridge.channel.errors import AmbiguousError, UnknownError
from agent_bridge.channel.model import Message
from agent_bridge.cli.messages_shown import first_line, shown_name
from agent_bridge.cli.printing import harmless_line
from agent_bridge.client.http import Registry

_PAGE = 200
_PAGES = 50
_LISTED = 8


def find_message(registry: Registry, agent_id: str, key: str, conversation: str | None) -> Message:
    """The message that `key` means, in that conversation or in the agent's inbox.

    Raises UnknownError, or AmbiguousError with the candidates.
    """
    found: dict[str, Message] = {}
    for message in _where(registry, agent_id, conversation):
        if message.message_id == key:
            return message
        if key and message.message_id.startswith(key):
            found[message.message_id] = message
    if len(found) > 1:
        shown = [
            f"{harmless_line(one.message_id)}  {first_line(one.content)}"
            for one in list(found.values())[:_LISTED]
        ]
        raise AmbiguousError(
            f"{shown_name(key)!r} means several messages.",
            detail="\n".join(shown),
            remedy="Say more of the id.",
        )
    if not found:
        place = "that conversation" if conversation else "the inbox"
        raise UnknownError(
            f"There is no message {shown_name(key)!r} in {place}.",
            remedy="`agent-bridge inbox --all` lists yours; --conversation says where else it is.",
        )
    return next(iter(found.values()))


def _where(registry: Registry, agent_id: str, conversation: str | None) -> Iterator[Message]:
    before: str | None = None
    for _ in range(_PAGES):
        if conversation is not None:
            thread = registry.conversation(conversation, limit=_PAGE, before=before)
            messages, before = thread.messages, thread.next_before
        else:
            page = registry.inbox(agent_id, view="all", limit=_PAGE, before=before)
            messages, before = page.items, page.next_before
        yield from messages
        if before is None:
            return
