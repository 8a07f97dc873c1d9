"""Keys of rows, and how many of them go into one statement. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

Key = tuple[str, str]
"""Identity, then the id of a message, conversation or agent."""

AT_ONCE: Final = 500
"""Values that one list (`IN`) has at most."""


def by_identity(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Ids by identity, each once, `AT_ONCE` at most: SQLite scans where a list has pairs."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for identity, name in keys:
        found[identity][name] = None
    for identity, names in found.items():
        ids = list(names)
        for start in range(0, len(ids), AT_ONCE):
            yield identity, ids[start : start + AT_ONCE]
