"""The texts of a store's facts, as adding needs them: which is the same as a new one, and which are alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from agent_bridge.memory import naming, similarity
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.finding import Similar

INDEXED_FROM = 32
"""So many texts are compared with all others before an index of words is made, which costs as much."""


class Texts:
    """Follows a store from look to look: what it knows of a text it keeps while a fact has that text."""

    def __init__(self, threshold: float) -> None:
        """`threshold`: the part of their words that similar texts share, 0 to 1."""
        self._threshold = threshold
        self._facts: dict[str, Fact] = {}
        self._holders: dict[str, list[str]] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._by_word: dict[str, list[str]] | None = None
        self._compared = 0
        self._numbers: dict[str, int] = {}
        self._names: set[str] = set()

    def follow(self, facts: Iterable[Fact]) -> None:
        """The store holds these facts now."""
        now = {fact.path: fact for fact in facts}
        known = self._facts
        for path in known.keys() - now.keys():
            self._drop(path)
        for path, fact in now.items():
            before = known.get(path)
            if before is fact:
                continue
            if before is not None and before.text_hash == fact.text_hash:
                known[path] = fact
                continue
            if before is not None:
                self._drop(path)
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """The store holds one more fact."""
        name = fact.path.rpartition("/")[2]
        self._facts[fact.path] = fact
        self._names.add(name)
        self._holders.setdefault(fact.text_hash, []).append(fact.path)
        if fact.text_hash not in self._words:
            words = self._words[fact.text_hash] = similarity.words(fact.body)
            if self._by_word is not None:
                self._enter(self._by_word, fact.text_hash, words)
        for numbered in (naming.number_of(fact.id), naming.number_of(name)):
            if numbered is not None:
                day, number = numbered
                self._numbers[day] = max(number, self._numbers.get(day, 0))

    def holder(self, text_hash: str) -> str | None:
        """The id of a fact that has the text of this hash."""
        holders = self._holders.get(text_hash)
        return None if holders is None else self._facts[holders[0]].id

    def next_number(self, now: datetime, names: Iterable[str] = ()) -> int:
        """One more than the highest number that a fact of the day has had, or one of these file names has."""
        highest = self._numbers.get(naming.day_of(now), 0)
        return max(highest + 1, naming.next_number(set(names) - self._names, now))

    def alike(self, text: str) -> list[Similar]:
        """The facts that resemble a text, the most similar first."""
        words = similarity.words(text)
        found = []
        for text_hash in self._near(words):
            theirs = self._words[text_hash]
            # `jaccard` multiplied out: there may be thousands of texts, and most aren't alike.
            shared = len(words & theirs)
            if shared >= self._threshold * (len(words) + len(theirs) - shared):
                score, why = similarity.jaccard(words, theirs), similarity.why(words, theirs)
                found += [Similar(self._facts[path], score, why) for path in self._holders[text_hash]]
        return sorted(found, key=lambda one: (-one.score, one.fact.id))

    def _near(self, words: frozenset[str]) -> Iterable[str]:
        """Hashes of the texts that can be alike: those that hold one of the words of which no similar text
        can lack all."""
        if not words:
            return ()
        self._compared += 1
        if self._threshold <= 0 or (self._by_word is None and self._compared < INDEXED_FROM):
            return self._words
        if self._by_word is None:
            self._by_word = {}
            for text_hash, theirs in self._words.items():
                self._enter(self._by_word, text_hash, theirs)
        holding = sorted((self._by_word.get(word, []) for word in words), key=len)
        least = max(1, math.ceil(self._threshold * len(words) - 1e-9))
        return dict.fromkeys(one for hashes in holding[: len(words) - least + 1] for one in hashes)

    def _drop(self, path: str) -> None:
        fact = self._facts.pop(path)
        holders = self._holders[fact.text_hash]
        holders.remove(path)
        if holders:
            return
        del self._holders[fact.text_hash]
        words, by_word = self._words.pop(fact.text_hash), self._by_word
        if by_word is None:
            return
        for word in words:
            by_word[word].remove(fact.text_hash)
            if not by_word[word]:
                del by_word[word]

    def _enter(self, by_word: dict[str, list[str]], text_hash: str, words: frozenset[str]) -> None:
        for word in words:
            by_word.setdefault(word, []).append(text_hash)
