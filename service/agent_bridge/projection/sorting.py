"""Sort texts that were found in harnesses by what a memory says of them already. Pure.

Identical to a fact: skipped. Like one (`likeness`), or like a text that comes before it or waits for review:
a conflict, which only a person resolves. Else new. Texts are taken in reading order, and each is compared
with all that came before it, conflicts too: fifty rephrasings, of which each resembles only the next, are one
fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agent_bridge.harnesses.base import NativeItem
from agent_bridge.harnesses.markdown import whole_texts
from agent_bridge.memory import likeness, similarity
from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.likeness import KnownTexts, Likeness
from agent_bridge.memory.secrets import find_secrets
from agent_bridge.memory.similarity import normalise, text_hash
from agent_bridge.memory.visible import shortened
from agent_bridge.projection.judged import Judged, Verdict
from agent_bridge.projection.review import Candidate

_PROJECTED = re.compile(r"\[([^\[\]\n]{4,200})\](?!\()\s*(.*)", re.DOTALL)
_FACT_ID = re.compile(r"\d{8}-\d{4}-\S+")


class Outcome(StrEnum):
    """What a text is to a memory."""

    NEW = "new"
    SKIPPED = "skipped"
    """It is remembered, or somebody has decided about it."""
    CONFLICT = "conflict"
    """It is like a fact, or like another text: a person decides."""
    REFUSED = "refused"
    """It can't be a fact."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One text and what it is. `fact_id`: the fact that it is, is like, or has become ("": none).

    `score` (0 to 1) and `why` tell of a likeness; `follows` is the place in the list of the new text that it
    is like, which is no fact yet.
    """

    item: NativeItem
    outcome: Outcome
    fact_id: str = ""
    score: float = 0.0
    why: str = ""
    follows: int | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What texts are compared with: a store, what waits for review, and what has been decided before."""

    facts: tuple[Fact, ...] = ()
    documents: tuple[Document, ...] = ()
    waiting: tuple[Candidate, ...] = ()
    judged: Mapping[str, Judged] = field(default_factory=dict)


def sort_texts(
    items: Iterable[NativeItem], memory: Memory, *, threshold: float = similarity.THRESHOLD
) -> list[Finding]:
    """What each of `items` is to `memory`, in their order; `threshold` is Jaccard's."""
    sorter = _Sorter(memory, threshold)
    for item in items:
        sorter.take(item)
    return sorter.findings


def most_like_fact(text: str, facts: Iterable[Fact]) -> Likeness | None:
    """The fact that a text is like, by its id, and why as it may be told; None where it is like none."""
    by_id = {fact.id: fact for fact in facts}
    found = KnownTexts((fact.id, fact.body) for fact in by_id.values()).most_like(text)
    return None if found is None else replace(found, why=_told(found.why, text, by_id[found.key]))


def told_likeness(text: str, fact: Fact) -> tuple[float, str]:
    """Jaccard's figure for a text and a fact, alike or not, and why as it may be told."""
    score, why = likeness.compare(text, fact.body)
    return score, _told(why, text, fact)


