"""Many facts into one store in one go: one lock, one look at the store, no comparing of each with each.

The rules are those of an import: an exact duplicate is not added, a text that resembles a fact is not added
either; who calls decides what becomes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType

from agent_bridge import files
from agent_bridge.errors import ConflictError, RefusedError
from agent_bridge.memory import naming
from agent_bridge.memory.fact import Fact, parse_fact, set_keys
from agent_bridge.memory.likeness import KnownTexts, Likeness
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.store import Store

_TRIES = 50


@dataclass(slots=True)
class _Known:
    """What the store holds, as far as adding needs it."""

    texts: dict[str, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)


class Intake:
    """Use as a context manager: it holds the store's lock from begin to end. With `dry` nothing is written,
    not even the lock, and `put` answers what it would have done.
    """

    def __init__(self, store: Store, *, threshold: float, dry: bool = False) -> None:
        """`threshold`: the part of their words that similar texts share."""
        self._store = store
        self._dry = dry
        self._known = _Known()
        self._alike = KnownTexts(threshold=threshold, contained=False)
        self._lock: files.Locking | None = None
        self._unsettled: list[Path] = []

    def __enter__(self) -> Intake:
        if not self._dry:
            self._lock = self._store.locked("import facts")
            self._lock.__enter__()
        try:
            for fact in self._store.scan().facts:
                self._learn(fact)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def duplicate_of(self, text: str) -> str:
        """The id of the fact with this text, "" where there is none."""
        return self._known.texts.get(text_hash(text), "")

    def alike(self, text: str) -> Likeness | None:
        """The fact that resembles this text most, if any does; its `key` is the fact's id."""
        return self._alike.most_like(text)

    def free_id(self, text: str, moment: datetime, *, is_secret: bool) -> str:
        """An id that no fact has, for a text that was written at `moment`."""
        day = f"{moment.astimezone(UTC):%Y%m%d}"
        if day not in self._known.numbers:
            taken = (*self._known.ids, *(PurePosixPath(path).stem for path in self._known.paths))
            self._known.numbers[day] = naming.next_number(taken, moment)
        number = self._known.numbers[day]
        self._known.numbers[day] += 1
        return naming.fact_id_for(text, number, moment, is_secret=is_secret)

    def put(self, stem: str, data: bytes) -> Fact:
        """Write a fact's file as `stem`.md, or under the first free name like it; never over another.

        An id in `data` that another fact has is exchanged for a free one. Raises FactProblem, and
        AgentBridgeError where nothing can be written.
        """
        for attempt in range(_TRIES):
            path = f"{stem}.md" if not attempt else f"{stem}.imported-{attempt}.md"
            if path in self._known.paths:
                continue
            fact, content = self._with_own_id(path, data)
            if self._written(path, content):
                self._learn(fact)
                return fact
        raise RefusedError("No free name was found for the new fact", path=self._store.root / f"{stem}.md")

    def settle(self) -> None:
        """Let what was put survive a power cut; many at once, since the first takes the others along."""
        written, self._unsettled = self._unsettled, []
        files.sync_all(written)

    def _with_own_id(self, path: str, data: bytes) -> tuple[Fact, bytes]:
        fact = parse_fact(path, data)
        if fact.id not in self._known.ids:
            return fact, data
        stem = PurePosixPath(path).stem
        free = (stem, *(f"{stem}.imported-{number}" for number in range(1, _TRIES)))
        content = set_keys(data, {"id": next((name for name in free if name not in self._known.ids), stem)})
        return parse_fact(path, content), content

    def _written(self, path: str, content: bytes) -> bool:
        if self._dry:
            return True
        image = files.read_image(self._store.root / path, within=self._store.root)
        if image.existed:
            return False
        try:
            files.replace(image, content, keep_dir=self._store.state / "kept", sync=False)
        except ConflictError:
            return False
        self._unsettled.append(image.real)
        return True

    def _learn(self, fact: Fact) -> None:
        self._known.texts.setdefault(fact.text_hash, fact.id)
        self._known.ids.add(fact.id)
        self._known.paths.add(fact.path)
        self._alike.add(fact.id, fact.body)

    def _leave(self) -> None:
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
            self._lock = None
