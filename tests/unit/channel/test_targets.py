"""Whom a message is for: one truth table a rule, and what never happens whatever the rows are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel import ids
from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import AmbiguousError, InvalidError, UnknownError
from agent_bridge.channel.targets import Request, bridged, kind_of, resolve


def session(agent_id: str, client: str = "claude-code", path: str = "/code/shop", **fields: Any) -> AgentRow:  # noqa: ANN401
    values: dict[str, Any] = {"name": agent_id, "identity": "red", "entry_type": EntryType.CLIENT}
    return AgentRow(agent_id=agent_id, client_name=client, project_path=path, **(values | fields))


def codex_bridge(agent_id: str = "bridge", path: str = "/code/shop", **fields: Any) -> AgentRow:  # noqa: ANN401
    return session(agent_id, "codex-app-bridge", path, client_version="app-server-bridge", **fields)


def ask(*rows: AgentRow, **wanted: Any) -> str:  # noqa: ANN401
    request = Request(**({"identity": "red", "sender_id": "me"} | wanted))
    return resolve(rows, request).agent_id


def test_nothing_said() -> None:
    with pytest.raises(InvalidError, match="clientId, project or conversationId"):
        ask(session("a"))
    with pytest.raises(InvalidError):
        ask(session("a"), client_type="claude-code")
    with pytest.raises(InvalidError):
        ask(session("a"), project=" ")


# By id


def test_the_whole_id_wins_over_a_longer_one() -> None:
    assert ask(session("client-a"), session("client-ab"), client_id="client-a") == "client-a"


def test_a_prefix_that_fits_one() -> None:
    assert ask(session("client-a1"), session("client-b1"), client_id="client-b") == "client-b1"


def test_a_prefix_that_fits_several_names_them() -> None:
    with pytest.raises(AmbiguousError) as caught:
        ask(session("client-a1"), session("client-a2", path="/other"), client_id="client-")
    assert "client-a1 (claude-code, /code/shop)" in caught.value.detail
    assert "client-a2 (claude-code, /other)" in caught.value.detail


def test_a_prefix_that_fits_a_session_and_its_bridge_means_the_bridge() -> None:
    rows = session("client-codex-1", "codex"), codex_bridge("client-codex-bridge-2")
    assert ask(*rows, client_id="client-codex") == "client-codex-bridge-2"


@pytest.mark.parametrize("row", [
    session("x", identity="blue"),
    session("x", healthy=False),
    session("x", entry_type=EntryType.AGENT),
])  # fmt: skip
@pytest.mark.parametrize("wanted", [{"client_id": "x"}, {"project": "shop"}])
def test_rows_that_never_come_into_question(row: AgentRow, wanted: dict[str, str]) -> None:
    with pytest.raises(UnknownError):
        ask(row, **wanted)
    assert ask(session("x"), **wanted) == "x"


@pytest.mark.parametrize("name", ["me", ids.DASHBOARD_ID])
def test_the_sender_and_the_dashboard_are_no_candidates(name: str) -> None:
    assert ask(session(name), session("other", "codex"), project="shop") == "other"
    with pytest.raises(InvalidError if name == "me" else UnknownError):
        ask(session(name), client_id=name)


def test_a_silent_session_is_told_from_an_unknown_one() -> None:
    with pytest.raises(UnknownError, match="no sign of life"):
        ask(session("x", healthy=False), client_id="x")
    with pytest.raises(UnknownError, match="No session has that id"):
        ask(session("x", healthy=False, identity="blue"), client_id="x")


def test_a_stale_id_is_never_sent_elsewhere_but_the_likely_one_is_named() -> None:
    rows = session("client-claude-code-new", path="/elsewhere"), session("client-codex-1", "codex")
    with pytest.raises(UnknownError) as caught:
        ask(*rows, client_id="client-claude-code-0123456789ab")
    assert "client-claude-code-new (claude-code, /elsewhere)" in caught.value.remedy
    assert "codex" not in caught.value.remedy


def test_a_stale_id_is_redirected_where_project_kind_and_identity_agree() -> None:
    stale = ids.client_id("claude-code", "/code/shop", "red")
    assert ask(session("new"), client_id=stale) == "new"
    for other in (
        session("new", path="/code/shop2"),
        session("new", "opencode"),
        session("new", identity="blue"),
        session("new", healthy=False),
    ):
        with pytest.raises(UnknownError):
            ask(other, client_id=stale)


def test_a_stale_id_with_the_project_said() -> None:
    gone = "client-claude-code-0123456789ab"
    assert ask(session("new"), client_id=gone, project="/code/shop") == "new"
    with pytest.raises(UnknownError):
        ask(session("new"), client_id=gone, project="/code")
    with pytest.raises(UnknownError):
        ask(session("new", "codex"), client_id=gone, project="/code/shop")
    with pytest.raises(AmbiguousError):
        ask(session("new"), session("newer"), client_id=gone, project="/code/shop")


def test_a_stale_inner_clients_id_goes_to_its_bridge() -> None:
    stale = ids.client_id("codex-mcp-client", "/code/shop", "red")
    assert ask(codex_bridge(), client_id=stale) == "bridge"


# By project


@pytest.mark.parametrize(("project", "found"), [
    ("/code/shop", "a"), ("SHOP", "a"), ("/code/shop/", "a"), ("store", "b"),
    ("Front End", "b"), ("front", "b"),
])  # fmt: skip
def test_a_project_by_part_of_its_path_or_name(project: str, found: str) -> None:
    rows = session("a"), session("b", path="/code/store", project_name="Front End")
    assert ask(*rows, project=project) == found


def test_a_part_that_fits_two_projects_is_ambiguous_unless_one_is_named_whole() -> None:
    rows = session("a"), session("b", path="/code/shop-admin"), session("c", path="/x", project_name="Shop")
    with pytest.raises(AmbiguousError) as caught:
        ask(*rows[:2], project="code")
    assert "a (" in caught.value.detail
    assert "b (" in caught.value.detail
    with pytest.raises(AmbiguousError):
        ask(session("a"), session("b", "codex", "/code/shop-admin"), project="code")
    assert ask(*rows, project="/code/shop") == "a"
    assert ask(*rows, project="shop") == "c"


def test_an_unknown_project_names_the_known_ones() -> None:
    with pytest.raises(UnknownError) as caught:
        ask(session("a"), session("b", path="/secret", identity="blue"), project="nowhere")
    assert "/code/shop" in caught.value.remedy
    assert "/secret" not in str(caught.value)


def test_the_order_of_clients() -> None:
    order = ["claude-code", "claude", "opencode", "antigravity", "agy", "codex-cli", "codex", "something"]
    rows = [session(name, name) for name in reversed(order)]
    for number, name in enumerate(order):
        assert ask(*rows[: len(rows) - number], project="shop") == name
    assert ask(*rows, codex_bridge(), project="shop") == "bridge"


@pytest.mark.parametrize("client", ["Claude Code", "claude_code", "claude-code"])
def test_names_as_programs_spell_them(client: str) -> None:
    assert ask(session("a", client), session("b", "codex-mcp-client"), project="shop") == "a"
    assert kind_of(session("a", client)) == "claude"


def test_two_alike_in_one_project_are_ambiguous() -> None:
    with pytest.raises(AmbiguousError):
        ask(session("a"), session("b"), project="shop")
    assert ask(session("a"), session("b", "codex"), project="shop") == "a"


@pytest.mark.parametrize(
    ("client_type", "found"), [("codex", "b"), ("CODEX", "b"), ("claude", "a"), ("gemini", "a")]
)
def test_the_client_type_narrows_unless_nothing_would_be_left(client_type: str, found: str) -> None:
    assert ask(session("a"), session("b", "codex-cli"), project="shop", client_type=client_type) == found


# Bridges


@pytest.mark.parametrize(("bridge", "takes"), [
    (codex_bridge(), True),
    (codex_bridge(path="/other"), False),
    (codex_bridge(identity="blue"), False),
    (codex_bridge(healthy=False), False),
    (session("bridge", "opencode", client_version="opencode-plugin-bridge"), False),
])  # fmt: skip
def test_a_bridge_takes_over_where_path_identity_and_kind_agree(bridge: AgentRow, takes: bool) -> None:
    inner = session("client-codex-1", "codex")
    assert bridged(inner, [bridge]).agent_id == ("bridge" if takes else "client-codex-1")
    assert ask(inner, bridge, client_id="client-codex-1") == ("bridge" if takes else "client-codex-1")


def test_a_bridge_is_not_sent_its_own_message() -> None:
    rows = session("client-codex-1", "codex"), codex_bridge("me")
    assert ask(*rows, client_id="client-codex-1") == "client-codex-1"


# By conversation


def test_the_other_of_a_conversation() -> None:
    rows = session("a"), session("b", path="/other")
    assert ask(*rows, participants=["me", "b"]) == "b"
    assert ask(*rows, participants=["b", "me", "b"]) == "b"
    assert ask(*rows, session(ids.DASHBOARD_ID, "dashboard"), participants=["me", ids.DASHBOARD_ID]) == (
        ids.DASHBOARD_ID
    )
    inner = session("client-codex-1", "codex")
    assert ask(inner, codex_bridge(), participants=["me", "client-codex-1", "bridge"]) == "bridge"


def test_a_conversation_of_several_or_of_nobody_else() -> None:
    rows = session("a"), session("b", path="/other")
    for others in (["me", "a", "b"], ["me", "a", "gone"], ["me", "gone", "lost"]):
        with pytest.raises(AmbiguousError) as caught:
            ask(*rows, participants=others)
        assert others[1] in caught.value.detail
    for others in ([], ["me"], ["me", "gone"], ["me", "of-blue"]):
        with pytest.raises(UnknownError):
            ask(*rows, session("of-blue", identity="blue"), participants=others)


def test_what_rows_say_stands_on_one_line_in_the_error() -> None:
    hostile = session("a1", "x\n\x1b[31mIgnore\u202e", "/p\nError: ")
    with pytest.raises(AmbiguousError) as caught:
        ask(hostile, session("a2"), client_id="a")
    assert caught.value.detail.isprintable()


@st.composite
def rows(draw: st.DrawFn) -> list[AgentRow]:
    names = st.sampled_from(["a", "b", "ab", "me", "client-codex-1", "client-codex-2", ids.DASHBOARD_ID])
    made = st.builds(
        session,
        names,
        st.sampled_from(["claude-code", "codex", "opencode", ""]),
        st.sampled_from(["/p", "/p/q", "/r"]),
        identity=st.sampled_from(["red", "blue"]),
        healthy=st.booleans(),
        entry_type=st.sampled_from(EntryType),
        client_version=st.sampled_from([None, "1", "app-server-bridge", "opencode-plugin-bridge"]),
    )
    return draw(st.lists(made, max_size=8, unique_by=lambda row: (row.identity, row.agent_id)))


@given(
    rows(),
    st.builds(
        Request,
        identity=st.just("red"),
        sender_id=st.just("me"),
        client_id=st.sampled_from([None, "a", "client-", "me", "client-codex-9"]),
        project=st.sampled_from([None, "/p", "p", ""]),
        client_type=st.sampled_from([None, "codex", "zzz"]),
        participants=st.none() | st.lists(st.sampled_from(["me", "a", "b", "gone"])),
    ),
)
def test_what_is_chosen_is_always_a_well_row_of_the_identity_and_never_the_sender(
    known: list[AgentRow], request: Request
) -> None:
    try:
        chosen = resolve(known, request)
    except (AmbiguousError, UnknownError, InvalidError):
        return
    assert chosen in known
    assert chosen.healthy
    assert chosen.identity == "red"
    assert chosen.agent_id != "me"
    assert resolve([*known, session("other", identity="blue")], request) == chosen
