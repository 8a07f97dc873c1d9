"""What an importer finds: texts that can become facts, and files that can't. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The places that texts can be imported from; the words are those of `--as`."""

    MEMORY_BRIDGE = "memory-bridge"
    CLAUDE = "claude"
    BASIC_MEMORY = "basic-memory"
    RULESYNC = "rulesync"
    RULER = "ruler"
    MARKDOWN = "markdown"

    @property
    def source(self) -> str:
        """What the `source` key of an imported fact says."""
        return f"import:{self.value}"


class Outcome(StrEnum):
    """What became of a file, or of one text in it."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    REVIEW = "review"
    KNOWN = "known"
    """It was imported before; what has become of it since was somebody's decision."""
    REFUSED = "refused"
    NO_FACT = "no fact"


@dataclass(frozen=True, slots=True)
class Item:
    """A text that can become a fact.

    `origin` is the file's path below the source, perhaps with `#` and the part of it. Times are ISO UTC, or
    empty. `data` is a whole file that is to be kept byte for byte, under `stem` (a path without its ending);
    without it a file is made from the other fields, with `fact_id` if that is free.
    """

    origin: str
    text: str
    title: str = ""
    description: str = ""
    type: str = "project"
    tags: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    private: bool = False
    pinned: bool = False
    fact_id: str = ""
    data: bytes | None = None
    stem: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """A file that doesn't become a fact, and why. `refused`: it should have, but can't be used."""

    origin: str
    why: str
    refused: bool = False


Found = Item | Left


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report. `fact_id` is the fact added, or that which it equals or resembles."""

    origin: str
    outcome: Outcome
    why: str = ""
    fact_id: str = ""
    title: str = ""
    is_shared: bool = False
