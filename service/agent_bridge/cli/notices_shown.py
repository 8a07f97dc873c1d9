"""How notices look to people: each text once, with the places that it holds for.

`status` uses this too, so nothing is imported.
"""

from __future__ import annotations

from collections.abc import Iterable

_SHORT_LIST = 3


def gathered(notices: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """(level, text, path or "") as (level, text with its places), in their order.

    The same text about several files is told once: worktrees often have the same set-up. A place that the
    text names by itself isn't repeated.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for level, text, path in notices:
        known = places.setdefault((level, text), [])
        if path and path not in text and path not in known:
            known.append(path)
    return [(level, text + _told(found)) for (level, text), found in places.items()]


def _told(places: list[str]) -> str:
    if not places:
        return ""
    further = len(places) - _SHORT_LIST
    more = f" and {further} more" if further > 0 else ""
    return f" ({', '.join(places[:_SHORT_LIST])}{more})"
