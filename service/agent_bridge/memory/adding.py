"""Writing new facts into a store, one after the other, with one look at what it holds.

Who calls holds the store's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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

_TRIES = 50


@dataclass(frozen=True, slots=True)
class Added:
    """A fact that was added, those it resembles, the most similar first, and whether it stays out of tracked
    files."""

    fact: Fact
    similar: list[Similar]
    is_private: bool = False


class Adding:
    """What a store holds, as far as adding needs it; it learns what is added."""

    def __init__(
        self,
        root: Path,
        facts: Iterable[Fact],
        now: datetime,
        threshold: float,
        keep_dir: Path,
        words: Mapping[str, frozenset[str]],
        *,
        sync: bool = True,
    ) -> None:
        """`facts` are those below `root`; `threshold`: the part of their words that similar texts share.

        `words` are the words of texts by hash, as far as they are known from earlier; `sync` False leaves
        it to the caller that files survive a power cut.
        """
        self._root = root
        self._facts = list(facts)
        self.words: dict[str, frozenset[str]] = {}
        self._ids_by_text: dict[str, str] = {}
        for fact in self._facts:
            self._ids_by_text.setdefault(fact.text_hash, fact.id)
            known = words.get(fact.text_hash)
            self.words[fact.text_hash] = similarity.words(fact.body) if known is None else known
        self._now = now
        self._threshold = threshold
        self._keep_dir = keep_dir
        self._sync = sync
        self._number = naming.next_number([*_entry_names(root), *(fact.id for fact in self._facts)], now)

    def put(self, draft: Draft) -> Added:
        """Write a fact's file. Raises DuplicateError (names the fact of this text), AgentBridgeError."""
        text = plain_body(draft.text)
        holder = self._ids_by_text.get(similarity.text_hash(text))
        if holder is not None:
            raise DuplicateError(holder)

        def name(attempt: int) -> str:
            fact_id = naming.fact_id_for(
                text, self._number + attempt, self._now, is_secret=draft.holds_secret
            )
            return f"entries/{fact_id}.md"

        def content(path: str) -> bytes:
            return draft.content(PurePosixPath(path).stem, self._now)

        path = create_new(self._root, name, content, keep_dir=self._keep_dir, sync=self._sync)
        return self._learn(parse_fact(path, content(path)))

    def _learn(self, fact: Fact) -> Added:
        words = similarity.words(fact.body)
        alike = self._alike(words)
        self._facts.append(fact)
        self.words[fact.text_hash] = words
        self._ids_by_text[fact.text_hash] = fact.id
        self._number = max(self._number, naming.next_number([fact.id], self._now))
        return Added(fact, sorted(alike, key=lambda one: (-one.score, one.fact.id)))

    def _alike(self, words: frozenset[str]) -> list[Similar]:
        found = []
        size, least = len(words), self._threshold
        for other in self._facts if words else ():
            theirs = self.words[other.text_hash]
            # `jaccard` multiplied out: there are thousands of texts, and most aren't alike.
            shared = len(words & theirs)
            if shared >= least * (size + len(theirs) - shared):
                score = similarity.jaccard(words, theirs)
                found.append(Similar(other, score, similarity.why(words, theirs)))
        return found


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
    """Names taken in entries/, of files that can't be read as facts too."""
    try:
        return os.listdir(root / "entries")  # noqa: PTH208 - names are wanted
    except OSError:
        return []
