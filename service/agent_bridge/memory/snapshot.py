"""What a store holds at one moment: facts in their order, documents, problems. Pure values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact, order_key
from agent_bridge.memory.privacy import Judgements


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is left out: path below the store, why, and what to do."""

    path: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A store's content. `facts` are all facts, the most important first; each is in exactly one of `shared`
    (may stand in files that Git tracks), `private` and `withheld` (holds a credential: goes nowhere).
    `digest` changes whenever anything of this does.
    """

    facts: tuple[Fact, ...] = ()
    documents: tuple[Document, ...] = ()
    problems: tuple[Problem, ...] = ()
    digest: str = ""
    shared: tuple[Fact, ...] = ()
    private: tuple[Fact, ...] = ()
    withheld: tuple[Fact, ...] = ()


def build(
    facts: Iterable[Fact],
    documents: tuple[Document, ...],
    problems: Iterable[Problem],
    judgements: Judgements,
) -> Snapshot:
    """Put a snapshot together: unique ids, order, and who may see what. `facts` come in any order."""
    unique, clashes = _unique_ids(facts)
    ordered = tuple(sorted(unique, key=order_key))
    shared, private, withheld = [], [], []
    for fact in ordered:
        if fact.secrets:
            withheld.append(fact)
        elif fact.private or judgements.hold(fact):
            private.append(fact)
        else:
            shared.append(fact)
    all_problems = tuple(sorted([*problems, *clashes], key=lambda problem: (problem.path, problem.reason)))
    return Snapshot(
        ordered,
        documents,
        all_problems,
        _digest(ordered, documents, all_problems, shared),
        tuple(shared),
        tuple(private),
        tuple(withheld),
    )


def _unique_ids(facts: Iterable[Fact]) -> tuple[list[Fact], list[Problem]]:
    """The first path keeps an id that several claim; the others are known by their path."""
    found: dict[str, Fact] = {}
    clashes: list[Fact] = []
    problems = []
    for fact in facts:
        holder = found.setdefault(fact.id, fact)
        if holder is not fact:
            first, second = sorted((holder, fact), key=lambda one: one.path)
            found[fact.id] = first
            clashes.append(second)
    for fact in clashes:
        holder = found[fact.id]
        problems.append(
            Problem(
                fact.path,
                f"it has the id of {holder.path} ({fact.id}) and is known by its path instead",
                "Remove the `id` line of one of the two, or one of the files.",
            )
        )
        own = fact.path.removesuffix(".md")
        while own in found:
            own += "+"
        found[own] = replace(fact, id=own)
    return list(found.values()), problems


def _digest(
    facts: tuple[Fact, ...],
    documents: tuple[Document, ...],
    problems: tuple[Problem, ...],
    shared: list[Fact],
) -> str:
    open_paths = {fact.path for fact in shared}
    lines = [f"{fact.path}\0{fact.digest}\0{fact.path in open_paths}" for fact in facts]
    lines += [f"{document.name}\0{document.text}" for document in documents]
    lines += [f"{problem.path}\0{problem.reason}" for problem in problems]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
