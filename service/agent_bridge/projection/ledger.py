"""The ledger: what we changed in files that aren't ours, and how to undo it.

One JSON file and a folder of kept bytes per owner (a project's state directory, or the user's for changes
that serve all projects). An entry is written before the change that it describes, so a process killed in
between leaves a record of something that didn't happen, never a change without a record.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError

_SCHEMA = 1


class Kind(StrEnum):
    """How a change was made, which decides how it is undone."""

    BLOCK = "block"  # a managed block in somebody's file: undone by taking the block out
    OWN = "own"  # a whole file of ours around a block
    FILE = "file"  # a whole file of ours without a block: removed as long as it is as we wrote it
    KEYS = "keys"  # keys in somebody's TOML or JSON file
    LINES = "lines"  # our section in a file of lines (info/exclude, info/attributes)
    GIT = "git"  # settings in a repository's own configuration
    LINK = "link"  # a symlink where a directory or nothing was


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One key that we set: its former value as JSON text (None: it was absent) and ours.

    `element`: ours is an element of the array there; `former` is None where the array was made for it.
    `put_back`: it went missing once and was set again; a second time is its user's word.
    """

    key: tuple[str, ...]
    former: str | None
    ours: str
    put_back: bool = False
    element: bool = False

    @property
    def identity(self) -> tuple[tuple[str, ...], str | None]:
        """What it is the only record of in its file: a key's value, or one element there."""
        return self.key, self.ours if self.element else None


@dataclass(frozen=True, slots=True)
class Entry:
    """What was done to one path.

    `first` names the kept bytes from before our first write (None: there was no file), `after` is the
    SHA-256 of the bytes after our last write (None where that changes with every fact), `separator` are
    the line breaks added before a block, `directories` those that we made for it, outermost first,
    `header` the text that a file of ours began with, `target` a checkout for `GIT` and for `FILE` the SHA-256
    of the bytes that an update replaces, `backup` the kept copy of a directory that a link replaced, `known`
    the facts of the store at the end of that `init`, `taken` those of them that came from the directory: name
    there, path in the store, and the SHA-256 of that file.
    """

    path: str
    kind: Kind
    first: str | None = None
    after: str | None = None
    separator: str | None = None
    directories: tuple[str, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    format: str = ""
    header: str = ""
    target: str = ""
    backup: str | None = None
    known: tuple[str, ...] = ()
    taken: tuple[tuple[str, str, str], ...] = ()

    @property
    def created(self) -> bool:
        """Whether the file wasn't there before us."""
        return self.first is None


class Ledger:
    """The entries of one owner, kept in `directory`; read again whenever another process has written it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "ledger.json"
        self._seen: tuple[int, int, int] | None = None
        self._entries: dict[str, Entry] = {}

    @property
    def kept(self) -> Path:
        """The folder of kept bytes."""
        return self._directory / "kept"

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        self._refresh()
        return tuple(self._entries.values())

    def get(self, path: Path) -> Entry | None:
        """The entry of `path`, spelled as it was recorded."""
        self._refresh()
        return self._entries.get(str(path))

    def put(self, entry: Entry) -> None:
        """Record `entry` in place of an earlier one of its path."""
        self._refresh()
        if self._entries.get(entry.path) != entry:
            self._entries[entry.path] = entry
            self._save()

    def drop(self, path: str) -> None:
        """Forget the entry of `path`."""
        self._refresh()
        if self._entries.pop(path, None) is not None:
            self._save()

    def keep(self, data: bytes) -> str:
        """Keep `data` and return the name under which `kept_bytes` gives it back."""
        name = hashlib.sha256(data).hexdigest()
        place = self.kept / name
        if not place.exists():
            files.write_own(place, data)
        return name

    def kept_bytes(self, name: str) -> bytes:
        """The bytes kept under `name`; AgentBridgeError where they are gone or damaged."""
        place = self.kept / name
        try:
            data = place.read_bytes()
        except OSError as error:
            raise AgentBridgeError(
                "The kept copy of a file is gone",
                path=place,
                detail=str(error),
                remedy="Look for the file's former text in Git or a backup.",
            ) from error
        if hashlib.sha256(data).hexdigest() != name:
            raise AgentBridgeError("The kept copy of a file is damaged", path=place)
        return data

    def first_record(self, path: Path, kind: Kind, data: bytes | None) -> Entry:
        """The entry of `path`, made from `data` (its bytes before us, None: no file) where there is none."""
        known = self.get(path)
        if known is not None:
            return replace(known, kind=kind)
        return Entry(path=str(path), kind=kind, first=None if data is None else self.keep(data))

    def _refresh(self) -> None:
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            self._seen, self._entries = None, {}
            return
        seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if seen == self._seen:
            return
        self._entries = _parse(self._file)
        self._seen = seen

    def _save(self) -> None:
        entries = [_as_json(entry) for entry in self._entries.values()]
        text = json.dumps({"schema": _SCHEMA, "entries": entries}, indent=1)
        files.write_own(self._file, text.encode("ascii") + b"\n")
        stat = self._file.stat()
        self._seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)


def digest(data: bytes) -> str:
    """The SHA-256 by which the ledger knows bytes again."""
    return hashlib.sha256(data).hexdigest()


def _as_json(entry: Entry) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if value not in (None, (), "")}


def _parse(file: Path) -> dict[str, Entry]:
    try:
        document = json.loads(file.read_bytes())
        if document["schema"] != _SCHEMA:
            raise AgentBridgeError(
                "The ledger was written by another version",
                path=file,
                remedy="Use that version of agent-bridge to eject, or upgrade.",
            )
        return {item["path"]: _entry(item) for item in document["entries"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AgentBridgeError(
            "The ledger can't be read",
            path=file,
            detail=str(error),
            remedy="Nothing is written until it is repaired: put back a backup of this file or move it away.",
        ) from error


def _entry(item: dict[str, Any]) -> Entry:
    keys = tuple(
        KeyRecord(
            tuple(key["key"]),
            key.get("former"),
            key["ours"],
            key.get("put_back", False),
            key.get("element", False),
        )
        for key in item.pop("keys", ())
    )
    lists = {name: tuple(item.pop(name, ())) for name in ("directories", "known")}
    taken = tuple((name, path, sha) for name, path, sha in item.pop("taken", ()))
    return Entry(**{**item, "kind": Kind(item["kind"]), "keys": keys, "taken": taken, **lists})
