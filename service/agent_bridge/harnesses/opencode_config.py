"""What OpenCode's settings say, read from a `Site`, and into which file an instruction of ours goes. Pure.

Source: OpenCode 1.18.33, by running it. Layers: `config.json`, `opencode.json`, `opencode.jsonc` in its own
directory, the file that OPENCODE_CONFIG names, then the last two in each directory from the worktree's root
to the session's, then in their `.opencode` and in OPENCODE_CONFIG_DIR, and OPENCODE_CONFIG_CONTENT. All are
JSON with comments. The arrays `instructions` of all layers are joined. An entry is a path or a glob: a
relative one is looked for in the session's directory and each one above it up to the worktree's root (outside
of Git: up to `/`), `~/` is the home, addresses are fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import agents_md, json_text, path_glob
from agent_bridge.harnesses.base import FileKind, Ground, InstructionFile, Site
from agent_bridge.harnesses.foreign_text import text_of

FOLDER = ".opencode"
INSTRUCTIONS = "instructions"
PROJECT_FILES = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
USER_FILES = ("config.json", "opencode.json", "opencode.jsonc")

ENTRY_LIMIT, ENTRY_LENGTH, ALTERNATIVES = 200, 1000, 64
"""So many instructions are looked at, so many characters of one, so many names that it may stand for."""

_CHOICE = re.compile(r"\{([^{}]*)\}|\[([^\]!^\-/]+)\]")
_CLAUDE_OFF = ("OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT")
_PROJECT_OFF = "OPENCODE_DISABLE_PROJECT_CONFIG"


@dataclass(frozen=True, slots=True)
class Layer:
    """One settings file. `problem` is set, and `values` empty, where OpenCode can't use it."""

    path: Path
    values: Mapping[str, Any]
    problem: str = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """Its `instructions`."""
        found = self.values.get(INSTRUCTIONS)
        listed = found[:ENTRY_LIMIT] if isinstance(found, list) else ()
        return tuple(entry for entry in listed if isinstance(entry, str) and len(entry) <= ENTRY_LENGTH)


