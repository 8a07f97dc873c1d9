"""OpenCode: the AGENTS.md that others read too, or a file of its own that its settings list.

Source: OpenCode 1.18.33, by running it. The rules are in `opencode_files` (projects), `opencode_global` (the
user), `opencode_config` (settings) and `opencode_reads` (what a session shows).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import (
    opencode_config,
    opencode_files,
    opencode_global,
    opencode_mcp,
    opencode_reads,
    skill_places,
)
from agent_bridge.harnesses.base import (
    Carrier,
    Ground,
    Harness,
    KeyEdit,
    Mode,
    NativeItem,
    Notice,
    Read,
    Scope,
    Site,
)
from agent_bridge.harnesses.opencode_notices import notices


class OpenCode(Harness):
    """OpenCode, the terminal program of that name."""

    name = opencode_files.NAME
    title = "OpenCode"
    only_if_used = True

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether its settings or its data are there, or `opencode` is on PATH."""
        places = (paths.opencode_config(env), paths.opencode_data(env))
        return any(place.is_dir() for place in places) or bool(shutil.which("opencode", path=env.get("PATH")))

    def projection_mode(self, scope: Scope) -> Mode:  # noqa: ARG002
        """Both scopes are rendered."""
        return Mode.RENDER

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:  # noqa: ARG002
        """The user's settings and the project's."""
        own = opencode_config.user_files(ground.env)
        return own if ground.project is None else (*own, *opencode_config.project_files(ground))

    def names_above(self, ground: Ground) -> tuple[str, ...]:
        """Outside of Git it reads what stands above the project."""
        return () if ground.is_git else opencode_files.NAMES

    def names_below(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[str, ...]:  # noqa: ARG002
        """In sessions started there they are read, and one of ours could hide them."""
        return opencode_files.NAMES

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:  # noqa: ARG002
        """The root's instruction files, its own folder, and the user's files."""
        user = (opencode_global.own_file(ground), opencode_global.claudes_file(ground))
        if ground.project is None:
            return user
        names = (*opencode_files.NAMES, opencode_config.FOLDER, opencode_files.BRIDGE)
        return (*(ground.checkout / name for name in names), *user)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """One file; a second one in a project whose user asked for it by name."""
        if scope is Scope.PROJECT:
            return opencode_files.carriers(site)
        carrier = opencode_global.choose(site).carrier
        return () if carrier is None else (carrier,)

    def key_edits(self, site: Site) -> tuple[KeyEdit, ...]:
        """Instructions: what our AGENTS.md would hide, and its own file; of the user's, an imported one."""
        return opencode_global.key_edits(site) if site.project is None else opencode_files.key_edits(site)

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """What it gets twice or not at all, settings that aren't set yet or can't be read."""
        return (*notices(site), *opencode_mcp.notices(site))

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:  # noqa: ARG002
        """The server in a settings file of the project."""
        return opencode_mcp.edits(site)

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its own directory first."""
        return skill_places.of_opencode(env)

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """The user's file, the project's, the listed ones."""
        return opencode_reads.reads(site, start)

    def hand_written(self, site: Site) -> list[NativeItem]:
        """What people wrote into the project's files that it shows."""
        return opencode_reads.hand_written(site)

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, its folder there, its settings and the home of Claude's file."""
        own = dict.fromkeys((paths.opencode_config(site.env), opencode_config.home_of_files(site.env)))
        user = (*own, opencode_global.claudes_file(site).parent)
        if site.project is None:
            return user
        return (site.checkout, site.checkout / opencode_config.FOLDER, *user)
