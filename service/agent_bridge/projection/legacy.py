"""What memory-bridge 0.1 left in a project: its sections and generated files are replaced, once, at `init`.

A section gives way to our block where the file is to have one, else it goes; a generated file the same. The
former bytes are in a ledger of their own below the project's state directory (`legacy/`): `eject` puts back
what was taken, once our blocks are gone. Texts that stand there and nowhere else go to the review before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.documents import DOCUMENTS
from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.projection import review
from agent_bridge.projection.importing.memory_bridge import INDEX, MAX_INDEX, Row, read_rows
from agent_bridge.projection.ledger import Entry, Kind, Ledger
from agent_bridge.projection.legacy_signs import GENERATED, ledger_of
from agent_bridge.projection.legacy_text import (
    EMPTY,
    Known,
    find_section,
    has_own_section,
    is_generated_file,
)
from agent_bridge.projection.lines_back import put_back
from agent_bridge.projection.survey import Survey
from agent_bridge.projection.targets import Target, why_misled
from agent_bridge.projection.undo import Undone
from agent_bridge.projects import Project

WITH_SECTIONS = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "GEMINI.md")

_MOST_WORDINGS = 8
"""Of one fact: its file has one, the index another. A repository may bring an index with any number."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A text that stands in no fact: it goes to the review. `similar`: the fact that it stood for, if any."""

    text: str
    why: str
    similar: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file; `text` says it in words.

    `after` None: it is removed. `without` and `rest` are its bytes before and after, both without a block of
    ours: what `eject` puts back, and by what it knows that nobody wrote since. `is_whole`: the whole file was
    memory-bridge's.
    """

    image: FileImage
    is_whole: bool
    after: bytes | None
    without: bytes
    rest: bytes
    text: str
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Everything of memory-bridge's that `init` would change, and what a person should know of the rest."""

    changes: tuple[Change, ...]
    waiting: tuple[Waiting, ...]
    notices: tuple[Notice, ...]

    def change_of(self, real: Path) -> Change | None:
        """The change of the file at this real path."""
        return next((change for change in self.changes if change.image.real == real), None)


def look(project: Project, survey: Survey, snapshot: Snapshot) -> Found:
    """Find what memory-bridge left. Reads only."""
    rows, notices = _rows(project.store)
    known = _known(project.store, snapshot, rows)
    ours = Ledger(project.state)
    changes: dict[Path, Change] = {}
    for site in survey.sites:
        checkout = survey.checkouts.get(site.checkout)
        for name in (*WITH_SECTIONS, *GENERATED):
            try:
                image = files.read_image(site.checkout / name, within=site.checkout)
                misled = why_misled(image.path, image.real, site.checkout)
                if not image.existed or misled or image.real in changes:
                    continue
                change = _change(image, name, known, survey, ours.get(image.path))
            except AgentBridgeError:
                continue  # links that lead away, broken markers: told where the file is to carry a block
            if change is None:
                if name in WITH_SECTIONS and has_own_section(image.data, known):
                    notices.append(_own_section(image.path))
            elif busy := _busy(checkout, image.real):
                notices.append(_waits(image.path, busy))
            else:
                changes[image.real] = change
    return Found(tuple(changes.values()), tuple(_lost_rows(rows, snapshot, known)), tuple(notices))


def replace_all(project: Project, found: Found, now: datetime | None = None) -> tuple[tuple[str, str], ...]:
    """Do what `look` found; the caller holds the project's lock. What is left, as (path, why)."""
    ledger = ledger_of(project)
    moment = now or datetime.now(UTC)
    left = [(str(notice.path), notice.text) for notice in found.notices]
    for one in found.waiting:
        _keep(project, one, project.store / INDEX, moment)
    for change in found.changes:
        for one in change.waiting:
            _keep(project, one, change.image.path, moment)
        entry = Entry(
            str(change.image.path),
            Kind.OWN if change.is_whole else Kind.BLOCK,
            first=ledger.keep(change.without),
            after=ledger.keep(change.rest),
        )
        ledger.put(entry)
        try:
            if change.after is None:
                files.delete(change.image, keep_dir=ledger.kept)
            else:
                files.replace(change.image, change.after, keep_dir=ledger.kept)
        except AgentBridgeError as error:
            ledger.drop(entry.path)
            left.append((str(change.image.path), error.sentence()))
    return tuple(left)


def restore_all(project: Project) -> list[Undone]:
    """Put back what was taken out; for `eject`, when no block of ours is left. Drops what is done."""
    ledger = ledger_of(project)
    undone = []
    for entry in ledger.entries():
        try:
            undone.append(_restore(ledger, entry))
        except AgentBridgeError as error:
            undone.append(Undone(entry.path, "refused", str(error)))
            continue
        ledger.drop(entry.path)
    return undone


def waiting_in_words(count: int) -> str:
    """How many texts go to the review."""
    texts = "1 text that is in no fact goes" if count == 1 else f"{count} texts that are in no fact go"
    return f"{texts} to the review"