def user_files(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's settings files, in the order in which they are read."""
    home, further = paths.opencode_config(env), env.get("OPENCODE_CONFIG", "")
    named = (Path(further),) if further.startswith("/") else ()
    moved = home_of_files(env)
    again = () if moved == home else tuple(moved / name for name in USER_FILES[1:])
    return (*(home / name for name in USER_FILES), *named, *again)


def home_of_files(env: Mapping[str, str]) -> Path:
    """The directory in which OpenCode looks for the user's AGENTS.md: OPENCODE_CONFIG_DIR or its own."""
    value = env.get("OPENCODE_CONFIG_DIR", "")
    return Path(value) if value.startswith("/") else paths.opencode_config(env)


def project_files(ground: Ground) -> tuple[Path, ...]:
    """Those of one checkout, in the order in which they are read."""
    return tuple(ground.checkout / name for name in PROJECT_FILES)


def user_layers(site: Site) -> tuple[Layer, ...]:
    """The user's settings, as far as there are any."""
    return tuple(_layer(site, path) for path in user_files(site.env) if site.settings(path) is not None)


def project_layers(site: Site) -> tuple[Layer, ...]:
    """The project's settings, as far as there are any and OpenCode reads them."""
    if site.project is None or project_switched_off(site):
        return ()
    return tuple(_layer(site, path) for path in project_files(site) if site.settings(path) is not None)


def entries(site: Site) -> tuple[str, ...]:
    """All instructions that are listed, without repeats."""
    layers = (*user_layers(site), *project_layers(site))
    content = site.env.get("OPENCODE_CONFIG_CONTENT", "").encode("utf-8", "replace")
    found = (*(entry for layer in layers for entry in layer.entries), *entries_in(content))
    return tuple(dict.fromkeys(found))


def entries_in(data: bytes) -> tuple[str, ...]:
    """The instructions of one settings file."""
    return Layer(Path(), parse(data)[0]).entries


def lists(site: Site, path: Path) -> bool:
    """Whether the instructions name a file at `path`, in sessions started in the checkout."""
    return any(names(entry, path, site.checkout, paths.home(site.env)) for entry in entries(site))


def names(entry: str, path: Path, base: Path, home: Path) -> bool:
    """Whether an instruction, looked for in the directory `base`, means the file at `path`."""
    if entry.startswith(("http://", "https://")):
        return False
    pattern = f"{home}/{entry[2:]}" if entry.startswith("~/") else entry
    if not pattern.startswith("/"):
        pattern = os.path.normpath(f"{base}/{pattern}") if pattern else ""
    return any(path_glob.matches(one, path.as_posix()) for one in alternatives(pattern))


def alternatives(pattern: str) -> list[str]:
    """A glob without `{a,b}` and `[ab]`, which stand for these several; too many of them are cut."""
    done: list[str] = []
    todo = [pattern]
    while todo and len(done) + len(todo) <= ALTERNATIVES:
        one = todo.pop()
        found = _CHOICE.search(one)
        if found is None:
            done.append(one)
            continue
        choices = found[1].split(",") if found[1] is not None else list(found[2])
        todo += [one[: found.start()] + choice + one[found.end() :] for choice in reversed(choices)]
    return done


def claude_switched_off(site: Ground) -> bool:
    """Whether OpenCode reads no CLAUDE.md, neither the project's nor the user's."""
    return any(_on(site.env.get(name, "")) for name in _CLAUDE_OFF)


def project_switched_off(site: Ground) -> bool:
    """Whether OpenCode reads nothing of the project's, neither settings nor instruction files."""
    return _on(site.env.get(_PROJECT_OFF, ""))


def place_for(site: Site, entry: str, ours: tuple[str, ...] = ()) -> InstructionFile | None:
    """The project's settings file that lists `entry` or is to list it; None where none can.

    One that lists it already, then one that lists another of `ours`, then a new one, so that a file of the
    user's changes last and one that Git tracks very last. The folder is made for no setting alone: OpenCode
    installs packages in each that it finds.
    """
    usable = [file for file in (site.file(name) for name in PROJECT_FILES) if is_usable(site, file)]
    listed = {file.name: _layer(site, file.path).entries for file in usable}
    in_root = [file for file in usable if "/" not in file.name]
    folder = site.file(FOLDER).is_directory or entry.startswith(f"{FOLDER}/")
    bare = len(in_root) == 2 and all(file.kind is FileKind.ABSENT for file in in_root)
    new = [file for file in usable if file.kind is FileKind.ABSENT]
    if folder or not bare:
        new.sort(key=lambda file: file in in_root)
    own = [file for file in usable if file.kind is not FileKind.ABSENT]
    own.sort(key=lambda file: file.tracked)
    order = (
        *(file for file in own if entry in listed[file.name]),
        *(file for file in own if not file.tracked and set(ours) & set(listed[file.name])),
        *new,
        *own,
    )
    return next(iter(order), None)


def user_place(site: Site, entry: str) -> InstructionFile | None:
    """The user's settings file that lists `entry` or is to: one that exists, if there is any."""
    files = [site.file(path) for path in (paths.opencode_config(site.env) / name for name in USER_FILES)]
    there = [file for file in files if file.kind is FileKind.FILE and not _layer(site, file.path).problem]
    listing = [file for file in there if entry in _layer(site, file.path).entries]
    missing = [file for file in files[1:] if file.kind is FileKind.ABSENT]
    return next(iter((*listing, *reversed(there), *missing)), None)


@lru_cache(maxsize=64)
def parse(data: bytes) -> tuple[Mapping[str, Any], str]:
    """A settings file as an object, and what is wrong with it (then the object is empty)."""
    try:
        text = text_of(data)
        value = json_text.parse(text).value if text.strip() else {}
    except RefusedError as error:
        return {}, error.detail or error.title
    if not isinstance(value, dict):
        return {}, "it holds no JSON object"
    if not isinstance(value.get(INSTRUCTIONS, []), list):
        return {}, "`instructions` is no list"
    return value, ""


def _layer(site: Site, path: Path) -> Layer:
    values, problem = parse(site.settings(path) or b"")
    return Layer(path, values, problem)


def is_usable(site: Site, file: InstructionFile) -> bool:
    """Whether we may put a setting into one of the project's files: it is no link, and can be read."""
    folder = site.file(FOLDER)
    if "/" in file.name and folder.kind not in (FileKind.ABSENT, FileKind.DIRECTORY):
        return False
    if file.kind is FileKind.ABSENT:
        return file.inside
    if file.kind is not FileKind.FILE or agents_md.why_unusable(file):
        return False
    return site.settings(file.path) is not None and not _layer(site, file.path).problem


def _on(value: str) -> bool:
    return value.strip().lower() in ("1", "true")
