"""Reading a markdown page for an importer: its keys, its text, its sections. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from agent_bridge.harnesses.markdown import Fences
from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import plain_body
from agent_bridge.memory.frontmatter import Value, one_line
from agent_bridge.memory.times import iso, timestamp

LONG = 4096
"""A page of rules with more characters than this becomes one fact per `##` section: a block of all facts has
16 KiB, and one that doesn't fit is left out whole."""


@dataclass(frozen=True, slots=True)
class Page:
    """A file's frontmatter, and its text with LF line ends."""

    keys: Mapping[str, Value]
    body: str


def read_page(text: str) -> Page:
    """Take a file's text apart. Raises FactProblem for frontmatter that isn't plain YAML."""
    parts = frontmatter.split(text)
    return Page(frontmatter.read_mapping(text[parts.start : parts.end]), plain_body(text[parts.body :]))


def is_markdown(name: str) -> bool:
    """Whether a file of this path holds markdown, by its name."""
    return name.lower().endswith(".md")


def words_of(value: Value | None) -> tuple[str, ...]:
    """A list of words in any usual spelling: a YAML list, or one scalar with commas."""
    if isinstance(value, str):
        listed: list[Value] = list(value.removeprefix("[").removesuffix("]").split(","))
    else:
        listed = value if isinstance(value, list) else []
    named = (one_line(item).strip("\"'").removeprefix("#") for item in listed)
    return tuple(dict.fromkeys(word for word in named if word))


def time_of(keys: Mapping[str, Value], *names: str) -> str:
    """The first of these keys that holds a time, as ISO UTC; empty where none does."""
    return next((found for name in names if (found := timestamp(keys.get(name)))), "")


def iso_of(seconds: float) -> str:
    """Seconds since 1970 as ISO UTC; empty for 0."""
    return iso(datetime.fromtimestamp(seconds, UTC)) if seconds else ""


def title_of_name(name: str) -> str:
    """A file's name as a title: without its ending, dashes as blanks."""
    stem = PurePosixPath(name).stem
    return " ".join(stem.replace("-", " ").replace("_", " ").split()) or stem


def first_heading(body: str) -> str:
    """The text of the heading that a page begins with, "" where it begins otherwise."""
    first = body.split("\n", 1)[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def sections_of(body: str) -> list[tuple[str, str]]:
    """A long page cut at its `##` headings: (heading, text with the heading), what stands above them first.

    A short page, and one without such headings, is a single piece with an empty heading.
    """
    if len(body) <= LONG:
        return [("", body)]
    pieces: list[tuple[str, list[str]]] = [("", [])]
    fences = Fences()
    for line in body.split("\n"):
        if not fences.covers(line) and line.startswith("## "):
            pieces.append((line[3:].strip(), []))
        pieces[-1][1].append(line)
    told = [(heading, plain_body("\n".join(lines))) for heading, lines in pieces]
    return [(heading, text) for heading, text in told if text and (heading or not _is_heading_only(text))]


def _is_heading_only(text: str) -> bool:
    return text.startswith("#") and "\n" not in text
