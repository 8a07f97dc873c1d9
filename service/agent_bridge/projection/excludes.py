"""What stays out of Git: the lines of `info/exclude`, and a look at whether they suffice.

It fails safe: every fact's file is left out, and only what was judged shared is let in again, by name. A file
that nobody has judged yet can't be added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path, PurePath

from agent_bridge import git

TEMPORARY_FILES = ".*.agent-bridge.tmp"
DERIVED_FILES = ("MEMORY.md", "index.json")
_FACTS = "*.[mM][dD]"
_BESIDE_FACTS = "*.[mM][dD]?*"
"""What editors and agents put beside a fact while they save it."""
_PROBE = "no-fact-has-this-name.agent-bridge.md"


class Exposure(Enum):
    """How a private file gets into Git all the same."""

    TRACKED = "tracked"
    ADDABLE = "addable"


@dataclass(frozen=True, slots=True)
class Exposed:
    """A private file that Git holds, or would take with `git add -A`."""

    path: Path
    how: Exposure


def exclude_lines(
    *,
    store: str = ".memory",
    local: bool = False,
    shared: Iterable[str] = (),
    created: Iterable[PurePath | str] = (),
) -> list[str]:
    """The lines of our section in `info/exclude`, in the order that makes them work.

    `store`: the store's path from the top of the checkout. `local`: nothing of it goes into Git. `shared`:
    paths below the store of facts and documents judged shared that Git doesn't track yet. `created`: files of
    ours, from the top of the checkout, that stay local. All with `/`. A shared file whose name can't be
    written exactly in an exclude file stays out.
    """
    top = _pattern(store)
    lines = [f"{top}/"] if local else _store_lines(top, shared)
    lines += sorted({_pattern(str(PurePath(path).as_posix())) for path in created})
    lines.append(TEMPORARY_FILES)
    return lines


def guard_lines(*, local: bool = False, shared: Iterable[str] = ()) -> list[str]:
    """The same as lines of a `.gitignore` in the store itself; the arguments are those of `exclude_lines`.

    For a repository whose own `.gitignore` takes markdown in again: that beats `info/exclude`, and only a
    `.gitignore` further down beats that (gitignore(5)).
    """
    return ["*"] if local else [_FACTS, _BESIDE_FACTS, *_let_in("", shared)]


def needs_guard(checkout: git.Checkout, store: Path) -> bool:
    """Whether a `.gitignore` takes a fact in again that nobody has judged. Asks Git about names only."""
    probes = {store / place / _PROBE for place in ("", "entries", "decisions")}
    return git.ignored(checkout, probes) != probes


@lru_cache(maxsize=20_000)
def escape(name: str) -> str | None:
    """A path as an exact pattern for gitignore(5); None if there is none (line breaks, no UTF-8).

    The caller puts a `/` before it, so that `!` and `#` at the beginning mean nothing.
    """
    return None if any(map(_unwritable, name)) else _escaped(name)


def needs_line(relpath: str, *, ignored: bool, present: bytes) -> bool:
    """Whether a file of ours needs a line: nothing else ignores it, or our line in `present` is why it is."""
    return not ignored or _pattern(relpath).encode() in present.splitlines()


def check(checkout: git.Checkout, store: Path, private: Iterable[Path]) -> list[Exposed]:
    """The private files that Git tracks, or that `git add -A` would add because of a `.gitignore`.

    `private`: absolute paths below `store`. What is derived from all facts counts as private too.
    """
    hidden = {*private, *(store / name for name in DERIVED_FILES)}
    found = [Exposed(path, Exposure.TRACKED) for path in git.tracked_below(checkout, store) & hidden]
    found += [Exposed(path, Exposure.ADDABLE) for path in git.addable(checkout, store) & hidden]
    return sorted(found, key=lambda exposed: exposed.path)


def _store_lines(top: str, shared: Iterable[str]) -> list[str]:
    lines = [f"{top}/**/{_FACTS}", f"{top}/**/{_BESIDE_FACTS}"]
    lines.append(f"{top}/index.json")
    return lines + _let_in(top, shared)


def _let_in(top: str, shared: Iterable[str]) -> list[str]:
    exact = {escape(path) for path in shared}
    return sorted(f"!{top}/{path}" for path in exact if path is not None)


def _pattern(path: str) -> str:
    return f"/{_escaped(path)}"


def _escaped(name: str) -> str:
    """`name` with a backslash before what means something, and `?` for a byte that can't be written."""
    body = name.rstrip(" ")
    blanks = len(name) - len(body)
    parts: list[str] = []
    for char in body:
        if char in "\\*?[":
            parts.append("\\" + char)
        elif _unwritable(char):
            parts.append("?")
        else:
            parts.append(char)
    return "".join(parts) + "\\ " * blanks


def _unwritable(char: str) -> bool:
    return char in "\n\r\0" or "\ud800" <= char <= "\udfff"
