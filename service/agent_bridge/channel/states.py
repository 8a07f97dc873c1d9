"""How far a message has come, and what that makes of its conversation. Pure.

A message's state is the highest rank that any ack gave it: late and repeated acks change nothing, and a
genuine late answer beats a timeout. Only what had failed and is sent anew is `queued` again. A conversation
is the roll-up of its messages, carried along with every message and ack (`Roll.with_message`,
`Roll.with_ack`); `roll` reckons the same from scratch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from agent_bridge.channel.model import Ack, AckState, ActorType, ConversationStatus, Kind, Message

NEVER_OPEN = frozenset((Kind.ACK, Kind.PRESENCE))
"""Kinds of messages that no inbox holds, that await no answer and are none."""


def higher(one: AckState, other: AckState) -> AckState:
    """The one that counts."""
    return one if one.rank >= other.rank else other


def after(before: AckState, ack: AckState, actor: ActorType) -> AckState:
    """The state that an ack leaves a message in. `queued`, said by the registry, means that it was sent once
    more: had it failed, it is as if it were new; an answer is never taken back."""
    if ack is AckState.QUEUED and actor is ActorType.REGISTRY and before is AckState.FAILED:
        return ack
    return higher(before, ack)


def awaits_answer(kind: Kind, expects_response: bool, state: AckState) -> bool:  # noqa: FBT001 - as stored
    """Whether a message is pending: it asks for an answer and nothing has ended it."""
    return expects_response and kind not in NEVER_OPEN and not state.is_terminal


def is_open(kind: Kind, expects_response: bool, state: AckState) -> bool:  # noqa: FBT001 - as stored
    """Whether a message belongs in its recipient's inbox: until it is answered or failed, or, where no answer
    is asked for, until it was displayed."""
    if kind in NEVER_OPEN:
        return False
    if expects_response:
        return not state.is_terminal
    return state.rank < AckState.DISPLAYED.rank


def status_of(pending_count: int, outcome: AckState | None, *, expired: bool = False) -> ConversationStatus:
    """A conversation in one word.

    `expired` says whether one of its pending messages has a deadline that is over (steady time); `outcome`
    is the terminal state that one of its messages reached last.
    """
    if pending_count:
        return ConversationStatus.EXPIRED if expired else ConversationStatus.PENDING
    if outcome is AckState.FAILED:
        return ConversationStatus.FAILED
    if outcome is AckState.ANSWERED:
        return ConversationStatus.ANSWERED
    return ConversationStatus.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """A conversation's messages rolled up; the empty one is where every conversation begins.

    `last_message_seq` is the highest seq of a message (a retry moves its message to the end).
    `last_ack_state` is what the last ack that counted made of its message; `outcome` the last of them that
    was terminal, None once a message that had failed was sent anew.
    """

    message_count: int = 0
    pending_count: int = 0
    last_message_seq: int = 0
    last_ack_state: AckState | None = None
    outcome: AckState | None = None

    def with_message(self, kind: Kind, *, expects_response: bool, seq: int) -> Roll:
        """The roll-up with one more message, which is `queued`."""
        return dataclasses.replace(
            self,
            message_count=self.message_count + 1,
            pending_count=self.pending_count + awaits_answer(kind, expects_response, AckState.QUEUED),
            last_message_seq=max(self.last_message_seq, seq),
        )

    def with_retry(self, seq: int) -> Roll:
        """The roll-up after a message was sent once more under a new seq."""
        return dataclasses.replace(self, last_message_seq=max(self.last_message_seq, seq))

    def with_ack(
        self,
        kind: Kind,
        *,
        expects_response: bool,
        before: AckState,
        ack: AckState,
        actor: ActorType = ActorType.CLIENT,
    ) -> Roll:
        """The roll-up after an ack for a message of that kind, whose state was `before`."""
        reached = after(before, ack, actor)
        if reached is before:
            return self
        was, still = (awaits_answer(kind, expects_response, state) for state in (before, reached))
        return dataclasses.replace(
            self,
            pending_count=self.pending_count - was + still,
            last_ack_state=reached,
            outcome=_outcome(self.outcome, before, reached),
        )

    def status(self, *, expired: bool = False) -> ConversationStatus:
        """The conversation in one word, see `status_of`."""
        return status_of(self.pending_count, self.outcome, expired=expired)


def roll(messages: Iterable[Message], acks: Iterable[Ack]) -> Roll:
    """One conversation's roll-up from scratch.

    Takes all its messages (their `state` isn't read) and all acks in seq order; acks for other messages are
    passed over.
    """
    known = {message.message_id: message for message in messages}
    rolled = Roll()
    for message in known.values():
        rolled = rolled.with_message(message.kind, expects_response=message.expects_response, seq=message.seq)
    states = dict.fromkeys(known, AckState.QUEUED)
    for ack in sorted((ack for ack in acks if ack.message_id in known), key=lambda ack: ack.seq):
        message, before = known[ack.message_id], states[ack.message_id]
        rolled = rolled.with_ack(
            message.kind,
            expects_response=message.expects_response,
            before=before,
            ack=ack.state,
            actor=ack.actor_type,
        )
        states[ack.message_id] = after(before, ack.state, ack.actor_type)
    return rolled


def _outcome(outcome: AckState | None, before: AckState, reached: AckState) -> AckState | None:
    if reached.is_terminal:
        return reached
    return None if before.is_terminal else outcome
