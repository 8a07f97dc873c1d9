"""Taking over a directory in which a harness kept memories, and giving it back.

Two phases, so that a kill at any moment loses nothing: the directory is copied and the copy verified; its
facts go into the store; then link and directory change places in one step; what was written into the old
directory in between is taken over too before it goes. The copy is kept for the way back.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, DuplicateError, RefusedError
from agent_bridge.files import kernel
from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.store import Store
from agent_bridge.projection import apply
from agent_bridge.projection.ledger import Entry, Kind, Ledger, digest
from agent_bridge.projection.undo import Undone

INDEX = "MEMORY.md"
_LIMIT = 1 << 20
_ASIDE = ".{name}.agent-bridge-old"


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of each file of a directory: new in the store (old name → new), there already, left."""

    added: Mapping[str, str]
    duplicates: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


def read_tree(directory: Path) -> dict[str, bytes | str]:
    """Every file below `directory` by POSIX path: its bytes, or for a symlink the text `-> target`.

    FIFOs, sockets and devices are left out; nothing is followed.
    """
    found: dict[str, bytes | str] = {}
    for base, folders, names in os.walk(directory):
        here = Path(base)
        for name in [*names, *(folder for folder in folders if (here / folder).is_symlink())]:
            path = here / name
            mode = path.lstat().st_mode
            below = path.relative_to(directory).as_posix()
            if stat.S_ISLNK(mode):
                found[below] = f"-> {path.readlink()}"
            elif stat.S_ISREG(mode):
                found[below] = path.read_bytes()
    return found


def adopt_files(store: Store, tree: Mapping[str, bytes | str], source: str) -> Adopted:
    """Put the facts of a directory into the store; its MEMORY.md becomes the store's, or joins it."""
    added: dict[str, str] = {}
    duplicates: list[str] = []
    left: list[tuple[str, str]] = []
    for name, data in sorted(tree.items()):
        base = name.rsplit("/", 1)[-1]
        if base == INDEX:
            continue
        if isinstance(data, str) or not name.endswith(".md") or len(data) > _LIMIT or base.startswith("."):
            left.append((name, "no markdown file of at most 1 MiB"))
            continue
        try:
            added[name] = store.adopt(data, name, source).fact.path
        except DuplicateError:
            duplicates.append(name)
        except (FactProblem, AgentBridgeError) as error:
            left.append((name, str(error)))
    native = tree.get(INDEX)
    if isinstance(native, bytes):
        _join_index(store.root / INDEX, native, added)
    return Adopted(added, tuple(duplicates), tuple(left))


def make_link(ledger: Ledger, store: Store, path: Path, source: str) -> Adopted:
    """Make `path` a symlink to the store; what stands there is kept, its facts adopted.

    RefusedError where a file stands there.
    """
    target = store.root
    nothing = Adopted({}, (), ())
    finish_link(ledger, store, path, source)
    if path.is_symlink():
        former = str(path.readlink())
        if former == str(target):
            return nothing
        if ledger.get(path) is None:
            ledger.put(Entry(str(path), Kind.LINK, target=str(target), header=former))
        _swap_link(path, target)
        path.with_name(_ASIDE.format(name=path.name)).unlink()
        return nothing
    if not path.exists():
        recorded = ledger.get(path)
        made = recorded.directories if recorded else tuple(map(str, files.missing_directories(path)))
        ledger.put(Entry(str(path), Kind.LINK, target=str(target), directories=made))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target, target_is_directory=True)
        return nothing
    if not path.is_dir():
        raise RefusedError("A file stands where the memory directory belongs", path=path)
    tree = read_tree(path)
    backup = _keep_tree(ledger, path, tree)
    adopted = adopt_files(store, tree, source)
    known = tuple(sorted(fact.path for fact in store.scan().facts))
    taken = _taken(store, adopted.added.items())
    ledger.put(Entry(str(path), Kind.LINK, target=str(target), backup=backup.name, known=known, taken=taken))
    _swap_link(path, target)
    finish_link(ledger, store, path, source)
    return adopted


def close_adoption(ledger: Ledger, store: Store, before: frozenset[str]) -> None:
    """At the end of an `init`: what came in by it, from wherever, isn't learnt since.

    `before` are the paths of the facts that the store held when it began.
    """
    new = frozenset(fact.path for fact in store.scan().facts) - before
    for entry in ledger.entries():
        if entry.backup is not None and new:
            fresh = _taken(store, [(name, path) for name, path, _ in entry.taken if path in new])
            taken = {item[0]: item for item in (*entry.taken, *fresh)}
            known = tuple(sorted(new.union(entry.known)))
            ledger.put(replace(entry, known=known, taken=tuple(taken.values())))


def finish_link(ledger: Ledger, store: Store, path: Path, source: str) -> None:
    """Take over what was written into the old directory while it was swapped, then remove it."""
    aside = path.with_name(_ASIDE.format(name=path.name))
    entry = ledger.get(path)
    if entry is not None and entry.backup is None and aside.is_symlink() and path.is_symlink():
        aside.unlink()  # the former link, left by a kill; the ledger knows it
    if entry is None or entry.backup is None or not aside.is_dir() or aside.is_symlink():
        return
    if not path.is_symlink():  # killed before the swap: the link is still aside's place to be made
        return
    backup = ledger.kept / entry.backup
    kept = read_tree(backup)
    late = {name: data for name, data in read_tree(aside).items() if kept.get(name) != data}
    if late:
        adopt_files(store, late, source)
        for name in late:
            place = backup / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(aside / name, place, follow_symlinks=False)
    shutil.rmtree(aside)


