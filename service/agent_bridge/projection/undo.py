"""Undo, exactly: take back what one ledger entry records.

Where nobody else wrote since, the kept bytes return. Where somebody did, only what is ours goes: the block
with the line breaks it came with, a key that still has our value, our section of lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import config_edit, managed_block
from agent_bridge.harnesses.base import KeyEdit, by_path
from agent_bridge.projection import apply, review
from agent_bridge.projection.ledger import Entry, KeyRecord, Kind, Ledger, digest


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of one path: `restored`, `removed`, `untouched` (nothing of ours left) or `refused`."""

    path: str
    outcome: str
    note: str = ""


def undo(ledger: Ledger, entry: Entry) -> Undone:
    """Take back one entry and drop it from the ledger, unless it is refused. Links are `adopt`'s part."""
    try:
        return _take_back(ledger, entry)
    except AgentBridgeError as error:
        return Undone(entry.path, "refused", str(error))


def undo_keys(ledger: Ledger, path: Path, edits: Sequence[KeyEdit]) -> Undone | None:
    """Take back some of the keys that we set in one file, the others stay; None where none is on record.

    Raises AgentBridgeError where the file can't be read or changed.
    """
    entry = ledger.get(path)
    if entry is None:
        return None
    ours = {(edit.key, json.dumps(edit.value)) for edit in edits}
    leaving = [record for record in entry.keys if (record.key, record.ours) in ours]
    if len(leaving) == len(entry.keys):
        return _take_back(ledger, entry)
    image = files.read_image(path)
    after, _ = _without_keys(entry.format, image.data, leaving)
    after = _without_made(ledger, entry, after, leaving)
    made = _made(leaving)
    staying = tuple(
        replace(record, former=None) if record.element and record.key in made else record
        for record in entry.keys
        if record not in leaving
    )
    # Until they are out they stay on record, as such that nobody puts back: a kill leaves nothing unrecorded.
    marked = tuple(replace(one, put_back=True) if one in leaving else one for one in entry.keys)
    ledger.put(replace(apply.written(entry, image, after), keys=marked))
    done = _put(ledger, image, after)
    ledger.put(replace(apply.written(entry, image, after), keys=staying))
    return done


def withdraw(ledger: Ledger, edits: Iterable[KeyEdit]) -> list[Undone]:
    """Take back some of the keys that we set, file by file; one that can't be is `refused`, and on record."""
    done = []
    for path, group in by_path(edits).items():
        try:
            one = undo_keys(ledger, path, group)
        except AgentBridgeError as error:
            one = Undone(str(path), "refused", str(error))
        if one is not None:
            done.append(one)
    return done


def obstacles(ledger: Ledger) -> list[Undone]:
    """The entries whose undoing will be refused, as far as that can be seen before anything is undone."""
    found = []
    for entry in ledger.entries():
        try:
            if entry.kind in (Kind.BLOCK, Kind.OWN):
                managed_block.find_block(files.read_image(Path(entry.path)).data)
            elif entry.kind is Kind.KEYS:
                _check_keys(entry)
        except AgentBridgeError as error:
            found.append(Undone(entry.path, "refused", str(error)))
    return found


def _take_back(ledger: Ledger, entry: Entry) -> Undone:
    done = _UNDO[entry.kind](ledger, entry)
    apply.drop(ledger, entry)
    return done


def _check_keys(entry: Entry) -> None:
    """Raises AgentBridgeError where a settings file can't be understood any more."""
    image = files.read_image(Path(entry.path))
    if image.existed and digest(image.data) != entry.after:
        _without_keys(entry.format, image.data, entry.keys)


def _undo_block(ledger: Ledger, entry: Entry) -> Undone:
    image = files.read_image(Path(entry.path))
    if not image.existed or managed_block.find_block(image.data) is None:
        return Undone(entry.path, "untouched", "it holds no block of ours any more")
    _keep_what_is_foreign(ledger, image)
    rest = managed_block.remove(image.data, (entry.separator or "").encode("ascii"))
    if entry.created and rest.strip() in (b"", entry.header.strip().encode()):
        files.delete(image)
        return Undone(entry.path, "removed")
    return _put(ledger, image, rest)


def _keep_what_is_foreign(ledger: Ledger, image: FileImage) -> None:
    """A block that isn't as we wrote it goes to the review whole: no pass has looked at its items."""
    body = managed_block.block_text(image.data)
    if body and not managed_block.hash_valid(body):
        review.keep_candidate(
            ledger.kept.parent,
            body,
            origin=str(image.path),
            why="it stood inside our block when that was taken out",
            now=datetime.now(UTC),
        )


def _undo_file(_ledger: Ledger, entry: Entry) -> Undone:
    path = Path(entry.path)
    if path.is_symlink() or path.is_dir():
        return Undone(entry.path, "untouched", "replaced by somebody else since, left alone")
    image = files.read_image(path)
    if not image.existed:
        return Undone(entry.path, "untouched", "the file is gone")
    if not apply.is_our_file(entry, image.data):
        return Undone(entry.path, "untouched", "changed by somebody else since, left alone")
    files.delete(image)
    return Undone(entry.path, "removed")


