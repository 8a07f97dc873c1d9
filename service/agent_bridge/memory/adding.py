"""Writing new facts into a store, one after the other, with one look at what it holds.

Who calls holds the store's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, ConflictError, DuplicateError, RefusedError
from agent_bridge.memory import naming, similarity
from agent_bridge.memory.draft import Draft
from agent_bridge.memory.fact import Fact, parse_fact, plain_body
from agent_bridge.memory.finding import Similar, gone
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.memory.texts import Texts

EDITS_WITHIN_S = 1.0
"""Who adds group upon group sees at once what came, went or was replaced, and within this time what was
edited in place: to look at each of thousands of files for every few facts would take most of the time."""

_TRIES = 50


@dataclass(frozen=True, slots=True)
class Added:
    """A fact that was added, those it resembles, the most similar first, and whether it stays out of tracked
    files."""

    fact: Fact
    similar: list[Similar]
    is_private: bool = False


class Adding:
    """Adds facts to the store at `root`, of which `texts` knows what it holds; it learns what is added."""

    def __init__(self, root: Path, texts: Texts, now: datetime, keep_dir: Path, *, sync: bool = True) -> None:
        """`sync` False leaves it to the caller that files survive a power cut."""
        self._root = root
        self._texts = texts
        self._now = now
        self._keep_dir = keep_dir
        self._sync = sync
        # Of files that can't be read as facts too.
        self._number = texts.next_number(now, _entry_names(root))

    def put(self, draft: Draft) -> Added:
        """Write a fact's file. Raises DuplicateError (names the fact of this text), AgentBridgeError."""
        text = plain_body(draft.text)
        holder = self._texts.holder(similarity.text_hash(text))
        if holder is not None:
            raise DuplicateError(holder)
        written = b""

        def name(attempt: int) -> str:
            fact_id = naming.fact_id_for(
                text, self._number + attempt, self._now, is_secret=draft.holds_secret
            )
            return f"entries/{fact_id}.md"

        def content(path: str) -> bytes:
            nonlocal written
            written = draft.content(PurePosixPath(path).stem, self._now)
            return written

        path = create_new(self._root, name, content, keep_dir=self._keep_dir, sync=self._sync)
        fact = parse_fact(path, written)
        similar = self._texts.alike(fact.body)
        self._texts.add(fact)
        self._number = max(self._number, self._texts.next_number(self._now))
        return Added(fact, similar)


def as_seen(done: Sequence[Added | AgentBridgeError], snapshot: Snapshot) -> list[Added | AgentBridgeError]:
    """The same with the facts of this snapshot, which is what the store holds by now."""
    by_path = {fact.path: fact for fact in snapshot.facts}
    private = {fact.path for fact in (*snapshot.private, *snapshot.withheld)}

    def settled(path: str, similar: list[Similar]) -> Added | AgentBridgeError:
        fact = by_path.get(path)
        return gone(path) if fact is None else Added(fact, similar, path in private)

    return [settled(one.fact.path, one.similar) if isinstance(one, Added) else one for one in done]


def create_new(
    root: Path,
    name: Callable[[int], str],
    content: Callable[[str], bytes],
    *,
    keep_dir: Path,
    sync: bool = True,
) -> str:
    """Write a file that didn't exist, under the first free name below `root`; never over another.

    `name` gives a path for each attempt, `content` the bytes for a path.
    """
    for attempt in range(_TRIES):
        relative = name(attempt)
        image = files.read_image(root / relative, within=root)
        if image.existed:
            continue
        try:
            files.replace(image, content(relative), keep_dir=keep_dir, sync=sync)
        except ConflictError:
            continue
        return relative
    raise RefusedError("No free name was found for the new fact", path=root / name(0))


def _entry_names(root: Path) -> list[str]:
    """Names taken in entries/."""
    try:
        return os.listdir(root / "entries")  # noqa: PTH208 - names are wanted
    except OSError:
        return []
