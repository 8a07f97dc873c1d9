"""What Gemini CLI's settings say, read from a `Site`. Pure.

Source: Gemini CLI 0.61.0, by running it. Layers from below: the user's `~/.gemini/settings.json`, then
`.gemini/settings.json` of the directory in which a session is started, and of no other. `context.fileName`
(a name or a list; the upper layer replaces the lower) is read in addition to GEMINI.md.
`context.memoryBoundaryMarkers` are names that stop the search upwards (`.git`); without one found above,
only the session's own directory counts. Folders that somebody distrusts bring no files and no settings.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from agent_bridge import paths
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import json_text
from agent_bridge.harnesses.base import Ground, Site
from agent_bridge.harnesses.foreign_text import text_of

MAIN = "GEMINI.md"
FOLDER = ".gemini"
SETTINGS = ".gemini/settings.json"
DEFAULT_MARKERS = (".git",)
NAMES_LIMIT = 50

_DISTRUST = "DO_NOT_TRUST"
_PARENT = "TRUST_PARENT"


def user_file(env: Mapping[str, str]) -> Path:
    """The user's settings."""
    return paths.gemini_home(env) / "settings.json"


def trust_file(env: Mapping[str, str]) -> Path:
    """Where it keeps which folders the user trusts."""
    return paths.gemini_home(env) / "trustedFolders.json"


def registry_file(env: Mapping[str, str]) -> Path:
    """Where it keeps a short name for each directory in which it was started."""
    return paths.gemini_home(env) / "projects.json"


def settings_files(ground: Ground) -> tuple[Path, ...]:
    """Everything that this module reads."""
    env = ground.env
    own = (user_file(env), trust_file(env), registry_file(env))
    return own if ground.project is None else (*own, ground.checkout / SETTINGS)


def names(site: Site, *, below_root: bool = False) -> tuple[str, ...]:
    """The file names that a session reads: started in the root, or in a directory below it."""
    found = file_names(site.settings(user_file(site.env)))
    if site.project is not None and not below_root:
        found = file_names(site.settings(site.checkout / SETTINGS)) or found
    return with_main(found)


def user_names(config: Mapping[str, bytes], env: Mapping[str, str]) -> tuple[str, ...]:
    """The names by the user's settings, for an observation that is still going on."""
    return with_main(file_names(config.get(str(user_file(env)))))


def project_names(config: Mapping[str, bytes], ground: Ground) -> tuple[str, ...]:
    """The names by the project's settings, for an observation that is still going on."""
    return file_names(config.get(str(ground.checkout / SETTINGS)))


def with_main(found: tuple[str, ...]) -> tuple[str, ...]:
    """The names with GEMINI.md, which no setting takes away."""
    return tuple(dict.fromkeys((*found, MAIN)))


def file_names(data: bytes | None) -> tuple[str, ...]:
    """`context.fileName` of a settings file, as paths below a directory; names that lead up are left out."""
    value = _get(data, "context", "fileName")
    listed = value if isinstance(value, list) else [value]
    found = (posixpath.normpath(name.strip()) for name in listed if isinstance(name, str) and name.strip())
    usable = (name.lstrip("/") for name in found if "\0" not in name)
    return tuple(
        dict.fromkeys(name for name in usable if name and name.partition("/")[0] not in (".", ".."))
    )[:NAMES_LIMIT]


def markers(site: Site) -> tuple[str, ...]:
    """Names that stop the search upwards, by the user's settings; () means that nothing is searched."""
    value = _get(site.settings(user_file(site.env)), "context", "memoryBoundaryMarkers")
    if not isinstance(value, list):
        return DEFAULT_MARKERS
    return tuple(name for name in value if isinstance(name, str) and name and not name.startswith("/"))


def distrusted(site: Site) -> bool:
    """Whether the user said that the checkout isn't to be trusted. The longest rule that fits decides."""
    if _get(site.settings(user_file(site.env)), "security", "folderTrust", "enabled") is False:
        return False
    rules = _get(site.settings(trust_file(site.env)))
    best, verdict = -1, ""
    for folder, level in rules.items() if isinstance(rules, dict) else ():
        place = os.path.normpath(folder)
        place = str(Path(place).parent) if level == _PARENT else place
        if len(place) > best and site.checkout.is_relative_to(place):
            best, verdict = len(place), str(level)
    return verdict == _DISTRUST


def slugs(data: bytes | None) -> Mapping[str, str]:
    """Short names by the directories they stand for, of a registry; what could lead elsewhere is left out."""
    value = _get(data, "projects")
    if not isinstance(value, dict):
        return {}
    return {
        directory: slug
        for directory, slug in value.items()
        if isinstance(slug, str)
        and directory.startswith("/")
        and slug not in ("", ".", "..")
        and not set(slug) & set("/\\\0")
        and "\0" not in directory
        and all(map(_can_be_a_name, (directory, slug)))
    }


def problems(site: Site) -> tuple[tuple[Path, str], ...]:
    """The settings files that can't be understood, and why."""
    found = [user_file(site.env), *([] if site.project is None else [site.checkout / SETTINGS])]
    parsed = [(path, _parsed(data)[1]) for path in found if (data := site.settings(path)) is not None]
    return tuple((path, problem) for path, problem in parsed if problem)


def _can_be_a_name(text: str) -> bool:
    """Whether a path may hold it: JSON can say halves of characters, which no file system can."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _get(data: bytes | None, *key: str) -> object:
    value = _parsed(data)[0] if data is not None else None
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    return value


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> tuple[object, str]:
    """JSON with comments as a value, and what is wrong with it (then the value is None)."""
    try:
        return json_text.parse(text_of(data)).value, ""
    except RefusedError as error:
        return None, error.detail or error.title
