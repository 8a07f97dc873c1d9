"""Which harnesses count as in use: found on the machine now, found before, or asked for by name.

A command and the service may see different programs on their PATH. What one of them has found counts for both
until the next `init`; else files would come and go with whoever looked last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent_bridge import files
from agent_bridge.harnesses.base import Ground, Harness

_FILE = "harnesses.json"


def in_use(
    harnesses: Iterable[Harness], env: Mapping[str, str], *, asked: Iterable[str] = (), state: Path
) -> frozenset[str]:
    """Names of the harnesses in use; `asked` are those that the user named, `state` the owner's directory."""
    certain = {*asked, *recorded(state)}
    return frozenset(one.name for one in harnesses if one.name in certain or one.detect(env))


def active(harnesses: Iterable[Harness], ground: Ground) -> tuple[Harness, ...]:
    """Those for which something may be done here."""
    return tuple(one for one in harnesses if not one.only_if_used or one.name in ground.used)


def recorded(state: Path) -> frozenset[str]:
    """Names that an earlier look has found; none where nothing readable is recorded."""
    try:
        found = json.loads((state / _FILE).read_bytes())
        return frozenset(name for name in found if isinstance(name, str))
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        # At worst a program that only a terminal knows is forgotten until it is seen again.
        return frozenset()


def record(state: Path, names: frozenset[str]) -> None:
    """Remember these names; nothing is written where they are known."""
    if not names <= recorded(state):
        files.write_own(state / _FILE, json.dumps(sorted(names | recorded(state))).encode())


def forget(state: Path, names: Iterable[str] | None = None) -> None:
    """Begin anew with these names, or with all (None): `init` looks at what is there now."""
    left = frozenset() if names is None else recorded(state) - set(names)
    if not left:
        (state / _FILE).unlink(missing_ok=True)
    elif left != recorded(state):
        files.write_own(state / _FILE, json.dumps(sorted(left)).encode())
