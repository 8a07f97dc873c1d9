"""When are two texts the same, and how alike are they? Pure.

Equal means: the same after Unicode's canonical composition and with every run of white space as one
blank. Alike means: the word sets overlap (Jaccard), as the reference does it: NFKC, case folded, split at
everything that is neither letter nor digit, no stop words, no stemming.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from agent_bridge.memory.canonical import canonical

THRESHOLD = 0.5
"""Texts that share this part of their words or more are called similar."""

_WORD = re.compile(r"[^\W_]+")


def normalise(text: str) -> str:
    """The text as it is compared for equality: NFC, white space collapsed, ends trimmed; case counts."""
    return " ".join(canonical("NFC", text).split())


def text_hash(text: str) -> str:
    """SHA-256 (hex) of the normalised text; the empty string for a text of white space only."""
    plain = normalise(text)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest() if plain else ""


def words(text: str) -> frozenset[str]:
    """The set of words of a text."""
    return frozenset(_WORD.findall(canonical("NFKC", text).casefold()))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words, 0 to 1; two empty sets share nothing: 0."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def why(one: frozenset[str], other: frozenset[str]) -> str:
    """One sentence for people: which words two texts share, and in which they differ."""
    shared, apart = sorted(one & other), sorted(one ^ other)
    sentence = f"share {len(shared)} of {len(one | other)} words ({_some(shared)})"
    return f"{sentence}; differ in {_some(apart)}" if apart else f"{sentence}; only their order differs"


def most_similar(
    text: str, others: Iterable[tuple[str, str]], *, threshold: float = THRESHOLD
) -> list[tuple[str, float, str]]:
    """Those of `others` (key, text) that are similar: (key, score, why), the most similar first."""
    mine = words(text)
    if not mine:
        return []
    found = []
    for key, other in others:
        theirs = words(other)
        score = jaccard(mine, theirs)
        if score >= threshold:
            found.append((key, score, why(mine, theirs)))
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _some(listed: list[str], most: int = 6) -> str:
    shown = ", ".join(listed[:most])
    return f"{shown}, …" if len(listed) > most else shown
