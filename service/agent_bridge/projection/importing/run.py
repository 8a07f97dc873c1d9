"""An import: every text of a source into a store, or to the review, or left, with a line about each.

The source is only read. The store is locked and looked at once, however many texts there are; bringing the
agents' files in line is the caller's part.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import paths, projects
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.memory.fact import Fact, FactProblem, new_fact_bytes, set_keys
from agent_bridge.memory.intake import Intake
from agent_bridge.memory.likeness import Likeness
from agent_bridge.memory.naming import safe_stem
from agent_bridge.memory.privacy import PrivacyRecord
from agent_bridge.memory.secrets import find_secrets, masked
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.store import Store
from agent_bridge.projection import review
from agent_bridge.projection.importing import record
from agent_bridge.projection.importing.items import Item, Kind, Left, Line, Outcome
from agent_bridge.projection.importing.sources import Source

_SAVED_EVERY = 500
"""After so many texts the record is written, so that an import which is killed goes on where it was."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person asked for: see the options of `import`. `type` "": what the source says."""

    private: bool = False
    type: str = ""
    again: bool = False
    dry: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """One import: a line for each file or text, in reading order."""

    kind: Kind
    path: Path
    lines: tuple[Line, ...]

    def counts(self) -> dict[str, int]:
        """How many lines there are of each outcome; every outcome is there."""
        found = Counter(line.outcome for line in self.lines)
        return {outcome.value: found[outcome] for outcome in Outcome}

    @property
    def shared(self) -> int:
        """How many of the added facts travel with Git."""
        return sum(line.is_shared for line in self.lines)


def check_source(source: Source, store: Store) -> None:
    """Raise RefusedError for the store itself, what is below it, and what we keep of our own."""
    if any(source.path.is_relative_to(place) for place in _ours(store)):
        raise RefusedError("This is agent-bridge's own; there is nothing to import", path=source.path)


def _ours(store: Store) -> list[Path]:
    """Where we keep what is ours, private and forgotten texts among it."""
    places = [store.root, paths.state_dir(), paths.data_dir(), paths.cache_dir()]
    return [place.resolve() for place in places]


def import_source(
    source: Source, store: Store, wishes: Wishes, *, threshold: float, now: datetime | None = None
) -> Report:
    """Import everything from `source` into `store`. Raises RefusedError for a source that is ours."""
    check_source(source, store)
    moment = now or datetime.now(UTC)
    tree = source.tree().without(_ours(store), "it is agent-bridge's own")
    lines = [_line_of(left) for left in tree.left]
    known = {} if wishes.again else record.load(store.state)
    if not wishes.dry:
        store.create()
    with Intake(store, threshold=threshold, dry=wishes.dry) as intake:
        run = _Run(source.kind, source.path, store, intake, wishes, moment, known)
        try:
            for found in source.read(tree, _private_there(source)):
                lines.append(_line_of(found) if isinstance(found, Left) else run.take(found))
        finally:
            run.save()
    return Report(source.kind, source.path, tuple(_judged(lines, store, wishes)))