def _undo_keys(ledger: Ledger, entry: Entry) -> Undone:
    image = files.read_image(Path(entry.path))
    if not image.existed:
        return Undone(entry.path, "untouched", "the file is gone")
    if digest(image.data) == entry.after:
        return _first(ledger, entry, image)
    after, kept_by_others = _without_keys(entry.format, image.data, entry.keys)
    after = _without_made(ledger, entry, after, entry.keys)
    note = (
        f"changed by somebody else since, left alone: {', '.join(kept_by_others)}" if kept_by_others else ""
    )
    if entry.created and _says_nothing(entry.format, after):
        files.delete(image)
        return Undone(entry.path, "removed", note)
    done = _put(ledger, image, after)
    return Undone(done.path, done.outcome, note)


def _says_nothing(form: str, data: bytes) -> bool:
    """Whether no setting is left. OpenCode 1.18.33 names its schema in each file that it reads."""
    if form == "json" and apply.get_key("json", data, ("$schema",)) is not config_edit.ABSENT:
        data = apply.unset_key("json", data, ("$schema",))
    return data.strip() in (b"", b"{}")


def _without_keys(form: str, data: bytes, records: Sequence[KeyRecord]) -> tuple[bytes, list[str]]:
    """The file without these keys of ours, and the names of those that somebody else has changed."""
    kept_by_others: list[str] = []
    for record in reversed(records):
        current = apply.get_key(form, data, record.key)
        if record.element:
            rest = _without_element(form, data, record, made=record.key in _made(records))
            if rest == data:
                kept_by_others.append(".".join(record.key))
            data = rest
        elif not apply.is_value(current, record.ours):
            kept_by_others.append(".".join(record.key))
        elif record.former is None:
            data = apply.unset_key(form, data, record.key)
        else:
            data = apply.set_key(form, data, record.key, json.loads(record.former))
    return data, kept_by_others


def _without_made(ledger: Ledger, entry: Entry, data: bytes, records: Sequence[KeyRecord]) -> bytes:
    """A JSON file without the objects that were made around keys of ours and that hold nothing any more.

    Where only we wrote they went with the key; a program that lays the file out anew hides that we made them.
    """
    for record in reversed(records):
        for depth in range(len(record.key) - 1, 0, -1):
            around = record.key[:depth]
            if entry.format != "json" or apply.get_key("json", data, around) != {}:
                break
            if entry.first is not None and not _was_absent(ledger, entry.first, around):
                break
            data = apply.unset_key("json", data, around)
    return data


def _was_absent(ledger: Ledger, first: str, key: tuple[str, ...]) -> bool:
    """Whether there was no such key before us; False where that can't be told any more."""
    try:
        return apply.get_key("json", ledger.kept_bytes(first), key) is config_edit.ABSENT
    except AgentBridgeError:
        return False


def _without_element(form: str, data: bytes, record: KeyRecord, *, made: bool) -> bytes:
    """The file without an element of ours; as it is where somebody made something else of the array."""
    if not isinstance(apply.get_key(form, data, record.key), list):
        return data
    return apply.remove_element(form, data, record.key, json.loads(record.ours), made=made)


def _made(records: Sequence[KeyRecord]) -> set[tuple[str, ...]]:
    """The keys of arrays that weren't there before an element of ours."""
    return {record.key for record in records if record.element and record.former is None}


def _undo_lines(ledger: Ledger, entry: Entry) -> Undone:
    image = files.read_image(Path(entry.path))
    if not image.existed:
        return Undone(entry.path, "untouched", "the file is gone")
    if digest(image.data) == entry.after:
        return _first(ledger, entry, image)
    rest = config_edit.remove_lines(image.data)
    if entry.created and not rest.strip():
        files.delete(image)
        return Undone(entry.path, "removed")
    return _put(ledger, image, rest)


def _undo_git(ledger: Ledger, entry: Entry) -> Undone:
    image = files.read_image(Path(entry.path))
    if not image.existed:
        return Undone(entry.path, "untouched", "the file is gone")
    if digest(image.data) == entry.after:
        return _first(ledger, entry, image)
    checkout = git.find_checkout(Path(entry.target))
    if checkout is None:
        return Undone(entry.path, "untouched", "there is no repository any more")
    for record in reversed(entry.keys):
        (key,) = record.key
        if git.config_get(checkout, key) != json.loads(record.ours):
            continue
        if record.former is None:
            git.config_unset(checkout, key)
        else:
            git.config_set(checkout, key, json.loads(record.former))
    return Undone(entry.path, "restored")


def _first(ledger: Ledger, entry: Entry, image: FileImage) -> Undone:
    if entry.first is None:
        files.delete(image)
        return Undone(entry.path, "removed")
    return _put(ledger, image, ledger.kept_bytes(entry.first))


def _put(ledger: Ledger, image: FileImage, data: bytes) -> Undone:
    changed = files.replace(image, data, keep_dir=ledger.kept)
    return Undone(str(image.path), "restored" if changed else "untouched")


_UNDO = {
    Kind.BLOCK: _undo_block,
    Kind.OWN: _undo_block,
    Kind.FILE: _undo_file,
    Kind.KEYS: _undo_keys,
    Kind.LINES: _undo_lines,
    Kind.GIT: _undo_git,
}
