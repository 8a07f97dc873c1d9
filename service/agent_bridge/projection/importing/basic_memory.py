"""A project of basic-memory: markdown notes with `title`, `type`, `permalink`, `tags` as frontmatter.

The format as its documentation has it (basic-memory 0.15 to 0.19): observations `- [category] text #tag
(context)` and relations `- relation [[Target]]` stand anywhere in the text. A note becomes one fact and keeps
its text whole; the tags of its observations join its own. A note without times of its own has the file's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from agent_bridge.harnesses.markdown import Fences
from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.frontmatter import one_line
from agent_bridge.projection.importing.items import Found, Item, Left
from agent_bridge.projection.importing.pages import (
    is_markdown,
    iso_of,
    read_page,
    time_of,
    title_of_name,
    words_of,
)
from agent_bridge.projection.importing.tree import Tree

CONFIG = "config.json"
_KEPT_TYPES = frozenset({"project", "feedback", "user", "reference", "decision"})
_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[(?![ xX-]?\])[^\[\]()]+\][ \t]+(.*)")
_TAG = re.compile(r"(?:^|(?<=\s))#([\w][\w/-]*)")


def read(tree: Tree) -> Iterator[Found]:
    """Everything in the project's directory."""
    for name in tree.names:
        if not is_markdown(name):
            yield Left(name, "it is no note")
            continue
        try:
            yield _note(tree, name)
        except FactProblem as problem:
            yield Left(name, problem.reason, refused=True)


def projects_in(data: bytes) -> dict[str, Path]:
    """The projects that basic-memory's config.json lists: name and directory. {} where it isn't that file."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    listed = document.get("projects") if isinstance(document, dict) else None
    if not isinstance(listed, dict):
        return {}
    # A name and a directory; later releases have an object with `path` in its place.
    places = {name: value.get("path") if isinstance(value, dict) else value for name, value in listed.items()}
    return {name: Path(place) for name, place in places.items() if isinstance(place, str) and place}


def _note(tree: Tree, name: str) -> Found:
    page = read_page(tree.text(name))
    if not page.body:
        return Left(name, "the note is empty")
    kind = one_line(page.keys.get("type")).casefold()
    written = iso_of(tree.modified(name))
    return Item(
        name,
        page.body,
        title=one_line(page.keys.get("title")) or title_of_name(name),
        description=one_line(page.keys.get("description")),
        type=kind if kind in _KEPT_TYPES else "decision" if kind == "adr" else "reference",
        tags=tuple(dict.fromkeys((*words_of(page.keys.get("tags")), *_observed_tags(page.body)))),
        created_at=time_of(page.keys, "created_at", "created", "date") or written,
        updated_at=time_of(page.keys, "updated_at", "modified", "updated") or written,
    )


def _observed_tags(body: str) -> list[str]:
    fences = Fences()
    found: list[str] = []
    for line in body.split("\n"):
        if not fences.covers(line) and (observation := _OBSERVATION.fullmatch(line)):
            found += _TAG.findall(observation[1])
    return found
