"""What one file should be, given what it is: pure, bytes and facts in, a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agent_bridge.errors import MarkerError
from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Notice, Scope
from agent_bridge.harnesses.block_body import HEADINGS, with_hash
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.harnesses.managed_block import Item
from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.similarity import normalise
from agent_bridge.projection import gitlaw
from agent_bridge.projection.block_edits import beyond
from agent_bridge.projection.targets import Target


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scope has to say, most important first, and what each reader hears elsewhere already.

    `elsewhere` maps a harness's name to the normalised texts that the other scope's block gives it.
    """

    documents: tuple[Document, ...]
    facts: tuple[Fact, ...]
    elsewhere: Mapping[str, frozenset[str]]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to say."""
        return not self.documents and not self.facts


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a file besides its bytes.

    `ours`: the bytes are those that we wrote last. `revisions`: its bytes in HEAD, HEAD's
    parents and MERGE_HEAD. `recorded`: the ledger knows the file. `created`: it wasn't there before us.
    """

    ours: bool = False
    recorded: bool = False
    created: bool = False
    separator: bytes | None = None
    revisions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """`after`: the file's bytes as they should be (None: there should be no file).

    `left_out` are the names of documents and the ids of facts that its budget has no room for.
    `candidates` are texts found inside the block that aren't ours; they are kept before `after` is written.
    `refused` says why nothing is to be written.
    """

    after: bytes | None
    separator: bytes = b""
    left_out: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    refused: Notice | None = None


def decide(target: Target, data: bytes | None, wanted: Wanted, evidence: Evidence) -> Decision:
    """Decide on one target; `data` are the file's bytes, None where there is no file."""
    try:
        return _decide(target, data, wanted, evidence)
    except MarkerError as error:
        return Decision(data, refused=Notice("warning", "markers", error.sentence(), target.path))


def _decide(target: Target, data: bytes | None, wanted: Wanted, evidence: Evidence) -> Decision:
    before = data or b""
    span = managed_block.find_block(before)
    if target.own and data is not None and span is None and not evidence.recorded and before.strip():
        text = f"{target.path} is somebody else's file of the same name; it is left alone."
        return Decision(data, refused=Notice("warning", "name-taken", text, target.path))
    candidates: tuple[str, ...] = ()
    if span is not None and not evidence.ours and not managed_block.is_ours(before):
        candidates = gitlaw.foreign_items(before, wanted.documents, wanted.facts, evidence.revisions)
    separator = evidence.separator or b""
    if wanted.empty or target.retired:
        if span is None:
            return Decision(data, candidates=candidates)
        return _without_block(target, before, evidence, candidates)
    if target.text:
        body = with_hash(f"{HEADINGS[target.scope.value]}\n\n{target.text}")
        spliced = managed_block.splice(_base(target, data), body, separator=separator or None)
        kept = separator if span is not None else spliced.separator
        theirs = tuple(rest for text in candidates if (rest := beyond(text, target.text)).strip())
        return Decision(spliced.data, separator=kept, candidates=theirs)
    told, known = _parted(wanted.facts, _heard(target, wanted))
    eol = (managed_block.dominant_eol(before) or b"\n").decode("ascii")
    block = managed_block.render_block(
        wanted.documents,
        told,
        budget=target.budget,
        scope="project" if target.scope is Scope.PROJECT else "global",
        skip=managed_block.outside_texts(before),
        eol=eol,
    )
    spliced = managed_block.splice(_base(target, data), block.body, separator=separator or None)
    return Decision(
        spliced.data,
        separator=separator if span is not None else spliced.separator,
        left_out=block.documents_left_out + block.left_out,
        skipped=block.skipped + known,
        included=block.included,
        candidates=candidates,
    )


def _base(target: Target, data: bytes | None) -> bytes:
    """What the block is put into: the file, or in a new one of ours its header."""
    before = data or b""
    return target.header.encode() if target.own and not before.strip() else before


@lru_cache(maxsize=8192)
def item_texts(item: Item) -> tuple[str, ...]:
    """By what an item is known again in another block: the whole, and its text below the title."""
    text = normalise(item.text)
    return (item.key, text) if text else (item.key,)


def _without_block(
    target: Target, before: bytes, evidence: Evidence, candidates: tuple[str, ...]
) -> Decision:
    rest = managed_block.remove(before, evidence.separator or b"")
    ours = evidence.created and rest.strip() in (b"", target.header.strip().encode())
    return Decision(None if ours else rest, candidates=candidates)


def _parted(facts: tuple[Fact, ...], heard: frozenset[str]) -> tuple[list[Fact], tuple[str, ...]]:
    """The facts that are to be said, and the ids of those that are heard elsewhere."""
    if not heard:
        return list(facts), ()
    told, known = [], []
    for fact in facts:
        if heard.isdisjoint(item_texts(fact_item(fact))):
            told.append(fact)
        else:
            known.append(fact.id)
    return told, tuple(known)


def _heard(target: Target, wanted: Wanted) -> frozenset[str]:
    """The texts that every reader of this file gets from the other scope's block as well."""
    if target.scope is not Scope.PROJECT or not target.readers:
        return frozenset()
    heard = [wanted.elsewhere.get(reader, frozenset()) for reader in target.readers]
    return frozenset.intersection(*heard)


def distinct(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts without those whose text an earlier one has already."""
    listed = tuple(facts)
    if len({fact.text_hash for fact in listed}) == len(listed):
        return listed
    first: dict[str, Fact] = {}
    for fact in listed:
        first.setdefault(fact.text_hash or fact.path, fact)
    return tuple(first.values())
