"""Looking facts up for the tools: by words, by id, page by page. These functions block."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge.errors import RefusedError, UsageError
from agent_bridge.mcp import memory_places as places
from agent_bridge.mcp.memory_text import Shown
from agent_bridge.mcp.ports import StorePlace
from agent_bridge.memory.likeness import telling_words
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.search import Hit, fold
from agent_bridge.memory.snapshot import Snapshot

if TYPE_CHECKING:
    from agent_bridge.mcp.ports import MemoryPort
    from agent_bridge.memory.fact import Fact

_MOST_WORDS = 12
"""Words of a query that are looked for one by one where no fact holds all of them."""

Position = tuple[str, str]
"""Where a listing has come to: the scope and the path of the last fact."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a query found; `is_partial`: no fact holds all words, these hold some, the most first.
    `more`: there are others."""

    facts: list[Shown]
    is_partial: bool
    more: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The facts after a position, all of them; `total` and `held_back` (they hold a secret) count the
    whole listing."""

    facts: list[Shown]
    positions: list[Position]
    total: int
    held_back: int


def search(memory: MemoryPort, stores: Sequence[StorePlace], query: str, limit: int) -> Found:
    """The facts of these stores that hold the words of a query, the best first."""
    words = query.split()
    hits = _ranked(_hits(memory, stores, words, limit + 1))
    if hits or len(words) == 1:
        return Found([one for _, one in hits[:limit]], is_partial=False, more=len(hits) > limit)
    partial = _some_words(memory, stores, query, limit + 1)
    return Found(partial[:limit], is_partial=True, more=len(partial) > limit)


def one(memory: MemoryPort, start: Path | None, key: str, scope: places.WriteScope | None) -> Shown:
    """The fact with this id. Raises NotFoundError, and RefusedError for one that holds a secret."""
    place, fact, _ = places.holding(memory, start, key, scope)
    if fact.secrets:
        raise RefusedError(
            f"The fact {fact.id} holds a secret ({', '.join(fact.secrets)}), so agents don't get it.",
            remedy="The user can see it by `agent-bridge show`; update_memory can give it another text.",
        )
    return shown(memory, place, fact)


def shown(memory: MemoryPort, place: StorePlace, fact: Fact) -> Shown:
    """A fact as it may be shown."""
    snapshot = memory.serialized(place, place.store.scan)
    return Shown(presentable(fact), place.scope, fact.path in _private(snapshot))


def page(
    memory: MemoryPort,
    stores: Sequence[StorePlace],
    *,
    tag: str | None,
    kind: str | None,
    after: Position | None,
) -> Page:
    """What a listing holds after a position.

    It goes by the files' names, newest first, which no edit changes: nothing is listed twice or left out,
    whatever is written meanwhile.
    """
    facts: list[tuple[Position, Shown]] = []
    held_back = 0
    for place in stores:
        snapshot = memory.serialized(place, place.store.scan)
        private = _private(snapshot)
        held_back += len(snapshot.withheld)
        facts += [
            ((place.scope, fact.path), Shown(fact, place.scope, fact.path in private))
            for fact in snapshot.readable
            if _fits(fact, tag, kind)
        ]
    # Two sorts: "project" before "global", then paths backwards; both descend.
    ordered = sorted(facts, key=lambda each: each[0], reverse=True)
    rest = [each for each in ordered if after is None or each[0] < after]
    return Page([one for _, one in rest], [at for at, _ in rest], len(ordered), held_back)


def cursor(position: Position) -> str:
    """A position as a word for the agent."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode("ascii").rstrip("=")


def read_cursor(text: str | None) -> Position | None:
    """What `cursor` made. Raises UsageError for anything else."""
    if not text:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        scope, path = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not (isinstance(scope, str) and isinstance(path, str)):
            raise ValueError("no position")
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(
            "This isn't a cursor of list_memory's.", remedy="Leave `cursor` out to begin at the first page."
        ) from error
    return scope, path


def _hits(
    memory: MemoryPort, stores: Iterable[StorePlace], words: Sequence[str], limit: int
) -> list[tuple[Hit, Shown]]:
    found: list[tuple[Hit, Shown]] = []
    for place in stores:

        def look(place: StorePlace = place) -> tuple[Snapshot, list[Hit]]:
            snapshot = place.store.scan()
            open_facts = replace(snapshot, facts=snapshot.readable)
            return snapshot, place.search.query(open_facts, words, limit)

        snapshot, hits = memory.serialized(place, look)
        private = _private(snapshot)
        found += [(hit, Shown(hit.fact, place.scope, hit.fact.path in private)) for hit in hits]
    return found


def _ranked(found: list[tuple[Hit, Shown]]) -> list[tuple[Hit, Shown]]:
    return sorted(found, key=lambda each: -each[0].score)


def _some_words(memory: MemoryPort, stores: Sequence[StorePlace], query: str, limit: int) -> list[Shown]:
    """The facts that hold the most words of a query, other words than `the` and `is`."""
    telling = sorted(telling_words(fold(query)), key=lambda word: (-len(word), word))[:_MOST_WORDS]
    counted: dict[Position, tuple[int, float, Shown]] = {}
    for word in telling:
        for hit, fact in _hits(memory, stores, [word], 10 * limit):
            at = (fact.scope, hit.fact.path)
            often, score, _ = counted.get(at, (0, 0.0, fact))
            counted[at] = (often + 1, score + hit.score, fact)
    ordered = sorted(counted.values(), key=lambda each: (-each[0], -each[1]))
    return [fact for _, _, fact in ordered[:limit]]


def _private(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(fact.path for fact in (*snapshot.private, *snapshot.withheld))


def _fits(fact: Fact, tag: str | None, kind: str | None) -> bool:
    has_tag = tag is None or tag.strip().lstrip("#").casefold() in {one.casefold() for one in fact.tags}
    return has_tag and (kind is None or fact.type.casefold() == kind.strip().casefold())
