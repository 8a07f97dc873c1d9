"""Who gets an event: the wall between identities, target first, nobody twice."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_bridge.channel.writes import Event
from agent_bridge.registry.audience import Audience, Wants


def _event(
    identity: str = "global", target: str | None = None, concerns: frozenset[str] = frozenset()
) -> Event:
    return Event(type="channel.message", identity=identity, data={}, seq=1, target=target, concerns=concerns)


@pytest.fixture
def audience() -> Audience[str]:
    return Audience()


def test_a_socket_that_never_says_who_it_is_hears_its_identity(audience: Audience[str]) -> None:
    audience.listen("one", "global")
    audience.listen("other", "work")

    assert list(audience.of(_event("global"))) == ["one"]
    assert list(audience.of(_event("work"))) == ["other"]


def test_the_target_comes_first(audience: Audience[str]) -> None:
    for name in ("a", "b", "c"):
        audience.claim(name, "global", f"agent-{name}", "all")

    assert list(audience.of(_event(target="agent-c"))) == ["c", "a", "b"]


def test_a_target_of_that_id_in_another_identity_hears_nothing(audience: Audience[str]) -> None:
    audience.claim("theirs", "work", "agent", "all")
    audience.claim("ours", "global", "agent", "all")

    assert list(audience.of(_event("global", target="agent"))) == ["ours"]


def test_own_is_what_concerns_me_or_everybody(audience: Audience[str]) -> None:
    audience.claim("me", "global", "agent-me", "own")

    assert list(audience.of(_event(concerns=frozenset({"agent-me", "x"})))) == ["me"]
    assert list(audience.of(_event())) == ["me"]
    assert list(audience.of(_event(target="agent-me"))) == ["me"]
    assert list(audience.of(_event(concerns=frozenset({"x"})))) == []


def test_the_newer_socket_speaks_for_the_agent(audience: Audience[str]) -> None:
    assert audience.claim("old", "global", "agent", "all") is None
    assert audience.claim("new", "global", "agent", "own") == "old"

    assert audience.speaker("global", "agent") == "new"
    assert list(audience.of(_event())) == ["new"]
    assert not audience.leave("old", "global", "agent")
    assert audience.leave("new", "global", "agent")
    assert audience.speaker("global", "agent") is None


def test_saying_it_again_takes_nothing_over(audience: Audience[str]) -> None:
    audience.claim("one", "global", "agent", "all")

    assert audience.claim("one", "global", "agent", "all") is None
    assert list(audience.of(_event(target="agent"))) == ["one"]


def test_news_of_an_agent_server_are_for_all_identities(audience: Audience[str]) -> None:
    audience.listen("one", "global")
    audience.claim("other", "work", "agent", "own")
    audience.listen("dashboard", "*")

    assert sorted(audience.of(_event("*"))) == ["dashboard", "one", "other"]


def test_the_dashboard_hears_every_identity(audience: Audience[str]) -> None:
    audience.claim("dashboard", "*", "client-dashboard-ui", "all")

    assert list(audience.of(_event("work"))) == ["dashboard"]


@dataclass(frozen=True)
class _Known:
    identity: str
    agent: str | None
    wants: Wants


_IDENTITIES = st.sampled_from(["a", "b", "*"])
_AGENTS = st.sampled_from(["x", "y", "z"])


class _Coming(RuleBasedStateMachine):
    """Sockets come, speak for agents, and go; whoever hears an event is told by a plain model."""

    def __init__(self) -> None:
        super().__init__()
        self.audience: Audience[int] = Audience()
        self.known: dict[int, _Known] = {}
        self.count = 0

    @rule(identity=_IDENTITIES)
    def listen(self, identity: str) -> None:
        self.count += 1
        self.audience.listen(self.count, identity)
        self.known[self.count] = _Known(identity, None, "all")

    @rule(identity=_IDENTITIES, agent=_AGENTS, wants=st.sampled_from(["all", "own"]), data=st.data())
    def claim(self, identity: str, agent: str, wants: Wants, data: st.DataObject) -> None:
        silent = [s for s, known in self.known.items() if known.agent is None and known.identity == identity]
        socket = data.draw(st.sampled_from([*silent, self.count + 1]))
        self.count = max(self.count, socket)
        expected = next(
            (s for s, k in self.known.items() if (k.identity, k.agent) == (identity, agent)), None
        )
        assert self.audience.claim(socket, identity, agent, wants) == expected
        if expected is not None:
            del self.known[expected]
        self.known[socket] = _Known(identity, agent, wants)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.known:
            socket = data.draw(st.sampled_from(sorted(self.known)))
            known = self.known.pop(socket)
            assert self.audience.leave(socket, known.identity, known.agent) is (known.agent is not None)

    @invariant()
    def everybody_hears_what_is_theirs_once(self) -> None:
        for event in (
            _event("a"),
            _event("b", target="x"),
            _event("a", target="y", concerns=frozenset({"x", "y"})),
            _event("*", concerns=frozenset({"z"})),
        ):
            told = list(self.audience.of(event))
            assert len(told) == len(set(told))
            assert set(told) == {s for s, known in self.known.items() if _hears(known, event)}
            target = next(
                (
                    s
                    for s, k in self.known.items()
                    if (k.identity, k.agent) == (event.identity, event.target) and k.agent
                ),
                None,
            )
            assert target is None or told[0] == target


def _hears(known: _Known, event: Event) -> bool:
    if "*" not in (known.identity, event.identity) and known.identity != event.identity:
        return False
    if known.wants == "all" or not event.concerns:
        return True
    in_own = known.identity in (event.identity, "*") or event.identity == "*"
    return in_own and (known.agent in event.concerns or known.agent == event.target)


TestComing = _Coming.TestCase
TestComing.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