def _change(image: FileImage, name: str, known: Known, survey: Survey, entry: Entry | None) -> Change | None:
    target = _target(survey, image.real)
    # The line ends that stand before a block of ours because of us; a new one in a section's place has none.
    separator = (entry.separator or "").encode("ascii") if entry else b""
    section = find_section(image.data, known)
    if name in GENERATED:
        if not is_generated_file(image.data) or section is None:
            return None
        left = [Waiting(text, "it stood in a file that memory-bridge generated") for text in section.kept]
        after = None if target is None else managed_block.splice(target.header.encode(), EMPTY).data
        rest = b"" if after is None else managed_block.remove(after, b"")
        done = "is removed" if target is None else "becomes ours"
        told = f"memory-bridge generated it; it {done}{_and_review(len(section.edited) + len(left))}"
        waiting = (*(_edited(one.fact_id, one.text, known) for one in section.edited), *left)
        return Change(
            image, is_whole=True, after=after, without=image.data, rest=rest, text=told, waiting=waiting
        )
    if section is None:
        return None
    place = "gives way to the block" if target else f"is taken out{_where(survey)}"
    kept = f"; lines in it that aren't memory-bridge's stay ({len(section.kept)})" if section.kept else ""
    told = f"the section that memory-bridge wrote (lines {section.first} to {section.last}) {place}{kept}"
    placed = section.placed if target else section.rest
    return Change(
        image,
        is_whole=False,
        after=placed,
        without=managed_block.remove(image.data, separator),
        rest=managed_block.remove(placed, separator),
        text=told + _and_review(len(section.edited)),
        waiting=tuple(_edited(one.fact_id, one.text, known) for one in section.edited),
    )


def _edited(fact_id: str, text: str, known: Known) -> Waiting:
    if fact_id in known.entries:
        return Waiting(text, f"memory-bridge's line of {fact_id} was edited", fact_id)
    return Waiting(text, f"memory-bridge's line of {fact_id}, which is no fact any more")


def _and_review(count: int) -> str:
    return f"; {waiting_in_words(count)}" if count else ""


def _where(survey: Survey) -> str:
    places = [str(target.path) for target in survey.layout.targets]
    return f"; the block stands in {', '.join(places)}" if places else ""


def _target(survey: Survey, real: Path) -> Target | None:
    return next((one for one in survey.layout.targets if one.real == real and not one.text), None)


def _busy(checkout: git.Checkout | None, real: Path) -> str | None:
    if checkout is None or real not in git.tracked(checkout, [real]):
        return None
    return git.activity(checkout)


def _own_section(path: Path) -> Notice:
    text = "its section `Project Memory Bridge` wasn't written by memory-bridge and is left alone"
    return Notice("info", "legacy-own-section", text, path)


def _waits(path: Path, busy: str) -> Notice:
    text = f"memory-bridge's text in it stays, as Git is at work ({busy}): run `agent-bridge init` afterwards"
    return Notice("warning", "legacy-waits", text, path)


def _rows(store: Path) -> tuple[tuple[Row, ...], list[Notice]]:
    place = store / INDEX
    try:
        image = files.read_image(place, within=store, limit=MAX_INDEX)
        return (read_rows(image.data) if image.existed else ()), []
    except (FactProblem, AgentBridgeError) as error:
        return (), [Notice("info", "legacy-index", f"{place} can't be read: {error}.", place)]


def _known(store: Path, snapshot: Snapshot, rows: Iterable[Row]) -> Known:
    entries: dict[str, list[str]] = {}
    for fact_id, text, tags in _wordings(snapshot, rows):
        told = f"{text} ({', '.join(tags)})" if tags else text
        wordings = entries.setdefault(fact_id, [])
        if len(wordings) < _MOST_WORDINGS and told not in wordings:
            wordings.append(told)
    texts = frozenset(fact.text_hash for fact in snapshot.facts)
    told_by = {fact_id: tuple(wordings) for fact_id, wordings in entries.items()}
    return Known(told_by, tuple(_documents(store)), texts)


def _wordings(snapshot: Snapshot, rows: Iterable[Row]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield from ((fact.id, fact.body, fact.tags) for fact in snapshot.facts)
    yield from ((row.id, row.summary, row.tags) for row in rows)


def _documents(store: Path) -> Iterator[str]:
    for name in DOCUMENTS:
        try:
            image = files.read_image(store / name, within=store)
        except AgentBridgeError:
            continue  # the store tells of it
        yield image.data.decode("utf-8", "replace")


def _lost_rows(rows: Iterable[Row], snapshot: Snapshot, known: Known) -> Iterator[Waiting]:
    """Texts that only the index has; it is made anew from the files."""
    ids = {fact.id for fact in snapshot.facts}
    for row in rows:
        if row.id not in ids and row.summary.strip() and text_hash(row.summary) not in known.texts:
            why = f"only memory-bridge's index has it; the file of {row.id} is gone or can't be read"
            yield Waiting(row.summary, why)


def _keep(project: Project, one: Waiting, origin: Path, now: datetime) -> None:
    review.keep_candidate(
        project.state, one.text, origin=str(origin), why=one.why, now=now, similar=one.similar
    )


def _restore(ledger: Ledger, entry: Entry) -> Undone:
    """A file that we emptied or removed comes back where nothing else stands; a section to its place."""
    image = files.read_image(Path(entry.path))
    original, rest = (ledger.kept_bytes(name) for name in (entry.first or "", entry.after or ""))
    if image.data == original:
        return Undone(entry.path, "untouched")  # killed before it was changed
    back: bytes | None = None
    if entry.kind is Kind.OWN:
        back = original if image.data.strip() in (b"", rest.strip()) else None
    elif image.existed:
        back = put_back(original, rest, image.data)
    if back is None:
        kept = ledger.kept / (entry.first or "")
        return Undone(entry.path, "untouched", f"changed by somebody else since; of before is {kept}")
    files.replace(image, back, keep_dir=ledger.kept)
    return Undone(entry.path, "restored", "with what memory-bridge had written there")
