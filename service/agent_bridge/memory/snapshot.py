"""What a store holds at one moment: facts in their order, documents, problems. Pure values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import itemgetter

from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact, OrderKey, order_key


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

    @property
    def readable(self) -> tuple[Fact, ...]:
        """What may be shown to the user's own agents: all but the withheld, in their order."""
        return tuple(fact for fact in self.facts if not fact.secrets) if self.withheld else self.facts


def build(
    facts: Iterable[tuple[OrderKey, Fact]],
    documents: tuple[Document, ...],
    problems: Iterable[Problem],
    private_paths: frozenset[str],
) -> Snapshot:
    """Put a snapshot together: unique ids, order, and who may see what.

    `facts` come in any order, each with its `order_key` (working it out anew for 10,000 costs 25 ms);
    `private_paths` are the paths of those that may not stand in tracked files.
    """
    unique, clashes = _unique_ids(facts)
    ordered = tuple(fact for _, fact in sorted(unique, key=itemgetter(0)))
    withheld = tuple(fact for fact in ordered if fact.secrets)
    open_facts = tuple(fact for fact in ordered if not fact.secrets) if withheld else ordered
    if private_paths:
        private = tuple(fact for fact in open_facts if fact.path in private_paths)
        shared = tuple(fact for fact in open_facts if fact.path not in private_paths)
    else:
        private, shared = (), open_facts
    found = tuple(sorted([*problems, *clashes], key=lambda problem: (problem.path, problem.reason)))
    digest = _digest(ordered, documents, found, private_paths)
    return Snapshot(ordered, documents, found, digest, shared, private, withheld)


def _unique_ids(
    facts: Iterable[tuple[OrderKey, Fact]],
) -> tuple[list[tuple[OrderKey, Fact]], list[Problem]]:
    """The first path keeps an id that several claim; the others are known by their path."""
    facts = list(facts)
    if len({fact.id for _, fact in facts}) == len(facts):
        return facts, []
    found: dict[str, tuple[OrderKey, Fact]] = {}
    clashes: list[Fact] = []
    for ranked in facts:
        holder = found.setdefault(ranked[1].id, ranked)
        if holder is not ranked:
            first, second = sorted((holder, ranked), key=lambda one: one[1].path)
            found[ranked[1].id] = first
            clashes.append(second[1])
    problems = []
    for fact in sorted(clashes, key=lambda one: one.path):
        problems.append(
            Problem(
                fact.path,
                f"it has the id of {found[fact.id][1].path} ({fact.id}) and is known by its path instead",
                "Remove the `id` line of one of the two, or one of the files.",
            )
        )
        own = fact.path.removesuffix(".md")
        while own in found:
            own += "+"
        renamed = replace(fact, id=own)
        found[own] = (order_key(renamed), renamed)
    return list(found.values()), problems


def _digest(
    facts: tuple[Fact, ...],
    documents: tuple[Document, ...],
    problems: tuple[Problem, ...],
    private_paths: frozenset[str],
) -> str:
    lines = [f"{fact.path}\0{fact.digest}" for fact in facts]
    lines += [f"private\0{path}" for path in sorted(private_paths)]
    lines += [f"{document.name}\0{document.text}" for document in documents]
    lines += [f"{problem.path}\0{problem.reason}" for problem in problems]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