def undo_link(ledger: Ledger, store: Store, entry: Entry) -> Undone:
    """Put back what stood where our link is, with the facts learnt since."""
    path = Path(entry.path)
    building = path.with_name(_ASIDE.format(name=path.name))
    if not path.is_symlink() or str(path.readlink()) != entry.target:
        if building.is_symlink():  # an ejection was killed when all but this was done
            building.unlink()
        if not os.path.lexists(path):
            apply.remove_directories(entry.directories)
        ledger.drop(entry.path)
        return Undone(entry.path, "untouched", "it isn't our link any more")
    if entry.backup is None:
        if entry.header:
            _clear(building)
            building.symlink_to(entry.header)
            building.replace(path)
        else:
            path.unlink()
        apply.remove_directories(entry.directories)
        ledger.drop(entry.path)
        return Undone(entry.path, "restored" if entry.header else "removed")
    _clear(building)
    shutil.copytree(ledger.kept / entry.backup, building, symlinks=True)
    learnt = _copy_edited(store, building, entry) + _copy_learnt(store, building, frozenset(entry.known))
    _restore_times(ledger.kept / entry.backup, building, untouched=not learnt)
    _exchange(path, building)
    building.unlink()
    ledger.drop(entry.path)
    note = f"{len(learnt)} facts learnt since were copied back" if learnt else ""
    return Undone(entry.path, "restored", note)


def _taken(store: Store, names: Iterable[tuple[str, str]]) -> tuple[tuple[str, str, str], ...]:
    found = []
    for name, path in names:
        data = files.read_image(store.root / path, within=store.root).data
        found.append((name, path, digest(data)))
    return tuple(found)


def _copy_edited(store: Store, directory: Path, entry: Entry) -> list[str]:
    """Give the directory's own memories the text that they have by now; one that was deleted comes back."""
    edited: list[str] = []
    for name, path, former in entry.taken:
        image = files.read_image(store.root / path, within=store.root)
        place = directory / name
        if image.existed and digest(image.data) != former and place.is_file():
            mode = stat.S_IMODE(place.stat().st_mode)
            place.unlink()
            place.write_bytes(image.data)
            place.chmod(mode)
            edited.append(path)
    return edited


def _copy_learnt(store: Store, directory: Path, known: frozenset[str]) -> list[str]:
    learnt: list[str] = []
    lines: list[str] = []
    for fact in store.scan().facts:
        if fact.path in known:
            continue
        place = directory / fact.path
        if place.is_file() and place.read_bytes() == (store.root / fact.path).read_bytes():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(store.root / fact.path, place)
        learnt.append(fact.path)
        hook = f" — {fact.hook}" if fact.hook else ""
        lines.append(f"- [{fact.title}]({fact.path}){hook}\n")
    if learnt:
        index = directory / INDEX
        text = index.read_bytes() if index.exists() else b""
        gap = b"" if not text or text.endswith(b"\n") else b"\n"
        index.write_bytes(text + gap + "".join(lines).encode())
    return learnt


def _restore_times(source: Path, copy: Path, *, untouched: bool) -> None:
    if untouched:
        for base, _folders, _names in os.walk(source, topdown=False):
            below = Path(base).relative_to(source)
            shutil.copystat(source / below, copy / below)


def _join_index(index: Path, native: bytes, added: Mapping[str, str]) -> None:
    try:
        text = native.decode("utf-8-sig")
    except UnicodeDecodeError:
        return  # kept in the backup; the index is made anew
    for old, new in added.items():
        if old != new:
            text = text.replace(f"]({old})", f"]({new})")
    current = index.read_text(encoding="utf-8") if index.exists() else ""
    have = set(current.splitlines())
    lines = [line for line in text.splitlines() if line not in have]
    joined = current + ("\n" if current and not current.endswith("\n") else "") + "\n".join(lines)
    if lines:
        files.write_own(index, (joined.rstrip("\n") + "\n").encode(), mode=0o644)


def _keep_tree(ledger: Ledger, path: Path, tree: Mapping[str, bytes | str]) -> Path:
    whole = hashlib.sha256()
    for name, data in sorted(tree.items()):
        whole.update(repr((name, data)).encode("utf-8", "surrogatepass"))
    backup = ledger.kept / f"tree-{whole.hexdigest()[:16]}"
    if backup.is_dir() and read_tree(backup) == tree:
        return backup
    building = ledger.kept / f".{backup.name}.tmp"
    shutil.rmtree(building, ignore_errors=True)
    ledger.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copytree(path, building, symlinks=True, ignore=_irregular)
    if read_tree(building) != tree:
        shutil.rmtree(building)
        raise RefusedError(
            "The memory directory changed while it was copied", path=path, remedy="Run the command again."
        )
    shutil.rmtree(backup, ignore_errors=True)
    building.rename(backup)
    return backup


def _irregular(base: str, names: list[str]) -> list[str]:
    modes = {name: (Path(base) / name).lstat().st_mode for name in names}
    keep = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return [name for name, mode in modes.items() if not any(kind(mode) for kind in keep)]


def _swap_link(path: Path, target: Path) -> None:
    aside = path.with_name(_ASIDE.format(name=path.name))
    if aside.is_symlink():
        aside.unlink()
    aside.symlink_to(target, target_is_directory=True)
    _exchange(aside, path)


def _exchange(one: Path, other: Path) -> None:
    """Two names change their meaning; in one step where the system can, else in three."""
    if kernel.exchange(one, other):
        return
    third = one.with_name(f"{one.name}.moved")
    one.rename(third)
    other.rename(one)
    third.rename(other)


def _clear(aside: Path) -> None:
    """Remove what a killed process left aside: the link, or a copy that was being built."""
    if aside.is_symlink():
        aside.unlink()
    elif aside.exists():
        shutil.rmtree(aside)
