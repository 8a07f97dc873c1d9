"""Every write into a file that isn't ours: record in the ledger, then replace by compare-and-swap.

The callers hold the owner's lock. A file that changed since it was read raises ConflictError and is left as
it is; the next pass reads it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import ConflictError, RefusedError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import config_edit
from agent_bridge.harnesses.base import KeyEdit
from agent_bridge.harnesses.config_edit import ABSENT
from agent_bridge.harnesses.json_edit import same
from agent_bridge.projection.ledger import Entry, KeyRecord, Kind, Ledger, digest


def write_block(
    ledger: Ledger, image: FileImage, after: bytes, *, separator: bytes, header: str = ""
) -> bool:
    """Put a file with its block in place; True when bytes were written.

    `separator` are the line breaks that stand before the start marker because of us; they are ASCII.
    """
    if image.existed and image.data == after:
        return False
    known = ledger.get(image.path)
    added = separator.decode("ascii")
    if known is not None and not added and _still_there(known, image):
        added = known.separator or ""
    if known is None or known.separator != added:
        made = _missing_parents(image)
        before = image.data if image.existed else None
        entry = ledger.first_record(image.path, Kind.BLOCK, before)
        directories = known.directories if known else made
        ledger.put(replace(entry, separator=added, header=header, directories=directories))
    return _replace(ledger, known, image, after)


def _still_there(known: Entry, image: FileImage) -> bool:
    """Whether a file has lost its block alone: the line ends before it are ours as they were."""
    if known.first is None or not known.separator:
        return False
    ending = known.separator.encode("ascii")
    return image.data.endswith(ending) and digest(image.data.removesuffix(ending)) == known.first


def remove_file(ledger: Ledger, image: FileImage) -> None:
    """Delete a file that we created and that holds nothing else any more; its record goes with it."""
    files.delete(image)
    entry = ledger.get(image.path)
    if entry is not None:
        drop(ledger, entry)


def edit_keys(ledger: Ledger, path: Path, edits: Sequence[KeyEdit]) -> bool:
    """Set keys in one TOML or JSON file; True when bytes were written. A key that has its value stays."""
    image = files.read_image(path)
    after = image.data
    records: list[KeyRecord] = []
    for edit in edits:
        before_it, after = after, edited(after, edit)
        if after != before_it:
            records.append(_record(edit, get_key(edit.format, before_it, edit.key)))
    if not records or after == image.data:
        return False
    known = ledger.get(path)
    kept = {record.identity: record for record in (known.keys if known else ())}
    for record in records:
        first = kept.get(record.identity)
        kept[record.identity] = replace(record, former=first.former) if first else record
    before = image.data if image.existed else None
    entry = ledger.first_record(path, Kind.KEYS, before)
    entry = replace(entry, keys=tuple(kept.values()), format=edits[0].format)
    ledger.put(
        replace(written(entry, image, after), directories=entry.directories or _missing_parents(image))
    )
    return _replace(ledger, known, image, after)


def edited(data: bytes, edit: KeyEdit) -> bytes:
    """A settings file's bytes with one edit made; equal bytes where it needs none. Raises RefusedError."""
    if edit.element:
        return add_element(edit.format, data, edit.key, edit.value)
    if get_key(edit.format, data, edit.key) == edit.value:
        return data
    return set_key(edit.format, data, edit.key, edit.value)


def put_back(form: str, data: bytes, record: KeyRecord) -> tuple[bytes, KeyRecord]:
    """The file with a key or element of ours that went missing, and its record from now on."""
    ours = json.loads(record.ours)
    if not record.element:
        return set_key(form, data, record.key, ours), replace(record, put_back=True)
    gone = get_key(form, data, record.key) is ABSENT  # the whole array: it is made for us this time
    former = None if gone else record.former
    return add_element(form, data, record.key, ours), replace(record, put_back=True, former=former)


def edit_lines(ledger: Ledger, path: Path, lines: Sequence[str]) -> bool:
    """Make our section of a file of lines hold exactly `lines`; True when bytes were written."""
    image = files.read_image(path)
    after = config_edit.ensure_lines(image.data, lines)
    if after == image.data:
        return False
    before = image.data if image.existed else None
    known = ledger.get(path)
    entry = ledger.first_record(path, Kind.LINES, before)
    ledger.put(
        replace(written(entry, image, after), directories=entry.directories or _missing_parents(image))
    )
    return _replace(ledger, known, image, after)


def record_file(ledger: Ledger, image: FileImage, data: bytes, *, directory: Path | None = None) -> None:
    """Record that a whole file of ours will be `data`; `write_file` does it.

    `directory` is a further directory that is made for it and goes with it. Raises RefusedError for a file
    that isn't as we wrote it last: it is somebody else's, or its user has changed it.
    """
    known = ledger.get(image.path)
    if image.existed and not is_our_file(known, image.data):
        told = "Somebody has changed this file of ours" if known else "This is somebody else's file"
        raise RefusedError(f"{told}; it is left alone", path=image.path, remedy="Move it away first.")
    made = known.directories if known and known.directories else _missing_parents(image)
    if directory is not None and not directory.exists():
        made = tuple(dict.fromkeys((*made, str(directory))))
    before = digest(image.data) if image.existed else ""
    entry = known or Entry(path=str(image.path), kind=Kind.FILE)
    ledger.put(replace(entry, after=digest(data), target=before, directories=made))


def write_file(ledger: Ledger, image: FileImage, data: bytes) -> bool:
    """Put a recorded file of ours in place; True when bytes were written."""
    return files.replace(image, data, keep_dir=ledger.kept)


