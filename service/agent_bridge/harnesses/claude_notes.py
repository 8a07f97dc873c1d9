"""What people wrote for Claude Code in a checkout, and its own memories that aren't in the store yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import claude_carriers, claude_places, prose
from agent_bridge.harnesses.base import FileKind, NativeItem, Site
from agent_bridge.harnesses.instruction_notes import items_in
from agent_bridge.harnesses.observe import look
from agent_bridge.memory.fact import MAX_BYTES, FactProblem, parse_fact

INDEX = "MEMORY.md"
MOST_FILES = 1000
"""Files taken from one directory."""


def hand_written(site: Site) -> list[NativeItem]:
    """The texts of CLAUDE.md and its like, of rules files, and the memories in Claude's own directory.

    CLAUDE.local.md is one person's: what stands there is private.
    """
    found: list[NativeItem] = []
    for name in claude_carriers.OWN_FILES:
        found += items_in(site, site.file(name), private=name == claude_carriers.LOCAL)
    for path in _rules(site):
        found += items_in(site, look(path, site.checkout))
    return [*found, *_memories(site)]


def _rules(site: Site) -> Iterator[Path]:
    """The rules files that aren't ours, also in directories below; links to directories aren't followed."""
    top = site.checkout / ".claude" / "rules"
    if not site.file(".claude/rules").inside:
        return
    count = 0
    for base, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = Path(base, name)
            if name.endswith(".md") and path != site.checkout / claude_carriers.RULES and count < MOST_FILES:
                count += 1
                yield path


def _memories(site: Site) -> list[NativeItem]:
    """One item a file of the memory directory, unless that is the store; told by the main checkout."""
    if site.project is None or not site.is_main:
        return []
    place = site.file(claude_places.memory_directory(site))
    store = site.file(site.project.store)
    if place.kind is not FileKind.DIRECTORY or place.identity == store.identity:
        return []
    found: list[NativeItem] = []
    for path in _markdown(place.path):
        found += _memory(site, path, place.real)
    return found or _inline(site, place.path / INDEX, place.real)


def _memory(site: Site, path: Path, within: Path) -> list[NativeItem]:
    try:
        data = files.read_image(path, within=within, limit=MAX_BYTES).data
        fact = parse_fact(path.name, data)
    except (RefusedError, FactProblem):
        return []
    when = fact.created_at or fact.updated_at
    title = fact.name or fact.title
    return [NativeItem(fact.body, title, site.checkout, path, when, private=fact.private)]


def _inline(site: Site, index: Path, within: Path) -> list[NativeItem]:
    """The texts of a MEMORY.md that is no index, as there are no files beside it."""
    try:
        data = files.read_image(index, within=within, limit=MAX_BYTES).data
    except RefusedError:
        return []
    return [NativeItem(piece.text, piece.title, site.checkout, index) for piece in prose.pieces_of(data)]


def _markdown(place: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".md"))
    except OSError:
        return []
    return [place / name for name in names[:MOST_FILES] if name != INDEX and not name.startswith(".")]
