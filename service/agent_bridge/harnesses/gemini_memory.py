"""What Gemini CLI writes down by itself, and what people write where it reads memory.

Source: Gemini CLI 0.61.0, by running it. `~/.gemini/projects.json` gives each directory in which it was
started a short name; the private memory of that directory is `~/.gemini/tmp/NAME/memory`: MEMORY.md, an index
and short notes, with longer notes beside it. Its model is told that these are personal and never to be
committed, so they are private in the store. Nothing here changes a file of Gemini CLI's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import files, paths
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import gemini_config, gemini_notes, prose
from agent_bridge.harnesses.base import NativeItem, Site
from agent_bridge.memory.similarity import normalise

INDEX = "MEMORY.md"
FILE_LIMIT = 1024 * 1024
"""Bytes of one file."""
FILES_LIMIT = 500
"""Files taken from one directory."""
DIRECTORIES_LIMIT = 2000
"""Directories of the registry that are looked at."""
GENERATED = frozenset(("memory-bridge.md", "agent-bridge.md"))
"""Names of files that this program or its predecessor writes."""

_TEXT = re.compile(r"[^.].*\.md")


def location(site: Site, directory: Path) -> Path | None:
    """The private memory of sessions started in `directory`, None where Gemini CLI never was."""
    slug = _known(site).get(str(directory))
    return None if slug is None else _place(site.env, slug)


def directories(site: Site) -> tuple[Path, ...]:
    """Where the private memories of the checkout and of directories below it lie or appear."""
    below = [
        slug for directory, slug in _known(site).items() if Path(directory).is_relative_to(site.checkout)
    ]
    places = [_place(site.env, slug) for slug in sorted(below)[:DIRECTORIES_LIMIT]]
    return tuple(path for place in places for path in (place.parent, place))


def places(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The registry and every private memory that it names: where new notes show."""
    slugs = dict.fromkeys([*sorted(_registry(env).values())][:DIRECTORIES_LIMIT])
    return (gemini_config.registry_file(env), *(_place(env, slug) for slug in slugs))


def read(env: Mapping[str, str]) -> list[NativeItem]:
    """Every private note, once for its directory, in a stable order. Unreadable files are passed over."""
    found: dict[tuple[str, str], NativeItem] = {}
    for directory, slug in [*sorted(_registry(env).items())][:DIRECTORIES_LIMIT]:
        place = _place(env, slug)
        listed = markdown_in(place)
        notes = [name for name in listed if name != INDEX]
        for name in [name for name in (INDEX,) if name in listed] + notes:
            text = _text(place / name, place)
            parsed = gemini_notes.index(text, notes) if name == INDEX else gemini_notes.note(text)
            for note in parsed:
                found.setdefault(
                    (normalise(note.text), directory),
                    NativeItem(
                        note.text, note.title, Path(os.path.realpath(directory)), place / name, private=True
                    ),
                )
    return list(found.values())


def hand_written(site: Site) -> list[NativeItem]:
    """The texts of GEMINI.md (the project's and the user's) and of `.gemini/*.md`, without what is ours."""
    home = paths.gemini_home(site.env)
    user = written(home, (gemini_config.MAIN,), None)
    if site.project is None:
        return user
    folder = site.checkout / gemini_config.FOLDER
    own = written(site.checkout, (gemini_config.MAIN,), site.checkout)
    if os.path.realpath(folder) == os.path.realpath(home):  # the home is the project
        return own + user
    return own + written(folder, None, site.checkout) + user


def written(place: Path, names: tuple[str, ...] | None, directory: Path | None) -> list[NativeItem]:
    """The list items and memory paragraphs of files in `place` (None: all but ours), with their directory.

    Files that lead out of `directory` are passed over.
    """
    chosen = [name for name in markdown_in(place) if name not in GENERATED] if names is None else list(names)
    return [
        NativeItem(piece.text, piece.title, directory, place / name)
        for name in chosen
        for piece in prose.pieces_of(_data(place / name, directory or place))
    ]


def markdown_in(place: Path) -> list[str]:
    """Names of the markdown files in a directory, sorted; [] where it can't be listed."""
    try:
        found = sorted(entry.name for entry in os.scandir(place) if _TEXT.fullmatch(entry.name))
    except OSError:
        return []
    return found[:FILES_LIMIT]


def _registry(env: Mapping[str, str]) -> Mapping[str, str]:
    path = gemini_config.registry_file(env)
    return gemini_config.slugs(_data(path, path.parent) or None)


def _known(site: Site) -> Mapping[str, str]:
    return gemini_config.slugs(site.settings(gemini_config.registry_file(site.env)))


def _place(env: Mapping[str, str], slug: str) -> Path:
    return paths.gemini_home(env) / "tmp" / slug / "memory"


def _text(path: Path, within: Path) -> str:
    data = _data(path, within)
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\0", "")


def _data(path: Path, within: Path) -> bytes:
    try:
        return files.read_image(path, within=Path(os.path.realpath(within)), limit=FILE_LIMIT).data
    except RefusedError:
        return b""