@dataclass(slots=True)
class _Run:
    """One import while it is under way."""

    kind: Kind
    path: Path
    store: Store
    intake: Intake
    wishes: Wishes
    now: datetime
    known: dict[str, str]
    unsaved: int = 0

    def take(self, item: Item) -> Line:
        """Decide on one text and do what was decided."""
        line = Line(masked(item.origin), Outcome.ADDED, title=_title(item))
        key = text_hash(item.text)
        same = self.intake.duplicate_of(item.text)
        if same:
            return replace(line, outcome=Outcome.DUPLICATE, fact_id=same, why=f"the same text as {same}")
        if key in self.known:
            why = "it was imported before, and edited, removed or reviewed since; --again takes it once more"
            return replace(line, outcome=Outcome.KNOWN, fact_id=self.known[key], why=why)
        alike = self.intake.alike(item.text)
        if alike is not None:
            self._keep(item, alike, key)
            self._remember(key, "")
            why = f"similar to {alike.key} ({alike.score:.2f}): {alike.why}"
            return replace(line, outcome=Outcome.REVIEW, fact_id=alike.key, why=_safe(why, item))
        try:
            fact = self._add(item)
        except FactProblem as problem:
            return replace(line, outcome=Outcome.REFUSED, why=problem.reason)
        except AgentBridgeError as error:
            return replace(line, outcome=Outcome.REFUSED, why=error.sentence())
        self._remember(key, fact.id)
        why = f"holds a secret ({', '.join(fact.secrets)}): kept private and shown to no agent"
        return replace(
            line,
            fact_id=fact.id,
            why=why if fact.secrets else "",
            is_shared=not (fact.private or fact.secrets),
        )

    def save(self) -> None:
        """Write the record, where there is something new in it; never before the facts that it speaks of."""
        if self.unsaved and not self.wishes.dry:
            self.intake.settle()
            record.save(self.store.state, record.load(self.store.state) | self.known)
            self.unsaved = 0

    def _add(self, item: Item) -> Fact:
        is_secret = bool(find_secrets(item.text))
        private = self.wishes.private or item.private
        if item.data is not None:
            changes: dict[str, object] = {"private": True} if private or is_secret else {}
            changes |= {"type": self.wishes.type} if self.wishes.type else {}
            return self.intake.put(item.stem, set_keys(item.data, changes) if changes else item.data)
        moment = datetime.fromisoformat(item.created_at) if item.created_at else self.now
        fact_id = item.fact_id or self.intake.free_id(item.text, moment, is_secret=is_secret)
        data = new_fact_bytes(
            item.text,
            fact_id=fact_id,
            now=moment,
            type=self.wishes.type or item.type,
            tags=item.tags,
            source=self.kind.source,
            private=private or is_secret,
            pinned=item.pinned,
            title=item.title or None,
            origin="" if find_secrets(item.origin) else item.origin,
        )
        later = {"updated_at": item.updated_at} if item.updated_at > item.created_at else {}
        said = {"description": item.description} if item.description else {}
        return self.intake.put(f"entries/{_file_name(fact_id, item.text)}", set_keys(data, said | later))

    def _keep(self, item: Item, alike: Likeness, key: str) -> None:
        if self.wishes.dry:
            return
        if self.wishes.private or item.private:  # whoever accepts it later makes a private fact of it
            name = f"imported-{key[:16]}"
            hidden = Fact(path=f"{name}.md", id=name, title="", hook="", body="", text_hash=key)
            PrivacyRecord(self.store.state).add([hidden])
        review.keep_candidate(
            self.store.state,
            item.text,
            origin=str(self.path / item.origin),
            why=f"it came by an import and resembles {alike.key}: {alike.why}",
            now=self.now,
            similar=alike.key,
            score=alike.score,
            private=self.wishes.private or item.private,
        )

    def _remember(self, key: str, fact_id: str) -> None:
        self.known[key] = fact_id
        self.unsaved += 1
        if self.unsaved >= _SAVED_EVERY:
            self.save()


def _file_name(fact_id: str, text: str) -> str:
    """An id of somebody's as a file's name: no directories, nothing hidden, short enough with a number."""
    plain = fact_id.replace("/", "-").replace("\\", "-").encode("utf-8", "replace")[:180]
    return safe_stem(plain.decode("utf-8", "ignore"), text)


def _line_of(left: Left) -> Line:
    outcome = Outcome.REFUSED if left.refused else Outcome.NO_FACT
    return Line(masked(left.origin), outcome, why=left.why)


def _title(item: Item) -> str:
    """A title that may be printed: agents read what commands print."""
    title = item.title or item.text.split("\n", 1)[0][:60]
    return _safe(title, item)


def _safe(text: str, item: Item) -> str:
    return "(holds a secret)" if find_secrets(f"{item.title}\n{item.text}") else text


def _private_there(source: Source) -> frozenset[str]:
    """Paths of the facts that are private in a project of ours, also where only its record says so."""
    known = next((one for one in projects.load_projects() if one.store.resolve() == source.path), None)
    if known is None:
        return frozenset()
    snapshot = Store(known.store, state=known.state).scan()
    return frozenset(fact.path for fact in (*snapshot.private, *snapshot.withheld))


def _judged(lines: list[Line], store: Store, wishes: Wishes) -> list[Line]:
    """The lines with what the store says of the new facts: a text once private stays so."""
    if wishes.dry:
        return lines
    shared = {fact.id for fact in store.scan().shared}
    return [replace(line, is_shared=line.is_shared and line.fact_id in shared) for line in lines]
