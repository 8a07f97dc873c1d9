"""Is a text so much like another that it must not become a fact by itself? Pure.

Two measures, the first that holds counts:

- Jaccard over all words, as `similarity` has it: shared words over all words, 0.5 and more.
- Containment, for paraphrases and for a short text within a long one, which Jaccard misses: of the telling
  words of the text that has fewer, the part that the other has too (the overlap coefficient), 0.6 and more
  and at least three. Telling are all words but the common English ones in `_COMMON`; a plural's `s` is taken
  off; a number of three or more digits counts as two words, as few texts share one by chance.

Two texts that say the opposite are alike by both measures, so `Likeness.why` has a hint where only one of
them has a negation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agent_bridge.memory import similarity

CONTAINED = 0.6
"""Texts of which one holds this part of the other's telling words, or more, are alike."""

LEAST_SHARED = 3
"""So many telling words they share at least."""

_LONG_NUMBER = 3

_DENYING = """
avoid cannot couldn didn doesn don isn aren wasn won shouldn mustn neither never no none nor not without
kein keine keinen nicht nie niemals ohne
"""
_LINKING = """
a all also always an and any are as at be been but by can could do does done each every for from had has
have he her here his how i if in into is it its just let made make me more most must my need needs of off on
one only or our out own per please s she should so some such sure t than that the their them then there
these they this those to too up us use used uses using via was we were what when where which while who why
will with would you your
"""
_NEGATIONS = frozenset(_DENYING.split())
_COMMON = _NEGATIONS | frozenset(_LINKING.split())


@dataclass(frozen=True, slots=True)
class Likeness:
    """The text called `key` is alike: by which measure, its figure (0 to 1), and why, in words."""

    key: str
    score: float
    measure: Literal["jaccard", "containment"]
    why: str


class KnownTexts:
    """Texts by key, which can be asked for the one that is most like another, by way of an index of words."""

    def __init__(
        self,
        texts: Iterable[tuple[str, str]] = (),
        *,
        threshold: float = similarity.THRESHOLD,
        contained: bool = True,
    ) -> None:
        """`texts` are (key, text), keys unique; `threshold` is Jaccard's, 0 to 1. `contained`: the second
        measure counts too; long notes hold the words of many a short text by chance."""
        self._threshold = threshold
        self._contained = contained
        self._texts: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._by_word: dict[str, list[str]] = {}
        self._by_telling: dict[str, list[str]] = {}
        for key, text in texts:
            self.add(key, text)

    def add(self, key: str, text: str) -> None:
        """Take in one more text."""
        plain, telling = self._words_of(text)
        self._texts[key] = (plain, telling)
        for word in plain:
            self._by_word.setdefault(word, []).append(key)
        for word in telling:
            self._by_telling.setdefault(word, []).append(key)

    def most_like(self, text: str) -> Likeness | None:
        """The text that is most like this one, by Jaccard before containment; None where none is alike."""
        plain, telling = self._words_of(text)
        found = [
            (score, key)
            for key in self._near(plain)
            if (score := self._jaccard(plain, key)) >= self._threshold
        ]
        if found:
            score, key = min(found, key=lambda one: (-one[0], one[1]))
            other = self._texts[key][0]
            return Likeness(key, score, "jaccard", similarity.why(plain, other) + negation_hint(plain, other))
        return self._most_contained(plain, telling) if self._contained else None

    def _words_of(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        return similarity.words(text), telling_words(text) if self._contained else frozenset()

    def _near(self, plain: frozenset[str]) -> set[str]:
        """Keys of the texts that hold one of the words of which a similar text can't lack all."""
        if self._threshold <= 0:
            return set(self._texts) if plain else set()
        shared = max(1, math.ceil(self._threshold * len(plain) - 1e-9))
        rarest = sorted(plain, key=lambda word: len(self._by_word.get(word, ())))
        return {key for word in rarest[: len(plain) - shared + 1] for key in self._by_word.get(word, ())}

    def _jaccard(self, plain: frozenset[str], key: str) -> float:
        return similarity.jaccard(plain, self._texts[key][0])

    def _most_contained(self, plain: frozenset[str], telling: frozenset[str]) -> Likeness | None:
        best: tuple[float, str] | None = None
        # Two words are shared at least, so one of them is not the most frequent one.
        holding = sorted((self._by_telling.get(word, ()) for word in telling), key=len)
        for key in {key for keys in holding[:-1] for key in keys}:
            score = containment(telling, self._texts[key][1])
            if score >= CONTAINED and (best is None or (-score, key) < (-best[0], best[1])):
                best = (score, key)
        if best is None:
            return None
        other, theirs = self._texts[best[1]]
        why = contained_why(telling, theirs) + negation_hint(plain, other)
        return Likeness(best[1], best[0], "containment", why)


def compare(text: str, other: str) -> tuple[float, str]:
    """Jaccard's figure for two texts and why, in words, whether they are alike or not."""
    one, two = similarity.words(text), similarity.words(other)
    return similarity.jaccard(one, two), similarity.why(one, two) + negation_hint(one, two)


@lru_cache(maxsize=8192)
def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in similarity.words(text) - _COMMON
    )


def containment(one: frozenset[str], other: frozenset[str]) -> float:
    """The part of the smaller set's weight that is shared, 0 to 1; 0 where too little is shared to tell."""
    shared = _weight(one & other)
    return shared / min(_weight(one), _weight(other)) if shared >= LEAST_SHARED else 0.0


def contained_why(one: frozenset[str], other: frozenset[str]) -> str:
    """One sentence for people: how much of the shorter text stands in the other."""
    shared = sorted(one & other)
    fewer = min(len(one), len(other))
    shown = ", ".join(shared[:6]) + (", …" if len(shared) > 6 else "")
    return f"{len(shared)} of the {fewer} telling words of the shorter one stand in both ({shown})"


def negation_hint(one: frozenset[str], other: frozenset[str]) -> str:
    """A remark where only one of two texts denies something; "" else."""
    mine, theirs = one & _NEGATIONS, other & _NEGATIONS
    if bool(mine) == bool(theirs):
        return ""
    word = min(mine or theirs)
    return f"; only one of them has {word!r}: they may say the opposite"


def _weight(words: frozenset[str]) -> int:
    return len(words) + sum(len(word) >= _LONG_NUMBER and word.isdigit() for word in words)
