"""Doubles, missing facts and advice, worked out of what a harness says that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Notice, Read, Scope
from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.projection.explain import Explanation, Ground, Holder, Known, Why, explain

AGENTS = Path("/p/AGENTS.md")
CLAUDE = Path("/p/CLAUDE.md")
TUESDAY = "Releases leave on Tuesdays, from the harbour branch."
SPACES = "Indent with four spaces in every file of this project."


def _fact(text: str, name: str = "entries/20260101-0001-a.md", head: str = "") -> Fact:
    return parse_fact(name, (f"---\n{head}\n---\n{text}\n" if head else f"{text}\n").encode())


def _block(*facts: Fact, user: str = "", budget: int = 16384) -> bytes:
    body = managed_block.render_block([], facts, budget=budget).body
    return managed_block.splice(user.encode(), body).data


def _read(path: Path, data: bytes | str, *, hidden: str = "", cut: str = "") -> Read:
    text = data if isinstance(data, str) else data.decode()
    return Read(path, len(text), len(text), "read", hidden=hidden, text="" if hidden else text, cut=cut)


def _holder(path: Path, data: bytes, *, scope: Scope = Scope.PROJECT, private: bool = False) -> Holder:
    return Holder(path, path, scope, data, 16384, takes_private=private)


def _explained(
    reads: Sequence[Read],
    facts: Sequence[Fact | Known],
    holders: Sequence[Holder] = (),
    ground: Ground | None = None,
) -> Explanation:
    known = [one if isinstance(one, Known) else Known(one, Scope.PROJECT) for one in facts]
    return explain("some", "Some Agent", reads, known, holders, ground or Ground())


def test_a_fact_that_one_file_shows_is_neither_doubled_nor_missing() -> None:
    fact = _fact(TUESDAY)
    data = _block(fact)

    told = _explained([_read(AGENTS, data)], [fact], [_holder(AGENTS, data)])

    assert told.shown == {AGENTS: 1}
    assert (told.doubles, told.missing, told.advice) == ((), (), ())


def test_a_fact_in_two_files_is_told_with_its_id_and_both() -> None:
    fact = _fact(TUESDAY)

    told = _explained([_read(AGENTS, _block(fact)), _read(CLAUDE, f"# Mine\n\n- {TUESDAY}\n")], [fact])

    [double] = told.doubles
    assert (double.fact, double.files) == (fact.id, (AGENTS, CLAUDE))
    assert any(fact.id in text and str(CLAUDE) in text for text in told.advice)


def test_a_hidden_file_doubles_nothing() -> None:
    fact = _fact(TUESDAY)
    hidden = _read(CLAUDE, _block(fact), hidden="it isn't read")

    assert not _explained([_read(AGENTS, _block(fact)), hidden], [fact]).doubles


def test_a_paragraph_of_peoples_in_two_files_is_told_and_a_trifle_isnt() -> None:
    one = _read(AGENTS, f"- {SPACES}\n- Use tabs.\n")
    other = _read(CLAUDE, "Indent with  four spaces\nin every file of this project.\n\nUse tabs.\n")

    [double] = _explained([one, other], []).doubles

    assert (double.fact, double.text, double.files) == ("", SPACES, (AGENTS, CLAUDE))


def test_a_title_in_the_index_is_no_double_and_is_told_of_a_missing_fact() -> None:
    fact = _fact(TUESDAY)
    index = _read(Path("/p/.memory/MEMORY.md"), f"- [Releases]({fact.path}) — when they leave\n")

    told = _explained([_read(AGENTS, _block(fact)), index], [fact])
    assert not told.doubles

    hidden = _read(AGENTS, b"", hidden="CLAUDE.md hides it")
    [group] = _explained([hidden, index], [fact], [_holder(AGENTS, _block(fact))]).missing
    assert (group.why, group.facts, group.titled) == (Why.HIDDEN, (fact.id,), (fact.id,))
    assert "CLAUDE.md hides it" in group.text


def test_facts_without_room_are_told_with_the_room_and_how_to_find_them() -> None:
    first = _fact(TUESDAY)
    second = _fact("x " * 900, "entries/20260101-0002-b.md")
    data = _block(first, second, budget=1024)

    told = _explained([_read(AGENTS, data)], [first, second], [_holder(AGENTS, data)])

    [group] = told.missing
    assert (group.why, group.facts) == (Why.BUDGET, (second.id,))
    assert "16,384 bytes" in group.text
    assert any("agent-bridge search" in text for text in told.advice)


def test_a_fact_that_the_client_cuts_off_is_missing_with_the_limit() -> None:
    first, second = _fact(SPACES), _fact(TUESDAY, "entries/20260101-0002-b.md")
    data = _block(first, second)
    shown = data.decode()[: data.decode().index("harbour")]

    told = _explained(
        [_read(AGENTS, shown, cut="the last 9 bytes: a limit")], [first, second], [_holder(AGENTS, data)]
    )

    [group] = told.missing
    assert (group.why, group.facts) == (Why.CUT, (second.id,))
    assert any("the last 9 bytes: a limit" in text for text in told.advice)


def test_a_block_that_is_behind_asks_for_a_sync() -> None:
    first, second = _fact(SPACES), _fact(TUESDAY, "entries/20260101-0002-b.md")
    data = _block(first)

    told = _explained([_read(AGENTS, data)], [first, second], [_holder(AGENTS, data)])

    assert [(group.why, group.facts) for group in told.missing] == [(Why.BEHIND, (second.id,))]
    assert any("agent-bridge sync" in text for text in told.advice)


@pytest.mark.parametrize(
    ("known", "ground", "why"),
    [
        (Known(_fact(TUESDAY), Scope.PROJECT, is_private=True), Ground(), Why.PRIVATE),
        (Known(replace(_fact(TUESDAY), secrets=("a token",)), Scope.PROJECT), Ground(), Why.WITHHELD),
        (Known(_fact(TUESDAY), Scope.PROJECT), Ground(is_set_up=False), Why.NOT_SET_UP),
        (Known(_fact(TUESDAY), Scope.PROJECT), Ground(), Why.NO_CARRIER),
    ],
)
def test_why_a_fact_has_no_file(known: Known, ground: Ground, why: Why) -> None:
    [group] = _explained([], [known], ground=ground).missing

    assert group.why is why


def test_without_a_file_the_harness_says_why() -> None:
    notice = Notice("warning", "untrusted", "Nobody trusts this project.")

    told = _explained([], [_fact(TUESDAY)], ground=Ground(notices=(notice,)))

    assert told.missing[0].text == "Nobody trusts this project."


def test_a_private_fact_of_the_users_may_stand_in_the_users_file() -> None:
    mine = Path("/h/CLAUDE.md")
    known = Known(_fact(TUESDAY), Scope.GLOBAL, is_private=True)

    told = _explained([_read(mine, "x")], [known], [_holder(mine, b"x", scope=Scope.GLOBAL, private=True)])

    assert [group.why for group in told.missing] == [Why.BEHIND]


def test_a_text_that_another_fact_brings_already_isnt_missing() -> None:
    first, twin = _fact(TUESDAY), _fact(TUESDAY, "entries/20260101-0002-b.md")

    told = _explained([_read(AGENTS, _block(first))], [first, twin], [_holder(AGENTS, _block(first))])

    assert (told.missing, told.doubles) == ((), ())


def test_below_the_root_the_advice_is_to_start_there() -> None:
    fact = _fact(TUESDAY)
    hidden = _read(AGENTS, b"", hidden="an import isn't followed")
    holder = _holder(AGENTS, _block(fact))

    below = _explained([hidden], [fact], [holder], Ground(is_below=True))
    here = _explained([hidden], [fact], [holder])

    assert any("project's root" in text for text in below.advice)
    assert not here.advice
