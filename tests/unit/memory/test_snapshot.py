"""Snapshots: order, unique ids, who may see what, and a digest that tells every change."""

from __future__ import annotations

from dataclasses import replace

from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact, order_key
from agent_bridge.memory.snapshot import Problem, Snapshot, build


def _fact(path: str, **values: object) -> Fact:
    known = {"id": path.removesuffix(".md"), "title": "", "hook": "", "body": path, "digest": path, **values}
    return Fact(path=path, **known)  # type: ignore[arg-type]


def _build(facts: list[Fact], private: frozenset[str] = frozenset(), **values: object) -> Snapshot:
    return build(
        [(order_key(fact), fact) for fact in facts],
        documents=values.get("documents", ()),  # type: ignore[arg-type]
        problems=values.get("problems", ()),  # type: ignore[arg-type]
        private_paths=private,
    )


def test_each_fact_is_shared_private_or_withheld() -> None:
    facts = [_fact("a.md"), _fact("b.md"), _fact("c.md", secrets=("npm token",))]
    found = _build(facts, frozenset({"b.md", "c.md"}))
    assert [fact.id for fact in found.facts] == ["a", "b", "c"]
    assert [[fact.id for fact in part] for part in (found.shared, found.private, found.withheld)] == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_the_first_path_keeps_an_id_that_several_claim() -> None:
    facts = [_fact("z.md", id="one"), _fact("a.md", id="one"), _fact("m.md", id="one"), _fact("one.md")]
    for order in (facts, facts[::-1]):
        found = _build(order)
        assert {fact.path: fact.id for fact in found.facts} == {
            "a.md": "one",
            "m.md": "m",
            "one.md": "one+",
            "z.md": "z",
        }
        assert [problem.path for problem in found.problems] == ["m.md", "one.md", "z.md"]
        assert "a.md" in found.problems[0].reason


def test_the_digest_tells_every_change_and_no_order() -> None:
    facts = [_fact("a.md"), _fact("b.md")]
    base = _build(facts)
    assert _build(facts[::-1]).digest == base.digest
    changed = [
        _build([facts[0]]),
        _build([facts[0], replace(facts[1], digest="new")]),
        _build(facts, frozenset({"a.md"})),
        _build(facts, documents=(Document("context.md", "x"),)),
        _build(facts, problems=(Problem("x.md", "why", "what"),)),
    ]
    assert len({base.digest, *(one.digest for one in changed)}) == 6
