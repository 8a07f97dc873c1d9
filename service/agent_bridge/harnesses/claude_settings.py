"""What Claude Code's settings say, read from a `Site`. Pure.

Source: Claude Code 2.1.332, by running it: layers policy, local, project, user; `autoMemoryDirectory` is
taken from the first that has an absolute or `~/` path; `claudeMdExcludes` are globs over absolute paths; how
AGENTS.md is read is told by the user's settings alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.harnesses import claude_places, path_glob
from agent_bridge.harnesses.base import Site

MEMORY_DIRECTORY = "autoMemoryDirectory"
MEMORY_ENABLED = "autoMemoryEnabled"
PATTERN_LIMIT, PATTERN_LENGTH = 100, 1000
_OFF_SWITCHES = ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SIMPLE")
_NO_INSTRUCTIONS = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
_WHOLE_PATH = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"
_AGENTS_PLUGIN = "cc-plugin-agents-md@builtin"


class Instructions(StrEnum):
    """Values of the built-in plugin's option `instructionFiles`."""

    EITHER = "claude-md-or-agents-md"
    """AGENTS.md only where the project has no CLAUDE.md; the default."""
    BOTH = "claude-md-and-agents-md"
    CLAUDE_ONLY = "claude-md"
    MANAGED_ONLY = "managed-only"
    """No file of the user's or the project's, rules neither."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value and the settings file (or variable) that has it."""

    value: object
    path: Path | None
    variable: str = ""

    @property
    def where(self) -> str:
        """The place in words."""
        return self.variable or str(self.path)


def memory_directory(site: Site) -> Said | None:
    """The directory that a setting names for Claude's memory, None where none does."""
    override = site.env.get(_WHOLE_PATH)
    if override:
        return Said(override, None, _WHOLE_PATH)
    for said in _said(site, MEMORY_DIRECTORY):
        value = said.value
        if isinstance(value, str) and _is_usable(value):
            home = paths.home(site.env)
            return Said(home / value[2:] if value.startswith("~/") else Path(value), said.path)
    return None


def memory_switched_off(site: Site) -> Said | None:
    """What switches Claude's memory off, None where it is on. A variable that says no forces it on."""
    for variable in _OFF_SWITCHES:
        for said in _variables(site, variable):
            if _truthy(said.value):
                return said
            if variable == _OFF_SWITCHES[0] and str(said.value).strip():
                return None
    first = next(_said(site, MEMORY_ENABLED), None)
    return first if first is not None and first.value is False else None


def hooks_switched_off(site: Site) -> Said | None:
    """What keeps Claude from running any hook, None where nothing does."""
    return next((said for said in _said(site, "disableAllHooks") if said.value is True), None)


def instructions_switched_off(site: Site) -> Said | None:
    """What keeps Claude from reading any instruction file, None where nothing does."""
    for said in _variables(site, _NO_INSTRUCTIONS):
        if _truthy(said.value):
            return said
    user = claude_places.user_settings(site.env)
    return Said(Instructions.MANAGED_ONLY, user) if instructions(site) is Instructions.MANAGED_ONLY else None


def instructions(site: Site) -> Instructions:
    """Which instruction files Claude reads."""
    found: object = parse(site.settings(claude_places.user_settings(site.env)) or b"{}")[0]
    for key in ("pluginConfigs", _AGENTS_PLUGIN, "options", "instructionFiles"):
        found = found.get(key) if isinstance(found, dict) else None
    known = {mode.value: mode for mode in Instructions}
    return known.get(found, Instructions.EITHER) if isinstance(found, str) else Instructions.EITHER


def excluded(site: Site, path: Path) -> bool:
    """Whether `claudeMdExcludes` of any layer keeps Claude from reading an instruction file."""
    lists = [said.value for said in _said(site, "claudeMdExcludes") if isinstance(said.value, list)]
    patterns = [pattern for some in lists for pattern in some if isinstance(pattern, str)][:PATTERN_LIMIT]
    return any(path_glob.matches(pattern[:PATTERN_LENGTH], path.as_posix()) for pattern in patterns)


def excluded_in_root_only(site: Site, path: Path) -> bool:
    """Whether just the project's shared settings exclude a file: sessions below the root don't read these."""
    shared = str(claude_places.shared_settings(site))
    others = {name: data for name, data in site.config.items() if name != shared}
    return excluded(site, path) and not excluded(replace(site, config=others), path)


def problems(site: Site) -> tuple[tuple[Path, str], ...]:
    """Settings files that aren't JSON, and what is wrong with each."""
    found = ((path, site.settings(path)) for path in claude_places.layers(site))
    return tuple((path, why) for path, data in found if data is not None and (why := parse(data)[1]))


@lru_cache(maxsize=64)
def parse(data: bytes) -> tuple[Mapping[str, Any], str]:
    """A settings file as an object, and what is wrong with it (then the object is empty)."""
    if not data.strip():
        return {}, ""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return {}, str(error) or type(error).__name__
    return (value, "") if isinstance(value, dict) else ({}, "it holds no JSON object")


def _said(site: Site, key: str) -> Iterator[Said]:
    for path in claude_places.layers(site):
        data = site.settings(path)
        values = {} if data is None else parse(data)[0]
        if key in values:
            yield Said(values[key], path)


def _variables(site: Site, name: str) -> Iterator[Said]:
    for said in _said(site, "env"):
        if isinstance(said.value, dict) and name in said.value:
            yield Said(said.value[name], said.path)
    if name in site.env:
        yield Said(site.env[name], None, name)


def _truthy(value: object) -> bool:
    return str(value).strip().lower() in ("1", "true", "yes", "on")


def _is_usable(value: str) -> bool:
    return "\0" not in value and (value.startswith("~/") or (value.startswith("/") and len(value) >= 3))
