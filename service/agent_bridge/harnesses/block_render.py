"""Render a store as the body of a managed block, within a budget of bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from agent_bridge.harnesses.block_body import HEADINGS, NOTHING_YET, Item, Scope, escape_id, with_hash
from agent_bridge.harnesses.markdown import NOTICE_PREFIX, first_heading, safe_body, safe_line
from agent_bridge.memory.similarity import normalise

START = "<!-- agent-bridge:memory:start (managed, do not edit) -->"
END = "<!-- agent-bridge:memory:end -->"

DEFAULT_BUDGET = 16_384
"""Bytes of a whole block as written; one block in AGENTS.md serves all its readers at the smallest budget."""

HINTS: dict[Scope, str] = {
    "project": "`agent-bridge search WORDS` finds facts, `agent-bridge show ID` prints one.",
    "global": "`agent-bridge search --scope global WORDS` finds facts, "
    "`agent-bridge show --scope global ID` prints one.",
}

_CACHED_ITEMS = 8192
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+>][ \t]+)?")


class FactText(Protocol):
    """What rendering needs of a fact."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def body(self) -> str: ...


class DocumentText(Protocol):
    """What rendering needs of one of the documents that people keep (`name` like `conventions.md`)."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Block:
    """A rendered body (LF, with its hash line) and what became of each fact and document.

    `included`, `left_out` (no room) and `skipped` (the file says it already) hold fact ids in given order;
    the documents are told by name. `size` is the number of bytes of the whole block as written, markers and
    line ends included. Only a budget too small for heading and notice (about 400 bytes) is exceeded.
    """

    body: str
    included: tuple[str, ...]
    left_out: tuple[str, ...]
    skipped: tuple[str, ...]
    documents: tuple[str, ...]
    documents_left_out: tuple[str, ...]
    size: int

    @property
    def empty(self) -> bool:
        """Whether the block shows no fact and no document."""
        return not (self.included or self.documents)


class _Part(NamedTuple):
    name: str
    text: str
    size: int  # bytes as UTF-8 with LF
    lines: int  # line ends within


def render_block(
    documents: Sequence[DocumentText],
    facts: Sequence[FactText],
    *,
    budget: int = DEFAULT_BUDGET,
    scope: Scope = "project",
    skip: frozenset[str] = frozenset(),
    eol: str = "\n",
    left_out_hint: str | None = None,
) -> Block:
    """The body for `documents` and then `facts`, each whole or not at all, in the given order.

    `budget` is in bytes, for the whole block as written with `eol`. What doesn't fit is left out and told in
    a paragraph that ends with `left_out_hint`; a later and smaller one may still go in. `skip` holds
    normalised texts (`outside_texts`) which the file has already.
    """
    hint = HINTS[scope] if left_out_hint is None else left_out_hint
    shown = [part for part in map(_document_part, documents) if part]
    skipped = tuple(fact.id for fact in facts if skip and _normalised(fact.body) in skip)
    hidden = frozenset(skipped)
    items = [_fact_part(fact.id, fact.title, fact.body) for fact in facts if fact.id not in hidden]

    extra = len(eol) - 1
    room = budget - _frame(scope, extra)
    kept, dropped = shown, list[_Part]()
    chosen, rest = items, list[_Part]()
    first, then = _costs(shown, extra), _costs(items, extra)
    if sum(first) + sum(then) > room:
        worst = room - _cost(_notice(shown, len(items), hint), extra)
        kept, dropped = _fitting(shown, first, worst)
        room -= _cost(_notice(dropped, len(items), hint), extra)
        room -= sum(_costs(kept, extra))
        chosen, rest = _fitting(items, then, room)

    texts = [HEADINGS[scope], *(part.text for part in kept), *(part.text for part in chosen)]
    if dropped or rest:
        texts.append(_notice(dropped, len(rest), hint).text)
    elif not (shown or facts):
        texts.append(NOTHING_YET)
    body = with_hash("\n\n".join(texts))
    return Block(
        body=body,
        included=tuple(part.name for part in chosen),
        left_out=tuple(part.name for part in rest),
        skipped=skipped,
        documents=tuple(part.name for part in kept),
        documents_left_out=tuple(part.name for part in dropped),
        size=_written_size(body, extra),
    )


def fact_item(fact: FactText) -> Item:
    """The item that a fact renders to: `items(render_block(...).body)` has exactly this one for it.

    Nothing stands in it twice: a heading that is the title is not repeated, a body that is no more than its
    title is not either, and a title that is only the beginning of the body (`…`) is left to the body.
    """
    return _fact_item(fact.id, fact.title, fact.body)


@lru_cache(maxsize=_CACHED_ITEMS)
def _fact_item(fact_id: str, title: str, body: str) -> Item:
    title = safe_line(title) or safe_line(escape_id(fact_id))
    text = safe_body(body)
    heading, rest = first_heading(text)
    if heading and _says(title, safe_line(heading)):
        return Item(fact_id, safe_line(heading), rest)
    if title == normalise(text):
        return Item(fact_id, title, "")
    first = _LIST_MARK.sub("", text.partition("\n")[0])
    return Item(fact_id, "" if _says(title, safe_line(first)) else title, text)


def _says(title: str, line: str) -> bool:
    """Whether a title is the line, whole or cut."""
    return line.startswith(title[:-1].rstrip()) if title.endswith("…") else line == title


@lru_cache(maxsize=_CACHED_ITEMS)
def _fact_part(fact_id: str, title: str, body: str) -> _Part:
    item = _fact_item(fact_id, title, body)
    heading = f"### {item.title} [{escape_id(fact_id)}]" if item.title else f"### [{escape_id(fact_id)}]"
    return _part(fact_id, f"{heading}\n\n{item.text}" if item.text else heading)


@lru_cache(maxsize=_CACHED_ITEMS)
def _normalised(body: str) -> str:
    return normalise(body)


def _document_part(document: DocumentText) -> _Part | None:
    title, text = _document_texts(document)
    return _part(document.name, f"### {title}\n\n{text}") if text else None


def _document_texts(document: DocumentText) -> tuple[str, str]:
    """(title, text): the first heading, or the name, and what is below it; text is "" for a bare heading."""
    text = safe_body(document.text)
    heading, rest = first_heading(text)
    title = safe_line(heading) or safe_line(document.name.removesuffix(".md")).capitalize() or "Document"
    if title.endswith("]"):
        title = "\\[".join(title.rsplit("[", 1))  # `### x [y]` is the heading of a fact
    return title, rest if heading else text


def _notice(documents: Sequence[_Part], facts: int, hint: str) -> _Part:
    names = ", ".join(safe_line(part.name) for part in documents)
    told = []
    if documents:
        told.append(f"the document{'s' if len(documents) > 1 else ''} {names}")
    if facts:
        told.append(f"{facts} fact{'s' if facts > 1 else ''}")
    return _part("", f"{NOTICE_PREFIX} {' and '.join(told)}, for lack of space. {hint}".rstrip())


def _fitting(parts: Sequence[_Part], costs: Sequence[int], room: int) -> tuple[list[_Part], list[_Part]]:
    kept: list[_Part] = []
    dropped: list[_Part] = []
    least = min(costs, default=0)
    for at, (part, cost) in enumerate(zip(parts, costs, strict=True)):
        if room < least:
            dropped += parts[at:]  # of thousands of facts most don't fit
            break
        if cost <= room:
            kept.append(part)
            room -= cost
        else:
            dropped.append(part)
    return kept, dropped


def _part(name: str, text: str) -> _Part:
    return _Part(name, text, len(text.encode()), text.count("\n"))


def _cost(part: _Part, extra: int) -> int:
    return _costs([part], extra)[0]


def _costs(parts: Sequence[_Part], extra: int) -> list[int]:
    """Bytes of each part as written, with the empty line before it."""
    return [part.size + 2 + extra * (part.lines + 2) for part in parts]


def _frame(scope: Scope, extra: int) -> int:
    return _written_size(with_hash(HEADINGS[scope]), extra)


def _written_size(body: str, extra: int) -> int:
    text = f"{START}\n{body}\n{END}\n"
    return len(text.encode()) + extra * text.count("\n")
