"""The directory: who replaces whom, who sees whom, and when a row is marked and goes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.directory import AgentRow, Directory, EntryType
from agent_bridge.channel.errors import InvalidError, TooLargeError, TooManyError, UnknownError
from agent_bridge.channel.writes import Event

START = Moment(wall=1_000_000, steady=50_000)


def later(ms: int, *, wall: int | None = None) -> Moment:
    return Moment(wall=START.wall + (ms if wall is None else wall), steady=START.steady + ms)


def client(agent_id: str = "c1", **fields: Any) -> AgentRow:  # noqa: ANN401
    values: dict[str, Any] = {
        "name": "a session",
        "project_path": "/p",
        "identity": "red",
        "entry_type": EntryType.CLIENT,
        "client_name": "claude-code",
    }
    return AgentRow(agent_id=agent_id, **(values | fields))


def server(agent_id: str = "s1", **fields: Any) -> AgentRow:  # noqa: ANN401
    card = {"skills": [{"id": "file-search", "tags": ["files", "search"]}]}
    values: dict[str, Any] = {"name": "a server", "project_path": "/p", "identity": "red", "card": card}
    return AgentRow(agent_id=agent_id, **(values | fields))


def names(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.type, event.data["agentId"]) for event in events]


def held(directory: Directory, identity: str = "*", **filters: Any) -> list[str]:  # noqa: ANN401
    return [row.agent_id for row in directory.rows(identity, **filters)]


@pytest.fixture
def directory() -> Directory:
    return Directory(90_000, 120_000)


def test_a_row_on_the_wire() -> None:
    row = client(pid=7, host="box", client_version="2.1", registered_at=5, last_heartbeat=6)
    assert row.as_wire() == {
        "agentId": "c1",
        "name": "a session",
        "entryType": "client",
        "identity": "red",
        "projectPath": "/p",
        "projectName": "",
        "projectType": "unknown",
        "url": "",
        "wsUrl": "",
        "port": 0,
        "card": {"skills": []},
        "registeredAt": 5,
        "lastHeartbeat": 6,
        "healthy": True,
        "clientInfo": {"clientName": "claude-code", "clientVersion": "2.1"},
        "pid": 7,
        "host": "box",
    }
    assert "clientInfo" not in server().as_wire()
    assert server().as_wire()["card"]["skills"][0]["id"] == "file-search"


def test_registering_stamps_the_times(directory: Directory) -> None:
    events = directory.register(client(registered_at=1, last_heartbeat=2, healthy=False, beat=3), START)
    assert names(events) == [("agent.registered", "c1")]
    assert events[0].identity == "red"
    row = directory.find("red", "c1")
    assert row is not None
    assert (row.registered_at, row.last_heartbeat, row.beat, row.healthy) == (
        1_000_000,
        1_000_000,
        50_000,
        True,
    )
    assert events[0].data == row.as_wire()


@pytest.mark.parametrize(("older", "newer", "goes"), [
    (client("old"), client("new"), True),
    (client("old"), client("new", identity="blue"), False),
    (client("old"), client("new", project_path="/q"), False),
    (client("old"), client("new", client_name="codex"), False),
    (client("old", client_name=None), client("new", client_name=None), False),
    (server("old"), server("new"), True),
    (server("old"), server("new", identity="blue"), False),
    (server("old"), server("new", project_path="/q"), False),
    (server("old"), client("new"), False),
    (client("old"), server("new"), False),
])  # fmt: skip
def test_who_replaces_whom(directory: Directory, older: AgentRow, newer: AgentRow, goes: bool) -> None:
    directory.register(older, START)
    events = directory.register(newer, START)
    gone = [("agent.deregistered", "old")] if goes else []
    assert names(events) == [*gone, ("agent.registered", "new")]
    assert held(directory) == (["new"] if goes else ["old", "new"])


def test_registering_again_renews_the_row_without_a_deregistered(directory: Directory) -> None:
    directory.register(client(name="one"), START)
    assert names(directory.register(client(name="two"), later(5))) == [("agent.registered", "c1")]
    assert [(row.name, row.registered_at) for row in directory.rows()] == [("two", START.wall + 5)]


def test_identifying_is_a_sign_of_life(directory: Directory) -> None:
    directory.register(client(), START)
    directory.sweep(later(90_000))
    assert names(directory.identified("red", "c1", later(100_000))) == [("agent.heartbeat", "c1")]
    assert directory.identified("red", "c1", later(100_000)) == []
    assert directory.identified("blue", "c1", later(100_000)) == []
    assert held(directory, healthy=True) == ["c1"]
    assert directory.sweep(later(189_999)) == []


def test_a_closed_socket_takes_a_clients_row_and_marks_an_agents(directory: Directory) -> None:
    directory.register(client(), START)
    directory.register(server(), START)
    assert names(directory.closed("red", "c1")) == [("agent.deregistered", "c1")]
    assert names(directory.closed("red", "s1")) == [("agent.unhealthy", "s1")]
    assert directory.closed("red", "s1") == directory.closed("red", "c1") == []
    assert held(directory) == held(directory, healthy=False) == ["s1"]


def test_what_a_socket_is_told_when_it_opens_is_bounded() -> None:
    directory = Directory(90_000, 120_000)
    for number in range(1_000):
        directory.register(client(f"c{number}", project_path=f"/projects/{number}"), START)
    card = {"description": "x" * 60_000}
    with suppress(TooManyError):
        for number in range(500):
            directory.register(client(f"d{number}", project_path=f"/others/{number}", card=card), START)
    assert 1_000 < len(directory) < 1_500
    assert len(json.dumps([row.as_wire() for row in directory.rows("red")])) <= 4 << 20


def test_what_is_excused_makes_no_row_older(directory: Directory) -> None:
    directory.register(client("c1"), START)
    directory.register(client("c2", project_path="/elsewhere"), START)
    directory.heartbeat("red", "c2", later(3_650_000))
    directory.excuse(3_600_000, later(3_660_000))
    assert directory.sweep(later(3_689_999)) == []
    assert names(directory.sweep(later(3_690_000))) == [("agent.unhealthy", "c1")]
    assert names(directory.sweep(later(3_750_000))) == [("agent.removed", "c1"), ("agent.unhealthy", "c2")], (
        "a sign of life since then counts from then on, or from now at the latest"
    )


def test_the_sweep_marks_at_90_seconds_and_removes_at_120(directory: Directory) -> None:
    directory.register(client(), START)
    directory.register(server(), START)
    assert directory.sweep(later(89_999)) == []
    assert names(directory.sweep(later(90_000))) == [("agent.unhealthy", "c1"), ("agent.unhealthy", "s1")]
    assert directory.sweep(later(119_999)) == []
    assert names(directory.sweep(later(120_000))) == [("agent.removed", "c1"), ("agent.removed", "s1")]
    assert len(directory) == 0


def test_a_heartbeat_keeps_and_heals(directory: Directory) -> None:
    directory.register(client(), START)
    directory.sweep(later(90_000))
    [event] = directory.heartbeat("red", "c1", later(95_000))
    assert (event.type, event.concerns) == ("agent.heartbeat", frozenset({"c1"}))
    assert event.data == {"agentId": "c1", "identity": "red", "timestamp": START.wall + 95_000}
    assert held(directory, healthy=True) == ["c1"]
    assert directory.sweep(later(184_999)) == []


@pytest.mark.parametrize("jump", [86_400_000, -86_400_000])
def test_a_wall_clock_that_is_set_ages_nobody(directory: Directory, jump: int) -> None:
    directory.register(client(), START)
    assert directory.sweep(later(1_000, wall=jump)) == []
    assert names(directory.sweep(later(90_000, wall=jump))) == [("agent.unhealthy", "c1")]


def test_agent_rows_are_seen_by_all_and_changed_by_their_own(directory: Directory) -> None:
    directory.register(client(), START)
    [event] = directory.register(server(), START)
    assert event.identity == "*"
    assert held(directory, "red") == held(directory, "*") == ["c1", "s1"]
    assert held(directory, "blue") == ["s1"]
    assert directory.find("blue", "c1") is None
    found = directory.find("blue", "s1")
    assert found is not None
    assert found.identity == "red"
    for agent_id in ("c1", "s1"):
        with pytest.raises(UnknownError):
            directory.heartbeat("blue", agent_id, START)
        assert directory.remove("blue", agent_id) == []
        assert directory.closed("blue", agent_id) == []
        assert names(directory.remove("red", agent_id)) == [("agent.deregistered", agent_id)]


def test_the_same_id_in_two_identities_is_two_rows(directory: Directory) -> None:
    directory.register(client("c", name="red's"), START)
    directory.register(client("c", name="blue's", identity="blue"), START)
    assert [row.name for row in directory.rows("blue")] == ["blue's"]
    directory.remove("red", "c")
    assert [row.name for row in directory.rows()] == ["blue's"]
    assert directory.lives_elsewhere("red", "c")
    assert not directory.lives_elsewhere("blue", "c")
    assert not directory.lives_elsewhere("red", "nobody")
    assert not directory.lives_elsewhere("*", "c")


@pytest.mark.parametrize(("filters", "found"), [
    ({}, ["c1", "c2", "s1"]),
    ({"skill": "file-search"}, ["s1"]),
    ({"skill": "files"}, ["s1"]),
    ({"skill": "file"}, []),
    ({"project": "SHOP"}, ["c2"]),
    ({"project": "/P"}, ["c1", "s1"]),
    ({"project": "front"}, ["c2"]),
    ({"entry_type": EntryType.AGENT}, ["s1"]),
    ({"entry_type": EntryType.CLIENT}, ["c1", "c2"]),
    ({"client": "Claude"}, ["c1"]),
    ({"healthy": False}, ["s1"]),
    ({"healthy": True, "project": "/p"}, ["c1"]),
])  # fmt: skip
def test_the_filters(directory: Directory, filters: dict[str, Any], found: list[str]) -> None:
    directory.register(client("c1"), START)
    directory.register(
        client("c2", project_path="/code/shop", project_name="Frontend", client_name="codex"), START
    )
    directory.register(server("s1", project_path="/p2"), START)
    directory.closed("red", "s1")
    assert held(directory, "red", **filters) == found


@pytest.mark.parametrize(
    "skills", [None, "file-search", {"id": "x"}, [None, 3, "x", {"tags": "x"}, {"id": ["x"]}]]
)
def test_a_card_of_any_shape_has_no_skill_by_chance(skills: object) -> None:
    assert not server(card={"skills": skills}).has_skill("x")


def test_a_flood_of_registrations_is_refused_and_shuts_no_other_identity_out() -> None:
    directory = Directory(90_000, 120_000, rows_per_identity=3)
    for number in range(3):
        directory.register(client(f"c{number}", project_path=f"/{number}"), START)
    with pytest.raises(TooManyError, match="red has 3 rows"):
        directory.register(client("c3", project_path="/3"), START)
    directory.register(client("c0", project_path="/again"), START)
    directory.register(client("takes over", project_path="/1"), START)
    directory.register(client("c3", project_path="/3", identity="blue"), START)
    directory.remove("red", "c0")
    directory.register(client("c3", project_path="/3"), START)
    assert len(directory) == 4


def test_rows_are_bounded_in_bytes_too() -> None:
    directory = Directory(90_000, 120_000, total_bytes=200_000)
    card = {"text": "x" * 40_000}
    with pytest.raises(TooLargeError):
        directory.register(server(card={"text": "x" * 66_000}), START)
    for number in range(4):
        directory.register(server("s", card=card, identity=f"i{number}"), START)
    with pytest.raises(TooManyError):
        directory.register(server("s", card=card, identity="i4"), START)
    directory.register(server("s", card=card, identity="i0"), START)
    directory.register(server("s", card={}, identity="i0"), START)
    with pytest.raises(TooManyError):
        directory.register(server("other", card=card, project_path="/q", identity="i1"), START)
    directory.register(server("s", card=card, identity="i4"), START)
    directory.sweep(later(120_000))
    directory.register(server("s", card=card, identity="i5"), START)
    assert len(directory) == 1


def test_a_row_that_has_gone_leaves_nothing() -> None:
    directory = Directory(90_000, 120_000, total_bytes=10_000)
    for number in range(50):
        directory.register(server(f"s{number}", identity=f"i{number}"), later(number))
        assert directory.find("*", f"s{number}") is not None
        directory.remove(f"i{number}", f"s{number}")
        assert directory.find("*", f"s{number}") is None
        assert not directory.lives_elsewhere("red", f"s{number}")


def test_what_cannot_be_a_row_is_refused(directory: Directory) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for row in (
        client("a\nb"),
        client(identity="*"),
        server(card={"x": deep}),
        server(card={"x": {1, 2}}),
    ):
        with pytest.raises(InvalidError):
            directory.register(row, START)
    assert len(directory) == 0


class Directories(RuleBasedStateMachine):
    """Random work of three identities: no event and no row of a client ever crosses, the bounds hold."""

    identities = st.sampled_from(["red", "blue", "green"])
    agents = st.sampled_from(["a", "b", "c"])

    def __init__(self) -> None:
        super().__init__()
        self.directory = Directory(90_000, 120_000, rows_per_identity=2)
        self.now = START
        self.beats: dict[tuple[str, str], int] = {}

    def told(self, identity: str, events: list[Event]) -> None:
        for event in events:
            assert event.identity in (identity, "*")
            assert event.data["identity"] == identity
            if event.type in ("agent.deregistered", "agent.removed"):
                del self.beats[identity, event.data["agentId"]]

    @rule(
        identity=identities,
        agent=agents,
        path=st.sampled_from(["/p", "/q"]),
        name=st.sampled_from(["x", "y"]),
        kind=st.sampled_from(EntryType),
    )
    def register(self, identity: str, agent: str, path: str, name: str, kind: EntryType) -> None:
        row = client(agent, identity=identity, project_path=path, client_name=name, entry_type=kind)
        before = held(self.directory)
        try:
            events = self.directory.register(row, self.now)
        except TooManyError:
            assert held(self.directory) == before
            assert len([key for key in self.beats if key[0] == identity]) == 2
            return
        self.told(identity, events)
        self.beats[identity, agent] = self.now.steady

    @rule(identity=identities, agent=agents)
    def beat(self, identity: str, agent: str) -> None:
        if (identity, agent) in self.beats:
            self.told(identity, self.directory.heartbeat(identity, agent, self.now))
            self.beats[identity, agent] = self.now.steady
        else:
            with pytest.raises(UnknownError):
                self.directory.heartbeat(identity, agent, self.now)

    @rule(identity=identities, agent=agents)
    def identify(self, identity: str, agent: str) -> None:
        self.told(identity, self.directory.identified(identity, agent, self.now))
        if (identity, agent) in self.beats:
            self.beats[identity, agent] = self.now.steady

    @rule(identity=identities, agent=agents)
    def close(self, identity: str, agent: str) -> None:
        self.told(identity, self.directory.closed(identity, agent))

    @rule(identity=identities, agent=agents)
    def remove(self, identity: str, agent: str) -> None:
        self.told(identity, self.directory.remove(identity, agent))

    @rule(ms=st.integers(1, 60_000), jump=st.sampled_from([0, -86_400_000, 86_400_000]))
    def time_passes(self, ms: int, jump: int) -> None:
        self.now = Moment(self.now.wall + ms + jump, self.now.steady + ms)
        for event in self.directory.sweep(self.now):
            self.told(event.data["identity"], [event])

    @invariant()
    def holds_what_it_should(self) -> None:
        rows = self.directory.rows()
        assert {(row.identity, row.agent_id): row.beat for row in rows} == self.beats
        assert len(self.directory) == len(rows)
        for identity in ("red", "blue", "green"):
            seen = self.directory.rows(identity)
            assert all(row.identity == identity or row.entry_type is EntryType.AGENT for row in seen)
            assert {row.agent_id for row in rows if row.identity == identity} <= {
                row.agent_id for row in seen
            }
        sessions = [
            (row.identity, row.entry_type, row.project_path, row.client_name if row.is_client else "")
            for row in rows
        ]
        assert len(sessions) == len(set(sessions))


TestDirectories = Directories.TestCase
TestDirectories.settings = settings(max_examples=40, stateful_step_count=30)
