"""What a file should be, given what it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Scope
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.plan import Decision, Evidence, Wanted, decide, item_texts
from agent_bridge.projection.targets import Target

TARGET = Target(
    path=Path("/p/AGENTS.md"),
    real=Path("/p/AGENTS.md"),
    scope=Scope.PROJECT,
    readers=("codex", "opencode"),
    budget=16384,
    checkout=Path("/p"),
    tracked=True,
    create=True,
    local=True,
    own=False,
    header="",
    why="",
)
RULES = replace(TARGET, path=Path("/p/.claude/rules/agent-bridge.md"), own=True, header="---\nx: y\n---\n")


def _fact(number: int, body: str = "") -> Fact:
    return Fact(
        path=f"entries/{number}.md",
        id=f"id-{number}",
        title=f"Title {number}",
        hook="",
        body=body or f"Body {number}.",
    )


def _wanted(*facts: Fact, elsewhere: dict[str, frozenset[str]] | None = None) -> Wanted:
    return Wanted((), facts, elsewhere or {})


def _decide(target: Target, data: bytes | None, wanted: Wanted, **evidence: object) -> Decision:
    return decide(target, data, wanted, Evidence(**evidence))  # type: ignore[arg-type]


def test_what_has_no_room_is_named_documents_too() -> None:
    documents = (Document("conventions.md", "word " * 400), Document("context.md", "Short."))
    facts = (_fact(1), _fact(2, "long " * 400), _fact(3))
    decision = _decide(replace(TARGET, budget=1024), b"# Mine\n", Wanted(documents, facts, {}))
    assert decision.left_out == ("conventions.md", "id-2")
    assert decision.included == ("id-1", "id-3")
    assert decision.after is not None
    assert b"Short." in decision.after
    assert b"conventions.md" in decision.after
    assert len(decision.after) - len(b"# Mine\n\n") <= 1024


@given(st.binary(max_size=300), st.lists(st.text(min_size=1, max_size=40), max_size=4))
def test_saying_and_taking_back_leaves_every_byte(data: bytes, bodies: list[str]) -> None:
    if managed_block.find_block(data) is not None or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    wanted = _wanted(*(_fact(number, body) for number, body in enumerate(bodies)))
    said = _decide(TARGET, data, wanted)
    assert said.after is not None
    again = _decide(TARGET, said.after, wanted, recorded=True, separator=said.separator)
    assert again.after == said.after
    back = _decide(TARGET, said.after, _wanted(), recorded=True, separator=said.separator)
    assert back.after == data


def test_a_missing_file_is_made_and_goes_again() -> None:
    made = _decide(TARGET, None, _wanted(_fact(1)))
    assert made.after is not None
    assert b"Body 1." in made.after
    gone = _decide(TARGET, made.after, _wanted(), recorded=True, created=True, separator=made.separator)
    assert gone.after is None


def test_an_empty_file_of_the_user_s_stays() -> None:
    made = _decide(TARGET, b"", _wanted(_fact(1)))
    gone = _decide(TARGET, made.after, _wanted(), recorded=True, created=False, separator=made.separator)
    assert gone.after == b""


def test_nothing_to_say_makes_nothing() -> None:
    assert _decide(TARGET, None, _wanted()).after is None
    assert _decide(TARGET, b"text", _wanted()).after == b"text"


def test_somebody_else_s_file_of_our_name_is_left_alone() -> None:
    decision = _decide(RULES, b"mine\n", _wanted(_fact(1)))
    assert decision.after == b"mine\n"
    assert decision.refused is not None
    assert decision.refused.code == "name-taken"


def test_a_file_of_ours_begins_with_its_header() -> None:
    decision = _decide(RULES, None, _wanted(_fact(1)))
    assert decision.after is not None
    assert decision.after.startswith(RULES.header.encode())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a\n{managed_block.START}\nb\n", "line 2"),
        (f"a\nb\n{managed_block.END}\n", "line 3"),
        (f"{managed_block.START}\n{managed_block.START}\n{managed_block.END}\n", "line 2"),
    ],
)
def test_broken_markers_are_refused_with_their_line(text: str, line: str) -> None:
    decision = _decide(TARGET, text.encode(), _wanted(_fact(1)))
    assert decision.after == text.encode()
    assert decision.refused is not None
    assert line in decision.refused.text


@pytest.mark.parametrize(
    ("heard_by", "said"), [((), True), (("codex",), True), (("codex", "opencode"), False)]
)
def test_a_fact_is_left_to_the_other_scope_only_if_all_readers_hear_it_there(
    heard_by: tuple[str, ...], said: bool
) -> None:
    fact = _fact(1)
    elsewhere = {reader: frozenset(item_texts(fact_item(fact))) for reader in heard_by}
    decision = _decide(TARGET, b"", _wanted(fact, _fact(2), elsewhere=elsewhere))
    assert decision.after is not None
    assert (b"Body 1." in decision.after) is said
    assert b"Body 2." in decision.after


def test_what_the_user_wrote_himself_isn_t_said_twice() -> None:
    decision = _decide(TARGET, b"- Body 1.\n", _wanted(_fact(1), _fact(2)))
    assert decision.after is not None
    assert decision.after.count(b"Body 1.") == 1
    assert decision.skipped == ("id-1",)


def test_an_edit_inside_a_block_is_a_candidate() -> None:
    said = _decide(TARGET, b"", _wanted(_fact(1))).after
    assert said is not None
    edited = said.replace(b"Body 1.", b"Body 1.\n\nA new rule.")
    decision = _decide(TARGET, edited, _wanted(_fact(1)), recorded=True)
    assert decision.candidates == ("A new rule.",)
    assert decision.after == said


def test_our_own_last_bytes_need_no_second_look() -> None:
    said = _decide(TARGET, b"", _wanted(_fact(1))).after
    assert said is not None
    assert _decide(TARGET, said, _wanted(_fact(2)), ours=True, recorded=True).candidates == ()
    assert _decide(TARGET, said, _wanted(_fact(2)), recorded=True).candidates == ()
