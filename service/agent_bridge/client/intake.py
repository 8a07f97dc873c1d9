"""What has arrived and waits to be shown: bounded, each conversation in order, nothing twice. Pure.

There are three modes. `LIVE`: what arrives is queued. `CATCHING_UP`: somebody feeds the messages that were
missed, in order, and what arrives meanwhile is held back until that is finished. `BEHIND`: there was no room
for a message, so it and all later ones are left in the registry's inbox until there is room to fetch them;
taking the later ones first would turn the order round.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable

from agent_bridge.channel.model import Message
from agent_bridge.client.seen import Seen

LIMIT = 1000
LIMIT_BYTES = 64 * 1024 * 1024
_OVERHEAD = 1024
"""Bytes that a message takes beside its content, roughly."""


class Mode(enum.Enum):
    """How what arrives is treated."""

    LIVE = enum.auto()
    CATCHING_UP = enum.auto()
    BEHIND = enum.auto()


class Intake:
    """A queue for each conversation, with one bound for all: `limit` messages, `limit_bytes` bytes.

    `on_taken` is told of each message that was queued. One message is always taken by an empty queue.
    """

    def __init__(
        self,
        seen: Seen,
        on_taken: Callable[[Message], None],
        *,
        limit: int = LIMIT,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.mode = Mode.BEHIND
        self.run = 0
        self._seen = seen
        self._on_taken = on_taken
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._queues: dict[str, deque[Message]] = {}
        self._ready: deque[str] = deque()
        self._busy: set[str] = set()
        self._count = 0
        self._bytes = 0
        self._held: list[Message] = []
        self._held_bytes = 0
        self._full = False
        self._missed = False

    def __len__(self) -> int:
        return self._count

    @property
    def has_room(self) -> bool:
        """Whether fetching is worth its while: at least half of the room is free."""
        return self._count * 2 <= self._limit and self._bytes * 2 <= self._limit_bytes

    def arrive(self, message: Message) -> None:
        """A message came in by itself."""
        if self.mode is Mode.LIVE:
            if not self._queue(message):
                self.mode = Mode.BEHIND
        elif self.mode is Mode.CATCHING_UP:
            self._hold(message)

    def start(self) -> int:
        """Begin to catch up: what was missed is fed from now on. `run` is this number until that is over."""
        self.mode = Mode.CATCHING_UP
        self.run += 1
        self._drop_held()
        self._full = self._missed = False
        return self.run

    def feed(self, message: Message) -> bool:
        """The next one of those that were missed, oldest first. False: no room, go on another time."""
        if not self._full:
            self._full = not self._queue(message)
        return not self._full

    def finish(self) -> None:
        """All that was missed has been fed; what arrived meanwhile follows."""
        held = self._held
        self.mode = Mode.BEHIND if self._full or self._missed else Mode.LIVE
        self._drop_held()
        for message in held:
            self.arrive(message)

    def break_off(self, mode: Mode) -> None:
        """Catching up was interrupted. `mode` is how things stand then; what didn't fit stays left behind."""
        self.mode = Mode.BEHIND if self._full or self._missed else mode
        self._drop_held()

    def fall_behind(self) -> None:
        """Something may be missing, nobody knows what: it has to be fetched."""
        self.mode = Mode.BEHIND
        self.run += 1
        self._drop_held()

    def take(self) -> Message | None:
        """The next message whose conversation isn't being shown one already; `done` must follow."""
        while self._ready:
            conversation_id = self._ready.popleft()
            queue = self._queues[conversation_id]
            while queue:
                message = queue.popleft()
                self._count -= 1
                self._bytes -= _size(message)
                if self._seen.is_due(message.message_id, message.attempt_count):
                    self._busy.add(conversation_id)
                    return message
            del self._queues[conversation_id]
        return None

    def done(self, message: Message) -> None:
        """That message is dealt with; its conversation's next one may be taken."""
        self._busy.discard(message.conversation_id)
        queue = self._queues.get(message.conversation_id)
        if queue:
            self._ready.append(message.conversation_id)
        else:
            self._queues.pop(message.conversation_id, None)

    def again(self, message: Message) -> None:
        """That message has to be shown once more, before all others of its conversation."""
        self._busy.discard(message.conversation_id)
        self._queues.setdefault(message.conversation_id, deque()).appendleft(message)
        self._count += 1
        self._bytes += _size(message)
        self._ready.append(message.conversation_id)

    def _queue(self, message: Message) -> bool:
        size = _size(message)
        full = self._count >= self._limit or self._bytes + size > self._limit_bytes
        if full and self._count:
            return False
        if not self._seen.admit(message.message_id, message.attempt_count):
            return True
        queue = self._queues.setdefault(message.conversation_id, deque())
        queue.append(message)
        self._count += 1
        self._bytes += size
        if len(queue) == 1 and message.conversation_id not in self._busy:
            self._ready.append(message.conversation_id)
        self._on_taken(message)
        return True

    def _hold(self, message: Message) -> None:
        size = _size(message)
        if len(self._held) >= self._limit or self._held_bytes + size > self._limit_bytes:
            self._missed = True
        elif not self._missed:
            self._held.append(message)
            self._held_bytes += size

    def _drop_held(self) -> None:
        self._held = []
        self._held_bytes = 0


def _size(message: Message) -> int:
    return len(message.content) + (len(repr(message.meta)) if message.meta else 0) + _OVERHEAD
