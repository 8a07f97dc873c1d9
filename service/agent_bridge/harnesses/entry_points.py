"""Harnesses from other distributions, by the entry point group `agent_bridge.harnesses`.

An entry point names a `Row`, a `Harness`, several of them, or something that returns these when called. It is
other people's code: what can't be loaded, isn't what it should be, has a taken name or fails later is told as
a notice and left out; nothing else suffers. Installed distributions are looked at once in a process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_bridge.harnesses.base import Harness
from agent_bridge.harnesses.guarded import Broken, Guarded
from agent_bridge.harnesses.row import Row, problem
from agent_bridge.harnesses.row_harness import RowHarness

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "agent_bridge.harnesses"
PATIENCE_S = 5.0
"""Seconds that one entry point may take to load."""


def third_party(taken: Iterable[str]) -> tuple[Harness, ...]:
    """The harnesses of other distributions; what is wrong with one stands in its place as a `Broken`.

    `taken` are the names of our own; `sys.path` decides which distributions there are.
    """
    return _third_party(tuple(taken), tuple(sys.path))


def row_of(harness: Harness) -> Row | None:
    """The row that a harness is made from, None for one with code of its own."""
    inner = harness.inner if isinstance(harness, Guarded) else harness
    return inner.row if isinstance(inner, RowHarness) else None


@lru_cache(maxsize=4)
def _third_party(taken: tuple[str, ...], path: tuple[str, ...]) -> tuple[Harness, ...]:
    names = set(taken)
    found: list[Harness] = []
    for point in _points(path):
        for harness in _harnesses(point):
            if harness.name in names:
                found.append(Broken(_label(point), f"the name {harness.name!r} is taken"))
            else:
                names.add(harness.name)
                found.append(harness)
    return tuple(found)


def _points(path: tuple[str, ...]) -> list[EntryPoint]:
    """The entry points of our group, in a stable order.

    Only where some distribution names the group is the machinery for reading them imported: it takes 80 ms.
    """
    if not any(_names_group(Path(place)) for place in path if place):
        return []
    from importlib.metadata import entry_points

    return sorted(set(entry_points(group=GROUP)), key=lambda point: (point.name, point.value))


def _names_group(place: Path) -> bool:
    try:
        lists = list(place.glob("*.*-info/entry_points.txt"))
        return any(GROUP.encode() in each.read_bytes() for each in lists)
    except OSError:
        return False


def _harnesses(point: EntryPoint) -> list[Harness]:
    """What one entry point brings: guarded harnesses, or one that says why there are none."""
    loaded = _load(point)
    if loaded.problem:
        return [Broken(_label(point), loaded.problem)]
    found: list[Harness] = []
    for value in loaded.values:
        why = problem(value) if isinstance(value, Row) else ""
        if why:
            found.append(Broken(_label(point), f"its row isn't right: {why}"))
        elif isinstance(value, Row):
            found.append(Guarded(RowHarness(value)))
        elif isinstance(value, Harness) and _has_names(value):
            found.append(Guarded(value))
        else:
            found.append(Broken(_label(point), f"it brings a {type(value).__name__}, not a Harness or a Row"))
    return found


@dataclass(slots=True)
class _Loaded:
    values: tuple[Any, ...] = ()
    problem: str = ""


def _load(point: EntryPoint) -> _Loaded:
    """Import and call it in a thread of its own: one that never ends must not stop everything."""
    loaded = _Loaded(problem=f"it wasn't loaded within {PATIENCE_S:g} seconds")

    def work() -> None:
        try:
            value = point.load()
            if isinstance(value, type) or (callable(value) and not isinstance(value, Row | Harness)):
                value = value()
            loaded.values = tuple(value) if isinstance(value, tuple | list) else (value,)
            loaded.problem = ""
        except BaseException as error:  # noqa: BLE001 - whatever other people's code raises, SystemExit too
            loaded.problem = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=work, name=f"entry point {point.name}", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return _Loaded(loaded.values, loaded.problem)


def _has_names(value: Harness) -> bool:
    return isinstance(getattr(value, "name", None), str) and isinstance(getattr(value, "title", None), str)


def _label(point: EntryPoint) -> str:
    dist = point.dist.name if point.dist is not None else "?"
    return f"{point.name} of {dist}"
