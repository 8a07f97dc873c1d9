"""What Codex's settings say, read from a `Site`. Pure.

Source: Codex 0.171.0. Layers from below: `$CODEX_HOME/config.toml`, a profile `$CODEX_HOME/NAME.config.toml`
(only with `codex -p NAME`), `.codex/config.toml` of a trusted project. Trust is kept in the user's file under
`[projects."/abs/root"] trust_level`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.harnesses.base import Ground, Site
from agent_bridge.harnesses.toml_document import load_toml

DEFAULT_MAX_BYTES = 32768
"""Codex's default for `project_doc_max_bytes`."""

PROFILE_SUFFIX = ".config.toml"


@dataclass(frozen=True, slots=True)
class Layer:
    """One settings file. `problem` is set, and `values` empty, where it isn't TOML."""

    path: Path
    values: Mapping[str, Any]
    problem: str = ""

    def get(self, *key: str) -> object:
        """The value at a key path; None where it is missing."""
        found: object = self.values
        for part in key:
            if not isinstance(found, dict):
                return None
            found = found.get(part)
        return found


def user_file(env: Mapping[str, str]) -> Path:
    """The user's settings file."""
    return paths.codex_home(env) / "config.toml"


def project_file(ground: Ground) -> Path:
    """A project's own settings file, which Codex reads when it trusts the project."""
    return ground.checkout / ".codex" / "config.toml"


def profile_files(env: Mapping[str, str], names: tuple[str, ...]) -> tuple[Path, ...]:
    """Profiles among the names in CODEX_HOME."""
    home = paths.codex_home(env)
    return tuple(home / name for name in names if name.endswith(PROFILE_SUFFIX) and name != PROFILE_SUFFIX)


def user_layer(site: Site) -> Layer:
    """The user's settings; empty where there are none."""
    return _layer(site, user_file(site.env))


def project_layer(site: Site) -> Layer | None:
    """The project's settings where Codex would read them, else None."""
    if site.project is None or trust(site) != "trusted":
        return None
    path = project_file(site)
    return None if site.settings(path) is None else _layer(site, path)


def profile_layers(site: Site) -> tuple[Layer, ...]:
    """Every profile; which of them is in use is told only on Codex's command line."""
    names = site.listings.get(str(paths.codex_home(site.env)), ())
    return tuple(
        _layer(site, path) for path in profile_files(site.env, names) if site.settings(path) is not None
    )


def trust(site: Site) -> str:
    """`trusted`, `untrusted` or "" for this checkout: its own entry, else its main checkout's."""
    projects = user_layer(site).get("projects")
    if not isinstance(projects, dict):
        return ""
    roots = [site.checkout] if site.project is None else [site.checkout, site.project.root]
    for root in roots:
        entry = projects.get(str(root))
        level = entry.get("trust_level") if isinstance(entry, dict) else None
        if isinstance(level, str):
            return level
    return ""


def max_bytes(site: Site) -> int:
    """`project_doc_max_bytes`: what all project files together may have; 0 switches them off."""
    value = _layered(site, "project_doc_max_bytes")
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else DEFAULT_MAX_BYTES
    )


def fallback_names(site: Site) -> tuple[str, ...]:
    """`project_doc_fallback_filenames`: names that count where a directory has no AGENTS.md."""
    return names_of(_layered(site, "project_doc_fallback_filenames"))


def fallback_names_in(config: Mapping[str, bytes]) -> tuple[str, ...]:
    """The fallback names of all given settings files together, for an observation that is still going on."""
    found: dict[str, None] = {}
    for data in (data for path, data in config.items() if path.endswith(".toml")):
        found.update(dict.fromkeys(names_of(parse(data)[0].get("project_doc_fallback_filenames"))))
    return tuple(found)


def names_of(value: object) -> tuple[str, ...]:
    """Those items of a setting that are plain file names; a path in it could lead anywhere."""
    if not isinstance(value, list):
        return ()
    return tuple(
        name
        for name in value
        if isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")
    )


@lru_cache(maxsize=64)
def parse(data: bytes) -> tuple[Mapping[str, Any], str]:
    """TOML as a table, and what is wrong with it (then the table is empty)."""
    try:
        return load_toml(data.decode("utf-8-sig")), ""
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return {}, str(error) or type(error).__name__


def _layered(site: Site, key: str) -> object:
    project = project_layer(site)
    own = None if project is None else project.get(key)
    return user_layer(site).get(key) if own is None else own


def _layer(site: Site, path: Path) -> Layer:
    values, problem = parse(site.settings(path) or b"")
    return Layer(path, values, problem)
