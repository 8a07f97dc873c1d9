"""Sticky judgements: what was once private stays so until a person shares it.

A mark in a file can go missing (an agent rewrites the file, an editor drops a line, a file gets a new name).
So a fact judged private is remembered by its path, its id and its text, in the state directory, out of every
repository. Texts are remembered as SHA-256 of their normalised form only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory.fact import Fact

LOCK_TIMEOUT_S = 10.0
_KINDS = ("paths", "ids", "texts")


@dataclass(frozen=True, slots=True)
class Judgements:
    """Everything judged private. `all_private`: the record can't be read, so nothing counts as shared."""

    paths: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    all_private: bool = False

    def __bool__(self) -> bool:
        """Whether anything is judged private at all."""
        return self.all_private or bool(self.paths or self.ids or self.texts)

    def hold(self, fact: Fact) -> bool:
        """Whether this fact was judged private earlier, whatever its file says now."""
        known = fact.path in self.paths or fact.id in self.ids or fact.text_hash in self.texts
        return self.all_private or known

    def fully_hold(self, fact: Fact) -> bool:
        """Whether path, id and text are all remembered: the fact may lose any two of them later."""
        known = fact.path in self.paths and fact.id in self.ids
        return known and (not fact.text_hash or fact.text_hash in self.texts)

    def with_facts(self, facts: Iterable[Fact]) -> Judgements:
        """These judgements and those facts as private."""
        new = tuple(facts)
        return Judgements(
            self.paths | {fact.path for fact in new},
            self.ids | {fact.id for fact in new},
            self.texts | {fact.text_hash for fact in new if fact.text_hash},
            self.all_private,
        )

    def without(self, fact: Fact) -> Judgements:
        """These judgements without that fact: a person shared it."""
        return Judgements(
            self.paths - {fact.path}, self.ids - {fact.id}, self.texts - {fact.text_hash}, self.all_private
        )

    def __or__(self, other: Judgements) -> Judgements:
        return Judgements(
            self.paths | other.paths,
            self.ids | other.ids,
            self.texts | other.texts,
            self.all_private or other.all_private,
        )


class PrivacyRecord:
    """The judgements on disk: `privacy.json` in a store's state directory, written under a lock of its own.

    Reading never creates anything. A record that can't be read makes everything private until it is
    mended or removed. As long as the state directory doesn't exist, what is learnt is kept in memory.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / "privacy.json"
        self._lock = state / "privacy.lock"
        self._signature: tuple[int, ...] | None = None
        self._read = Judgements()
        self._unwritten = Judgements()

    @property
    def pending(self) -> bool:
        """Whether something was learnt that the file doesn't hold yet."""
        return self._unwritten != Judgements()

    def current(self) -> Judgements:
        """The judgements as they stand now; reads the file only where it changed."""
        signature = _signature(self.path)
        if signature != self._signature:
            self._read = _load(self.path)
            self._signature = signature
        return self._read | self._unwritten if self.pending else self._read

    def locked(self, purpose: str) -> files.Locking:
        """Hold the record's lock; for who clears up in its directory."""
        return files.locked(self._lock, timeout=LOCK_TIMEOUT_S, purpose=purpose)

    def add(self, facts: Iterable[Fact]) -> Judgements:
        """Remember these facts as private; in memory where the file can't be written, until it can.

        Raises AgentBridgeError (LockTimeoutError) then: what is private holds in this process all the same.
        """
        new = self._unwritten = self._unwritten.with_facts(facts)
        if not self.path.parent.is_dir():
            return self.current()
        with self.locked("remember what is private"):
            now = self.current() | new
            if not now.all_private and now != self._read:
                self._write(now)
            # An unreadable record is left for a person; what was learnt since waits in memory.
            self._unwritten = new if now.all_private else Judgements()
        return self.current()

    def release(self, fact: Fact) -> Judgements:
        """Forget that this fact was private. Raises AgentBridgeError where the record can't be read."""
        with self.locked("share a fact"):
            now = self.current()
            if now.all_private:
                raise AgentBridgeError(
                    "The record of private facts can't be read, so nothing can be shared.",
                    path=self.path,
                    remedy="Mend the file, or remove it: then only the marks in the facts' files count.",
                )
            self._unwritten = Judgements()
            self._write(now.without(fact))
        return self.current()

    def _write(self, judgements: Judgements) -> None:
        kinds = {kind: sorted(getattr(judgements, kind)) for kind in _KINDS}
        data = json.dumps({"version": 1, **kinds}, indent=1, ensure_ascii=False) + "\n"
        files.write_own(self.path, data.encode("utf-8", "surrogateescape"))


def _signature(path: Path) -> tuple[int, ...] | None:
    try:
        info = path.stat()
    except FileNotFoundError:
        return None
    except OSError:
        return (-1,)
    return (info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns)


def _load(path: Path) -> Judgements:
    try:
        raw = json.loads(path.read_bytes())
        lists = [raw[kind] for kind in _KINDS]
        if raw["version"] != 1 or not all(isinstance(text, str) for items in lists for text in items):
            return Judgements(all_private=True)
        paths, ids, texts = (frozenset(items) for items in lists)
        return Judgements(paths, ids, texts)
    except FileNotFoundError:
        return Judgements()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Judgements(all_private=True)
