"""What is known of a harness that only needs to find the facts in a file: a row of the table, as a value.

A third party makes one too; `problem` says what is wrong with it. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import Literal

from agent_bridge.harnesses.base import NO_LIMIT

AGENTS = "AGENTS.md"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PLAIN_TEXT = re.compile(r"[^\0\r]*")


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file for one harness alone, made where AGENTS.md can't bring it the facts.

    `path` is below the project (with `/`), or below the home where it is a file of the user's. `header` is
    the front matter that makes the harness read it always. `limit`: the most characters that it takes from
    it. `kind`: "own", a whole file of ours, or "block" in a file that people write in too. `hides`: files
    that the harness reads no more once this one is there; where one of them is, ours isn't made.
    """

    path: str
    header: str = ""
    limit: int = NO_LIMIT
    kind: Literal["own", "block"] = "own"
    hides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """A file in which the user has to name AGENTS.md himself; `advice` says how. `files` may begin with `~/`.

    The harness counts as reading AGENTS.md when one of the files mentions it.
    """

    files: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class Row:
    """One harness.

    `homes` are paths below the user's home that show that he uses it, `programs` names on PATH. `markers` are
    paths in a project that show that somebody uses it there: that is told, but nothing is written for it.
    `reads` are the files in a project's root that it shows the model, in its own order: all of them, or with
    `first_only` the first that exists. `perhaps` are files of which nobody knows whether it reads them in
    the place of AGENTS.md. `folders` are directories of rule files, read besides. `walks`: files of the same
    names in the directories from the root down to the one it was started in are read too.
    `limit`: the most characters that it takes from AGENTS.md. `certain` is false where the sources disagree,
    or where a setting of the user's decides; `doubt` says what is not known. `remote`: it works on a clone
    elsewhere and sees only what Git tracks. `names_setting` is a key of JSON settings files that replaces
    `reads`: files (project's first), then the key. `source` is a document's address, `as_of` the day on which
    it was looked up (ISO 8601).
    """

    name: str
    title: str
    source: str
    as_of: str
    homes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    reads: tuple[str, ...] = (AGENTS,)
    first_only: bool = False
    perhaps: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    walks: bool = False
    limit: int = NO_LIMIT
    own: OwnFile | None = None
    user_file: OwnFile | None = None
    setting: Setting | None = None
    names_setting: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    remote: bool = False
    certain: bool = True
    doubt: str = ""

    @property
    def shares(self) -> bool:
        """Whether AGENTS.md can bring it the facts."""
        return AGENTS in self.reads or self.setting is not None


def is_below(path: object) -> bool:
    """Whether a path stays where it should: relative, no way up, not Git's own, not the memory itself."""
    if not isinstance(path, str) or not path.strip() or "\0" in path or "\n" in path:
        return False
    pure = PurePosixPath(path.removeprefix("~/"))
    first = pure.parts[0].lower() if pure.parts else ""
    return not pure.is_absolute() and ".." not in pure.parts and first not in (".git", ".memory", "")


def way(row: Row) -> str:
    """How memory reaches a harness, in a few words for people."""
    if row.setting is not None:
        return f"{AGENTS}, once {row.setting.files[0]} names it"
    if not row.shares:
        return row.own.path if row.own else "-"
    text = AGENTS
    before = row.reads[: row.reads.index(AGENTS)] if row.first_only else ()
    if before:
        text = f"the first of {', '.join((*before, AGENTS))}"
    if row.remote:
        text += ", once Git tracks it"
    if row.own:
        text += f"; else {row.own.path}"
    return text


def problem(row: Row) -> str:
    """What is wrong with a row, "" if nothing is. Other people's code makes them too."""
    texts = (row.name, row.title, row.source, row.as_of, row.doubt)
    if not all(isinstance(text, str) and _PLAIN_TEXT.fullmatch(text) for text in texts):
        return "name, title, source, as_of and doubt are texts"
    if not _NAME.fullmatch(row.name):
        return f"the name {row.name!r} isn't lower-case words with hyphens"
    if not row.title.strip() or not row.source.strip():
        return "it has no title or no source"
    try:
        date.fromisoformat(row.as_of)
    except ValueError:
        return f"as_of {row.as_of!r} is no day like 2026-11-29"
    lists = (row.homes, row.programs, row.markers, row.reads, row.perhaps, row.folders)
    if not all(isinstance(names, tuple) for names in lists):
        return "lists of names are tuples"
    own = [file.path for file in (row.own, row.user_file) if file is not None]
    settings = row.setting.files if row.setting else ()
    for path in (*row.homes, *row.markers, *row.reads, *row.perhaps, *row.folders, *own, *settings):
        if not is_below(path):
            return f"{path!r} isn't a path below the project or the home"
    if any("/" in program for program in row.programs):
        return "programs are names, not paths"
    if not row.shares and row.own is None:
        return "it neither reads AGENTS.md nor has a file of its own"
    return ""
