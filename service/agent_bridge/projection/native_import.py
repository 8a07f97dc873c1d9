"""Memories that a harness keeps for the whole user: sorted by where they belong, and brought into stores.

An item whose working directory lies in the project goes into its store; one of another directory is held in
the state directory until that project is initialised; only items without any directory are global. What has
been imported once is remembered by its text's hash, so a fact that was deleted since doesn't come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_bridge import files, paths
from agent_bridge.harnesses.base import Harness, NativeItem
from agent_bridge.memory.similarity import THRESHOLD, text_hash
from agent_bridge.memory.store import Store
from agent_bridge.projection.reverse import take_in
from agent_bridge.projection.sorting import Outcome

_COUNTED = {
    Outcome.NEW: "added",
    Outcome.SKIPPED: "duplicate",
    Outcome.CONFLICT: "review",
    Outcome.REFUSED: "refused",
}
_LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sorted:
    """Native items by where they go: this project, the user's global store, other directories."""

    project: tuple[NativeItem, ...]
    user: tuple[NativeItem, ...]
    elsewhere: tuple[NativeItem, ...]


def gather(harnesses: Iterable[Harness], env: Mapping[str, str]) -> list[NativeItem]:
    """What these harnesses have written by themselves, each item with its harness's name. Reads only."""
    return [
        replace(item, harness=harness.name) for harness in harnesses for item in harness.native_memory(env)
    ]


def sort_items(items: Iterable[NativeItem], roots: Sequence[Path]) -> Sorted:
    """Sort items for the project whose checkouts are `roots`; items already imported stay out. Pure."""
    project, user, elsewhere = [], [], []
    for item in items:
        if item.directory is None:
            user.append(item)
        elif any(item.directory.is_relative_to(root) for root in roots):
            project.append(item)
        else:
            elsewhere.append(item)
    return Sorted(tuple(project), tuple(user), tuple(elsewhere))


def pending_items(items: Iterable[NativeItem]) -> list[NativeItem]:
    """Those items, and the held ones, that have not been imported yet; each text once."""
    done = _imported()
    found: dict[str, NativeItem] = {}
    for item in (*items, *_held()):
        key = _key(item)
        if key not in done:
            found.setdefault(key, item)
    return list(found.values())


def import_items(
    store: Store, items: Iterable[NativeItem], *, now: datetime, threshold: float = THRESHOLD
) -> dict[str, int]:
    """Add items to a store; counts by `added`, `duplicate`, `review` (like a fact there), `refused`.

    What was rejected or merged before counts as a duplicate. The caller holds the lock of the store's owner.
    """
    listed = list(items)
    counts = dict.fromkeys(_COUNTED.values(), 0)
    for finding in take_in(store, listed, now=now, threshold=threshold):
        counts[_COUNTED[finding.outcome]] += 1
    if listed:
        _remember({_key(item) for item in listed})
    return counts


def hold_items(items: Iterable[NativeItem]) -> int:
    """Keep items of other directories until their project is initialised; how many are new."""
    count = 0
    for item in items:
        place = held_directory() / f"{_key(item)}.json"
        if not place.exists():
            files.write_own(place, json.dumps(_as_json(item), ensure_ascii=True).encode())
            count += 1
    return count


def release_items(items: Iterable[NativeItem]) -> None:
    """Forget held items that have been imported."""
    for item in items:
        (held_directory() / f"{_key(item)}.json").unlink(missing_ok=True)


def held_directory() -> Path:
    """Where items wait for their project."""
    return paths.state_dir() / "held"


def _key(item: NativeItem) -> str:
    return text_hash(f"{item.directory or ''}\n{item.text}")[:32]


def _imported_file() -> Path:
    return paths.user_state() / "imported.json"


def _imported() -> set[str]:
    file = _imported_file()
    try:
        return {key for key in json.loads(file.read_bytes()) if isinstance(key, str)}
    except FileNotFoundError:
        return set()
    except (ValueError, TypeError):  # at worst an item is offered once more; the store refuses duplicates
        return set()


def _remember(keys: set[str]) -> None:
    lock = _imported_file().with_suffix(".lock")  # engines of several projects write it
    with files.locked(lock, timeout=_LOCK_TIMEOUT_S, purpose="remember what was imported"):
        files.write_own(_imported_file(), json.dumps(sorted(_imported() | keys)).encode())


def _held() -> list[NativeItem]:
    directory = held_directory()
    if not directory.is_dir():
        return []
    found = []
    for path in sorted(directory.glob("*.json")):
        try:
            found.append(_from_json(json.loads(path.read_bytes())))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _as_json(item: NativeItem) -> Mapping[str, str | bool | None]:
    return {
        "text": item.text,
        "title": item.title,
        "directory": None if item.directory is None else str(item.directory),
        "source_file": str(item.source_file),
        "created_at": item.created_at,
        "harness": item.harness,
        "private": item.private,
    }


def _from_json(item: Mapping[str, Any]) -> NativeItem:
    directory = item["directory"]
    return NativeItem(
        text=item["text"],
        title=item["title"],
        directory=Path(directory) if directory else None,
        source_file=Path(item["source_file"]),
        created_at=item.get("created_at", ""),
        harness=item.get("harness") or "codex",  # held by a version that knew no other
        private=item.get("private", False) is not False,
    )


def utc_now() -> datetime:
    """The wall clock in UTC."""
    return datetime.now(UTC)