def is_our_file(entry: Entry | None, data: bytes) -> bool:
    """Whether a whole file of ours is as we wrote it, before or after an update."""
    return entry is not None and entry.kind is Kind.FILE and digest(data) in (entry.after, entry.target)


def set_git(ledger: Ledger, checkout: git.Checkout, settings: Iterable[tuple[str, str]]) -> bool:
    """Set keys in a repository's own configuration; True when something changed."""
    path = checkout.common_dir / "config"
    changed = False
    for key, value in settings:
        found = git.config_get(checkout, key)
        if found == value:
            continue
        image = files.read_image(path)
        known = ledger.get(path)
        kept = {record.key: record for record in (known.keys if known else ())}
        first = kept.get((key,))
        former = first.former if first else None if found is None else json.dumps(found)
        kept[(key,)] = KeyRecord((key,), former, json.dumps(value))
        entry = ledger.first_record(path, Kind.GIT, image.data if image.existed else None)
        entry = replace(entry, keys=tuple(kept.values()), target=str(checkout.root))
        ledger.put(replace(entry, after=None))
        git.config_set(checkout, key, value)
        ledger.put(written(entry, image, path.read_bytes()))
        changed = True
    return changed


def get_key(form: str, data: bytes, key: tuple[str, ...]) -> object:
    """The value of a key in a TOML or JSON text, `ABSENT` where there is none."""
    return config_edit.toml_get(data, key) if form == "toml" else config_edit.json_get(data, key)


def is_value(current: object, ours: str) -> bool:
    """Whether a value found in a settings file is ours, which is JSON text; the order of keys is free.

    A client that writes its settings anew has an order of its own.
    """
    return same(current, json.loads(ours))


def set_key(form: str, data: bytes, key: tuple[str, ...], value: object) -> bytes:
    """The text with the key set."""
    edit = config_edit.toml_set if form == "toml" else config_edit.json_set
    return edit(data, key, value)


def unset_key(form: str, data: bytes, key: tuple[str, ...]) -> bytes:
    """The text without the key."""
    edit = config_edit.toml_unset if form == "toml" else config_edit.json_unset
    return edit(data, key)


def has_element(form: str, data: bytes, key: tuple[str, ...], value: object) -> bool:
    """Whether the array at a key in a TOML or JSON text has an element."""
    look = config_edit.toml_has_element if form == "toml" else config_edit.json_has_element
    return look(data, key, value)


def add_element(form: str, data: bytes, key: tuple[str, ...], value: object) -> bytes:
    """The text with the element in the array at the key."""
    edit = config_edit.toml_add_element if form == "toml" else config_edit.json_add_element
    return edit(data, key, value)


def remove_element(form: str, data: bytes, key: tuple[str, ...], value: object, *, made: bool) -> bytes:
    """The text without the element; without the array too where that was `made` for elements of ours."""
    edit = config_edit.toml_remove_element if form == "toml" else config_edit.json_remove_element
    return edit(data, key, value, made=made)


def written(entry: Entry, image: FileImage, after: bytes) -> Entry:
    """`entry` for a file that is about to go from `image` to `after`.

    Only bytes that are the first ones and our changes, nothing else, may be taken back whole: once somebody
    else has written in between, `after` stays None, and undoing goes piece by piece.
    """
    first = digest(image.data) if image.existed else None
    alone = first == entry.first or (entry.after is not None and first == entry.after)
    return replace(entry, after=digest(after) if alone else None)


def drop(ledger: Ledger, entry: Entry) -> None:
    """Forget an entry whose change is undone, and remove the directories that were made for it.

    Those that another file of ours still needs are that one's from now on.
    """
    remove_directories(entry.directories)
    ledger.drop(entry.path)
    for other in ledger.entries():
        needed = [place for place in entry.directories if Path(other.path).is_relative_to(place)]
        if needed:
            places = sorted({*needed, *other.directories}, key=len)
            ledger.put(replace(other, directories=tuple(places)))
            return


def remove_directories(directories: Sequence[str]) -> None:
    """Remove directories that we made, innermost first, as long as they are empty."""
    for directory in reversed(directories):
        try:
            Path(directory).rmdir()
        except FileNotFoundError:
            continue  # removed already, before a kill
        except OSError:  # not empty: somebody uses it now, so it stays
            return


def _replace(ledger: Ledger, known: Entry | None, image: FileImage, after: bytes) -> bool:
    """Replace a file that is on record; `known` is its entry from before.

    Where somebody else was faster nothing is written, so what stands there now is the first text of that
    file, and no file of ours.
    """
    try:
        return files.replace(image, after, keep_dir=ledger.kept)
    except ConflictError:
        if known is None:
            ledger.drop(str(image.path))
        else:
            ledger.put(known)
        raise


def _missing_parents(image: FileImage) -> tuple[str, ...]:
    """Directories that `files.replace` will make for a file, outermost first; recorded before it does."""
    if image.existed:
        return ()  # one that is gone by now was moved or removed by somebody, and isn't made again
    return tuple(str(place) for place in files.missing_directories(image.real))


def _record(edit: KeyEdit, former: object) -> KeyRecord:
    ours = json.dumps(edit.value)
    if edit.element:  # what else is in the array is its user's, and not kept
        return KeyRecord(edit.key, None if former is ABSENT else "[]", ours, element=True)
    return KeyRecord(edit.key, None if former is ABSENT else json.dumps(former), ours)
