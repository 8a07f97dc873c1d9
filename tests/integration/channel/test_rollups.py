"""Random writes by three identities, each compared with a plain model of the rules."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_bridge.channel.errors import TooManyError, UnknownError
from agent_bridge.channel.model import AckState, ActorType, Kind
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.writes import Acknowledge, Acknowledged, Done, Retry, Revive, Send, Sent, Suppress
from integration.channel.records import Records, draft

IDENTITIES = ("red", "green", "blue")
AGENTS = ("ann", "bob", "cid")
THREADS = ("c1", "c2", "c3")
MESSAGES = tuple(f"m{number}" for number in range(8))
INBOX_LIMIT = 3
DAY = 86_400_000

identities, agents, threads, messages = map(st.sampled_from, (IDENTITIES, AGENTS, THREADS, MESSAGES))


@dataclass
class Known:
    """A message as the rules have it."""

    thread: str
    sender: str
    to: str | None
    kind: Kind
    asks: bool
    seq: int
    due: int | None
    state: AckState = AckState.QUEUED
    attempts: int = 1
    seen: set[str] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        if self.kind is Kind.PRESENCE:
            return False
        return self.state.rank < (3 if self.asks else 2)

    def awaits(self, agent: str, now: int) -> bool:
        if self.kind is Kind.PRESENCE or (self.due is not None and self.due <= now):
            return False
        return self.is_open and self.to == agent if self.to else agent not in self.seen | {self.sender}


@dataclass
class Partition:
    """One identity as the rules have it."""

    messages: dict[str, Known] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)
    archived: set[str] = field(default_factory=set)
    touched: dict[str, int] = field(default_factory=dict)
    outcome: dict[str, AckState] = field(default_factory=dict)

    def ack(self, message: Known, state: AckState, actor: str, now: int) -> None:
        if message.to is None and state in (AckState.DISPLAYED, AckState.ANSWERED):
            message.seen.add(actor)
        if state.rank > message.state.rank:
            message.state = state
            if state.is_terminal:
                self.outcome[message.thread] = state
        self.touched[message.thread] = now

    def pending(self, thread: str) -> set[str]:
        return {
            name for name, one in self.messages.items() if one.thread == thread and one.asks and one.is_open
        }

    def ended(self, thread: str) -> bool:
        return not self.pending(thread) and thread in self.outcome


class Channel(RuleBasedStateMachine):
    """The store beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="abroll"))
        self.records = Records(Place.file(self.directory / "channel.sqlite"), inbox_limit=INBOX_LIMIT)
        self.records.store.open()
        self.parts = {identity: Partition() for identity in IDENTITIES}
        self.seq = 0

    def teardown(self) -> None:
        self.records.store.close()
        shutil.rmtree(self.directory)

    @property
    def now(self) -> int:
        return self.records.clock.wall

    @rule(
        identity=identities,
        name=messages,
        thread=threads,
        sender=agents,
        to=st.none() | agents,
        asks=st.booleans(),
        reply_to=st.none() | messages,
        kind=st.sampled_from((Kind.CHAT, Kind.CHAT, Kind.PRESENCE)),
        lasts=st.none() | st.sampled_from((50, 150)),
    )
    def send(
        self,
        identity: str,
        name: str,
        thread: str,
        sender: str,
        to: str | None,
        asks: bool,
        reply_to: str | None,
        kind: Kind,
        lasts: int | None,
    ) -> None:
        part = self.parts[identity]
        due = None if lasts is None else self.now + lasts
        write = Send(
            draft(
                f"{identity} {name}",
                identity=identity,
                message_id=name,
                conversation_id=thread,
                from_agent_id=sender,
                to_agent_id=to,
                expects_response=asks,
                reply_to=reply_to,
                kind=kind,
                expires_at=due,
            )
        )
        new = Known(thread, sender, to, kind, asks, 0, due)
        if name not in part.messages and to is not None and new.is_open and self.is_full(part, to):
            with pytest.raises(TooManyError):
                self.records.store.call(write)
            return
        sent = self.records.store.call(write)
        assert isinstance(sent, Sent)
        if name in part.messages:
            assert sent.deduplicated
            assert sent.events == ()
            return
        revived = {pair for pair in part.hidden if pair[1] == thread}
        part.hidden -= revived
        part.archived.discard(thread)
        part.messages[name] = new
        part.touched[thread] = self.now
        asked = part.messages.get(reply_to or "") if reply_to != name else None
        answers = (
            asked is not None
            and kind is not Kind.PRESENCE
            and asked.thread == thread
            and (sender == asked.to if asked.to else sender != asked.sender)
            and (asked.is_open or (asked.asks and asked.state is AckState.FAILED))
            and asked.kind is not Kind.PRESENCE
        )
        types = ["channel.conversation.revived"] * len(revived) + ["channel.message"]
        if answers and asked is not None:
            part.ack(asked, AckState.ANSWERED, sender, self.now)
            types.append("channel.ack")
        assert [event.type for event in sent.events] == types
        new.seq = sent.message.seq
        self.drew(sent)

    @rule(
        identity=identities,
        name=messages,
        thread=threads,
        state=st.sampled_from(AckState),
        actor=agents,
    )
    def ack(self, identity: str, name: str, thread: str, state: AckState, actor: str) -> None:
        part = self.parts[identity]
        write = Acknowledge(
            identity=identity,
            conversation_id=thread,
            message_id=name,
            state=state,
            actor_id=actor,
            actor_type=ActorType.CLIENT,
        )
        known = part.messages.get(name)
        if known is None or known.thread != thread:
            with pytest.raises(UnknownError):
                self.records.store.call(write)
            return
        outcome = self.records.store.call(write)
        assert isinstance(outcome, Acknowledged)
        part.ack(known, state, actor, self.now)
        assert outcome.message.state is known.state
        self.drew(outcome)

    @rule(identity=identities, name=messages)
    def retry(self, identity: str, name: str) -> None:
        part = self.parts[identity]
        known = part.messages.get(name)
        if known is None:
            with pytest.raises(UnknownError):
                self.records.store.call(Retry(identity, "c1", name))
            return
        if known.state is AckState.FAILED and known.to and self.is_full(part, known.to):
            with pytest.raises(TooManyError):
                self.records.store.call(Retry(identity, known.thread, name))
            return
        sent = self.records.store.call(Retry(identity, known.thread, name))
        assert isinstance(sent, Sent)
        if known.state is AckState.FAILED:
            known.state = AckState.QUEUED
            part.outcome.pop(known.thread, None)
        known.attempts += 1
        known.seq = sent.message.seq
        known.seen.clear()
        known.due = sent.message.expires_at
        part.hidden = {pair for pair in part.hidden if pair[1] != known.thread}
        part.archived.discard(known.thread)
        part.touched[known.thread] = self.now
        assert sent.message.attempt_count == known.attempts
        self.drew(sent)

    @rule(identity=identities, agent=agents, thread=threads, hide=st.booleans())
    def suppress_or_revive(self, identity: str, agent: str, thread: str, hide: bool) -> None:
        part = self.parts[identity]
        if hide and thread not in part.touched:
            with pytest.raises(UnknownError):
                self.records.store.call(Suppress(identity, agent, thread))
            return
        write = Suppress if hide else Revive
        done = self.records.store.call(write(identity, agent, thread))
        assert isinstance(done, Done)
        assert done.changed == (((agent, thread) in part.hidden) != hide)
        part.hidden = part.hidden | {(agent, thread)} if hide else part.hidden - {(agent, thread)}
        self.drew(done)

    @rule(ms=st.sampled_from((1, 50, 100)))
    def time_passes(self, ms: int) -> None:
        self.records.clock.go_on(ms)

    @rule(batch=st.sampled_from((1, 2, 500)))
    def expire(self, batch: int) -> None:
        moment = self.records.timeline.now()
        while self.records.store.expire(moment, batch=batch).more:
            pass
        for part in self.parts.values():
            for known in part.messages.values():
                if (
                    known.is_open
                    and (known.asks or known.to)
                    and known.due is not None
                    and known.due <= self.now
                ):
                    part.ack(known, AckState.FAILED, "registry", self.now)
        self.seq = self.records.store.last_seq()

    @rule()
    def archive(self) -> None:
        while self.records.store.archive(self.records.timeline.now(), 100, batch=2).more:
            pass
        for part in self.parts.values():
            part.archived |= {
                thread for thread, at in part.touched.items() if part.ended(thread) and at <= self.now - 100
            }

    @precondition(lambda self: self.now % 3 == 0)
    @rule(batch=st.sampled_from((1, 2, 500)))
    def delete_old(self, batch: int) -> None:
        while self.records.store.delete_old(self.records.timeline.now(), 100, batch=batch).more:
            assert self.records.store.check() == []
        for part in self.parts.values():
            for thread in [thread for thread, at in part.touched.items() if at <= self.now - 100]:
                part.messages = {name: one for name, one in part.messages.items() if one.thread != thread}
                part.hidden = {pair for pair in part.hidden if pair[1] != thread}
                part.archived.discard(thread)
                del part.touched[thread]
                part.outcome.pop(thread, None)

    def is_full(self, part: Partition, agent: str) -> bool:
        return sum(one.to == agent and one.is_open for one in part.messages.values()) >= INBOX_LIMIT

    def drew(self, outcome: Sent | Acknowledged | Done) -> None:
        """What was told has the next numbers, in order."""
        seqs = [event.seq for event in outcome.events]
        assert seqs == list(range(self.seq + 1, self.seq + 1 + len(seqs)))
        self.seq += len(seqs)

    @invariant()
    def roll_ups_are_what_is_reckoned_from_scratch(self) -> None:
        assert self.records.store.check() == []
        assert self.records.store.last_seq() == self.seq

    @invariant()
    def inboxes_hold_what_awaits_each_agent(self) -> None:
        store = self.records.store
        for identity, part in self.parts.items():
            for agent in AGENTS:
                expected = sorted(
                    (one.seq, name) for name, one in part.messages.items() if one.awaits(agent, self.now)
                )
                page = store.inbox(identity, agent, limit=200)
                assert [(message.seq, message.message_id) for message in page.items] == expected
                assert {message.identity for message in page.items} <= {identity}
                assert store.inbox_count(identity, agent) == len(expected)

    @invariant()
    def lists_hold_what_is_not_hidden(self) -> None:
        store = self.records.store
        for identity, part in self.parts.items():
            for agent in (None, "ann"):
                newest = {
                    thread: max(one.seq for one in part.messages.values() if one.thread == thread)
                    for thread in part.touched
                    if thread not in part.archived and (agent, thread) not in part.hidden
                }
                page = store.conversations(ConversationQuery(identity=identity, agent_id=agent))
                shown = [(entry.conversation_id, entry.last_message.seq) for entry in page.items]
                assert shown == sorted(newest.items(), key=lambda item: -item[1])
                for entry in page.items:
                    assert entry.last_message.content.startswith(identity)
                    assert set(entry.pending_message_ids) == part.pending(entry.conversation_id)

    @invariant()
    def replays_hold_one_identity(self) -> None:
        for identity, part in self.parts.items():
            events = self.records.store.events_since(identity, 0)
            seqs = [event.seq or 0 for event in events]
            assert seqs == sorted(set(seqs))
            assert {event.identity for event in events} <= {identity}
            told = {event.data["messageId"] for event in events if event.type == "channel.message"}
            assert told == set(part.messages)


TestChannel = Channel.TestCase
TestChannel.settings = settings(
    max_examples=12, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
