"""The queue of what has arrived: bounded, each conversation in order, nothing twice, nothing lost."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_bridge.channel.model import Kind, Message
from agent_bridge.client.intake import Intake, Mode
from agent_bridge.client.seen import Seen


def message(
    seq: int, conversation: str = "c", attempt: int = 1, name: str = "", content: str = "x"
) -> Message:
    return Message(
        seq=seq,
        identity="global",
        conversation_id=conversation,
        message_id=name or f"m{seq}",
        from_agent_id="a",
        kind=Kind.CHAT,
        content=content,
        created_at=1,
        expects_response=False,
        attempt_count=attempt,
    )


def live(limit: int = 10, limit_bytes: int = 1 << 30) -> Intake:
    intake = Intake(Seen(), lambda _message: None, limit=limit, limit_bytes=limit_bytes)
    intake.start()
    intake.finish()
    return intake


def drained(intake: Intake) -> list[int]:
    found = []
    while (one := intake.take()) is not None:
        found.append(one.seq)
        intake.done(one)
    return found


def test_it_begins_behind_and_takes_nothing_by_itself() -> None:
    intake = Intake(Seen(), lambda _message: None)
    intake.arrive(message(1))
    assert (intake.mode, len(intake), intake.take()) == (Mode.BEHIND, 0, None)


def test_a_conversation_is_shown_one_at_a_time_and_others_beside_it() -> None:
    intake = live()
    for one in (message(1, "a"), message(2, "a"), message(3, "b")):
        intake.arrive(one)
    first, second = intake.take(), intake.take()
    assert first is not None
    assert second is not None
    assert (first.seq, second.seq) == (1, 3)
    assert intake.take() is None
    intake.done(second)
    assert intake.take() is None
    intake.done(first)
    assert drained(intake) == [2]


def test_who_has_to_be_shown_again_comes_before_the_others_of_its_conversation() -> None:
    intake = live()
    intake.arrive(message(1))
    intake.arrive(message(2))
    first = intake.take()
    assert first is not None
    assert intake.take() is None
    intake.again(first)
    assert drained(intake) == [1, 2]


def test_what_does_not_fit_and_all_after_it_is_left_to_be_fetched() -> None:
    intake = live(limit=2)
    for seq in range(1, 6):
        intake.arrive(message(seq))
    assert (intake.mode, len(intake)) == (Mode.BEHIND, 2)
    assert not intake.has_room
    assert drained(intake) == [1, 2]
    intake.arrive(message(6))
    assert drained(intake) == []
    assert intake.has_room
    intake.start()
    assert [intake.feed(message(seq)) for seq in range(1, 7)] == [True, True, True, True, False, False]
    intake.finish()
    assert intake.mode is Mode.BEHIND
    assert drained(intake) == [3, 4]


def test_what_arrives_while_catching_up_comes_after_what_was_missed() -> None:
    intake = live()
    intake.fall_behind()
    intake.start()
    intake.arrive(message(3))
    intake.arrive(message(4))
    for seq in (1, 2, 3):
        assert intake.feed(message(seq))
    intake.finish()
    assert intake.mode is Mode.LIVE
    assert drained(intake) == [1, 2, 3, 4]


def test_what_cannot_be_held_back_is_fetched_again() -> None:
    intake = live(limit=2)
    intake.start()
    for seq in (2, 3, 4, 5):
        intake.arrive(message(seq))
    intake.feed(message(1))
    intake.finish()
    assert intake.mode is Mode.BEHIND
    assert drained(intake) == [1]


def test_breaking_off_forgets_what_was_held_back() -> None:
    intake = live()
    run = intake.start()
    intake.feed(message(1))
    intake.arrive(message(3))
    intake.break_off(Mode.LIVE)
    assert intake.mode is Mode.LIVE
    assert drained(intake) == [1]
    assert intake.start() != run
    intake.feed(message(2))
    intake.arrive(message(3))
    intake.finish()
    assert drained(intake) == [2, 3]


def test_bytes_are_bounded_too_but_one_message_always_fits() -> None:
    intake = live(limit_bytes=5000)
    intake.arrive(message(1, content="x" * 100_000))
    intake.arrive(message(2))
    assert (intake.mode, len(intake)) == (Mode.BEHIND, 1)


def test_a_retry_that_waits_behind_its_first_attempt_replaces_it() -> None:
    intake = live()
    intake.arrive(message(1, name="m"))
    intake.arrive(message(2, name="n"))
    intake.arrive(message(3, name="m", attempt=2))
    assert drained(intake) == [2, 3]


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_each_conversation_keeps_its_order(conversations: list[str]) -> None:
    intake = live(limit=100)
    for seq, conversation in enumerate(conversations):
        intake.arrive(message(seq, conversation))
    shown: dict[str, list[int]] = defaultdict(list)
    while (one := intake.take()) is not None:
        shown[one.conversation_id].append(one.seq)
        intake.done(one)
    assert shown == {
        name: [seq for seq, one in enumerate(conversations) if one == name] for name in set(conversations)
    }


class Channel(RuleBasedStateMachine):
    """A registry with an inbox, a connection that comes and goes, and an intake with room for three."""

    @initialize()
    def begin(self) -> None:
        self.log: list[Message] = []
        self.shown: list[Message] = []
        self.busy: list[Message] = []
        self.intake = Intake(Seen(), lambda _message: None, limit=3)
        self.pages: list[Message] | None = None

    @rule(conversation=st.sampled_from("ab"), arrives=st.booleans())
    def send(self, conversation: str, arrives: bool) -> None:
        """`arrives` False: while there is no connection, so that it has to be fetched later."""
        one = message(len(self.log), conversation)
        self.log.append(one)
        if arrives:
            self.intake.arrive(one)
        else:
            self.pages = None
            self.intake.fall_behind()

    @precondition(lambda self: self.intake.mode is Mode.BEHIND)
    @rule()
    def begin_to_fetch(self) -> None:
        self.intake.start()
        self.pages = [one for one in self.log if one not in self.shown]

    @precondition(lambda self: self.pages is not None)
    @rule()
    def feed_all(self) -> None:
        for one in self.pages or ():
            if not self.intake.feed(one):
                break
        self.intake.finish()
        self.pages = None

    @precondition(lambda self: self.pages is not None)
    @rule()
    def lose_the_connection(self) -> None:
        self.intake.break_off(Mode.BEHIND)
        self.pages = None

    @rule()
    def take(self) -> None:
        one = self.intake.take()
        if one is not None:
            self.busy.append(one)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), shown=st.booleans())
    def finish_one(self, data: st.DataObject, shown: bool) -> None:
        one = self.busy.pop(data.draw(st.integers(0, len(self.busy) - 1)))
        if shown:
            self.shown.append(one)
            self.intake.done(one)
        else:
            self.intake.again(one)

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "intake"):
            assert len(self.intake) <= 3 + 2  # two that have to be shown again

    @invariant()
    def in_order_and_once(self) -> None:
        for conversation in "ab" if hasattr(self, "shown") else ():
            seqs = [one.seq for one in self.shown if one.conversation_id == conversation]
            sent = [one.seq for one in self.log if one.conversation_id == conversation]
            assert seqs == sent[: len(seqs)]

    def teardown(self) -> None:
        """Once everything is quiet, everything was shown."""
        if not hasattr(self, "intake"):
            return
        for _ in range(2 * len(self.log) + 3):
            if self.pages is not None:
                self.feed_all()
            if self.intake.mode is Mode.BEHIND:
                self.begin_to_fetch()
                self.feed_all()
            while self.busy:
                one = self.busy.pop()
                self.shown.append(one)
                self.intake.done(one)
            while (taken := self.intake.take()) is not None:
                self.shown.append(taken)
                self.intake.done(taken)
        self.in_order_and_once()
        assert len(self.shown) == len(self.log)


TestChannel = Channel.TestCase
