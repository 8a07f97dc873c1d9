"""A fact to save, whose body can be told from its title and its index line."""

from __future__ import annotations

from pathlib import Path

BODY = "They leave on Tuesdays, from the harbour branch, and never before noon."
"""Stands in no title, hook or index line: the first sentence is another one."""

NAME = "entries/20260102-0001-release-day-0a1b.md"


def text(body: str = BODY, *, keys: str = "type: project\n") -> str:
    """The file of a fact; `keys` are further lines of its frontmatter."""
    head = f"---\nname: release-day\ndescription: when releases leave\n{keys}---\n"
    return f"{head}\n# Release day\n\nReleases follow a rhythm. {body}\n"


def save(root: Path, body: str = BODY, *, name: str = NAME, keys: str = "type: project\n") -> Path:
    """Write the fact into a project's store and return its path."""
    path = root / ".memory" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(body, keys=keys), "utf-8")
    return path