class _Sorter:
    def __init__(self, memory: Memory, threshold: float) -> None:
        self.findings: list[Finding] = []
        self._memory = memory
        self._facts = {fact.id: fact for fact in memory.facts}
        self._by_text = {fact.text_hash: fact.id for fact in reversed(memory.facts)}
        self._documents = {
            text_hash(text): document.name
            for document in memory.documents
            for text in whole_texts(document.text)
        }
        self._waiting = {text_hash(one.text): one for one in memory.waiting}
        self._said: dict[str, int] = {}
        self._index = KnownTexts(((fact.id, fact.body) for fact in memory.facts), threshold=threshold)
        self._earlier = KnownTexts(
            ((f"waiting {one.id}", one.text) for one in memory.waiting), threshold=threshold
        )

    def take(self, item: NativeItem) -> None:
        """Judge the next text."""
        finding = self._judged(item)
        key = text_hash(finding.item.text)
        if key and key not in self._said:
            self._said[key] = len(self.findings)
            if finding.outcome in (Outcome.NEW, Outcome.CONFLICT):
                self._earlier.add(f"text {len(self.findings)}", finding.item.text)
        self.findings.append(finding)

    def _judged(self, item: NativeItem) -> Finding:
        projected = self._shown_fact(item)
        if projected is not None and projected.outcome is Outcome.SKIPPED:
            return projected
        if projected is not None:
            item = projected.item
        return self._decided(item) or projected or self._like(item)

    def _decided(self, item: NativeItem) -> Finding | None:
        """What needs no comparing: the text as it is, is known."""
        key = text_hash(item.text)
        if not key:
            return Finding(item, Outcome.SKIPPED, why="nothing stands in it")
        if key in self._by_text:
            return Finding(item, Outcome.SKIPPED, self._by_text[key], why="it is remembered")
        if key in self._documents:
            return Finding(item, Outcome.SKIPPED, why=f"it stands in {self._documents[key]}")
        if key in self._said:
            first = self.findings[self._said[key]]
            why = f"it stands in {first.item.source_file} too"
            return Finding(item, Outcome.SKIPPED, first.fact_id, why=why)
        known = self._memory.judged.get(key)
        return None if known is None else Finding(item, Outcome.SKIPPED, known.fact_id, why=_verdict(known))

    def _shown_fact(self, item: NativeItem) -> Finding | None:
        """A line by which memory-bridge, or our `list`, shows a fact: `[id] text (tags)`; perhaps edited."""
        found = _PROJECTED.fullmatch(item.text)
        fact = self._facts.get(found[1]) if found else None
        if found is None or (fact is None and not _FACT_ID.fullmatch(found[1])):
            return None
        if fact is None:
            return Finding(item, Outcome.SKIPPED, why=f"it shows a fact that is no more, {found[1]}")
        tags = f"({', '.join(fact.tags)})" if fact.tags else ""
        shown = {normalise(f"{head} {fact.body}") for head in ("", fact.title, f"{fact.title} {tags}")}
        shown |= {normalise(f"{fact.body} {tags}"), normalise(f"{fact.title} {tags}"), fact.title}
        if normalise(found[2]) in shown:
            return Finding(item, Outcome.SKIPPED, fact.id, why="it shows a fact")
        edited = replace(item, text=found[2].removesuffix(tags).strip())
        score, why = told_likeness(edited.text, fact)
        return Finding(
            edited, Outcome.CONFLICT, fact.id, score, f"it is the edited line of {fact.id}: they {why}"
        )

    def _like(self, item: NativeItem) -> Finding:
        waiting = self._waiting.get(text_hash(item.text))
        if waiting is not None:
            why = f"it waits for review as {waiting.id}"
            return Finding(item, Outcome.CONFLICT, waiting.similar, waiting.score, why)
        found = self._index.most_like(item.text)
        if found is not None:
            fact = self._facts[found.key]
            why = f"it is like {fact.id}: they {_told(found.why, item.text, fact)}"
            return Finding(item, Outcome.CONFLICT, fact.id, found.score, why)
        found = self._earlier.most_like(item.text)
        if found is None:
            return Finding(item, Outcome.NEW)
        kind, _, name = found.key.partition(" ")
        if kind == "waiting":
            one = next(one for one in self._memory.waiting if one.id == name)
            why = f"it is like the text that waits as {name}: they {_told(found.why, item.text)}"
            return Finding(item, Outcome.CONFLICT, one.similar, found.score, why)
        before = self.findings[int(name)]
        first = int(name) if before.outcome is Outcome.NEW else before.follows
        why = f"it is like an earlier text, {_begin(before.item.text)!r}: they {_told(found.why, item.text)}"
        return Finding(item, Outcome.CONFLICT, before.fact_id, found.score, why, first)


def _told(why: str, text: str, fact: Fact | None = None) -> str:
    """The reason, without words where one of the texts holds a credential: they may be a part of it."""
    if find_secrets(text) or (fact is not None and fact.secrets):
        return "share many words; which is not told, as one of them holds a secret"
    return why if why.startswith("share") else f"are alike: {why}"


def _verdict(known: Judged) -> str:
    if known.verdict is Verdict.REJECTED:
        return f"{known.fact_id} said it and was forgotten" if known.fact_id else "rejected before"
    if known.verdict is Verdict.MERGED:
        return f"merged into {known.fact_id} before"
    return "taken over before; its fact was changed or removed since"


def _begin(text: str) -> str:
    return "(it holds a secret)" if find_secrets(text) else shortened(text, 60)
