"""Of which fact a text is an edit that somebody wrote inside our block. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent_bridge.errors import MarkerError
from agent_bridge.harnesses.managed_block import Item, block_text, items
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.sorting import most_like_fact, told_likeness

WRITTEN = "it was written inside our block"


@dataclass(frozen=True, slots=True)
class Edit:
    """Why a text is a candidate, and the fact it edits or is like ("": none) with the figure (0 to 1)."""

    why: str
    fact_id: str = ""
    score: float = 0.0


def describe(text: str, data: bytes, facts: Iterable[Fact]) -> Edit:
    """What a text in the block of a file's bytes is: an edit of one of `facts`, lines put into it, or new."""
    by_id = {fact.id: fact for fact in facts}
    for item in _items(data):
        fact = by_id.get(item.fact_id or "")
        if fact is not None and _stands_in(text, item):
            score, why = told_likeness(item.text or item.title, fact)
            return Edit(f"{WRITTEN}, below {fact.id}: they {why}", fact.id, score)
    found = most_like_fact(text, by_id.values())
    if found is None:
        return Edit(WRITTEN)
    return Edit(f"{WRITTEN}; it is like {found.key}: they {found.why}", found.key, found.score)


def beyond(text: str, ours: str) -> str:
    """The text without the lines of `ours`."""
    known = {line.strip() for line in ours.split("\n")}
    return "\n".join(
        line for line in text.split("\n") if line.strip() not in known or not line.strip()
    ).strip("\n")


def _items(data: bytes) -> list[Item]:
    try:
        body = block_text(data)
    except MarkerError:
        return []
    return [] if body is None else items(body)


def _stands_in(text: str, item: Item) -> bool:
    """Whether a text is all of an item, or lines of its text."""
    if text == "\n\n".join(part for part in (item.title, item.text) if part):
        return True
    lines = {line.strip() for line in item.text.split("\n")}
    return all(line.strip() in lines for line in text.split("\n"))
