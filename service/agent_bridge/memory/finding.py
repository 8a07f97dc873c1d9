"""Find a fact among others: by what a person types, by its file, by the same or a similar text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent_bridge.errors import ConflictError, DuplicateError, NotFoundError, UsageError
from agent_bridge.memory import similarity
from agent_bridge.memory.fact import Fact

_SHORTEST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class Similar:
    """A fact that shares many words with a text; `score` is the Jaccard figure, `why` says it in words."""

    fact: Fact
    score: float
    why: str


def find_fact(facts: tuple[Fact, ...], key: str) -> Fact:
    """The fact with this id or path (with or without .md), or the only one whose id begins so.

    Raises NotFoundError, UsageError where several begin so.
    """
    for fact in facts:
        if key in (fact.id, fact.path) or f"{key}.md" == fact.path:
            return fact
    starting = [fact for fact in facts if len(key) >= _SHORTEST_PREFIX and fact.id.startswith(key)]
    if len(starting) == 1:
        return starting[0]
    if starting:
        shown = ", ".join(fact.id for fact in starting[:5])
        raise UsageError(f"Several facts begin with {key}.", detail=shown, remedy="Write more of the id.")
    raise NotFoundError(f"There is no fact {key}.", remedy="`agent-bridge list` shows the ids.")


def fact_at(facts: tuple[Fact, ...], path: str) -> Fact:
    """The fact of this file. Raises ConflictError where it is gone by now."""
    for fact in facts:
        if fact.path == path:
            return fact
    raise gone(path)


def gone(path: str) -> ConflictError:
    """What is raised where a fact that was just there isn't any more."""
    return ConflictError("The fact was changed by somebody else at this moment", path=path)


def refuse_duplicate(facts: Iterable[Fact], text: str) -> None:
    """Raise DuplicateError if one of the facts has this text."""
    wanted = similarity.text_hash(text)
    for fact in facts:
        if fact.text_hash == wanted:
            raise DuplicateError(fact.id)


def similar_facts(facts: Iterable[Fact], text: str, *, threshold: float, but: str = "") -> list[Similar]:
    """The facts that share `threshold` of their words with a text or more, the most similar first.

    `but` is an id to leave out.
    """
    by_id = {fact.id: fact for fact in facts if fact.id != but}
    bodies = ((fact.id, fact.body) for fact in by_id.values())
    found = similarity.most_similar(text, bodies, threshold=threshold)
    return [Similar(by_id[key], score, why) for key, score, why in found]
