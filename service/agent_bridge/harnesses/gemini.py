"""Gemini CLI: it gets AGENTS.md through GEMINI.md, and its private notes come into the store.

Source: Gemini CLI 0.61.0, by running it. Its private memory of a directory can't be switched off; what is
imported from there is private in the store too, so no project file shows it a second time.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import (
    agents_md,
    gemini_carriers,
    gemini_config,
    gemini_files,
    gemini_mcp,
    gemini_memory,
    gemini_reads,
    skill_places,
)
from agent_bridge.harnesses.base import (
    Carrier,
    Ground,
    Harness,
    InstructionFile,
    KeyEdit,
    Mode,
    NativeItem,
    Notice,
    Read,
    Scope,
    Site,
)


class Gemini(Harness):
    """Gemini CLI, Google's command line."""

    name = gemini_carriers.NAME
    title = "Gemini CLI"
    only_if_used = True

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether its home exists or `gemini` is on PATH."""
        return paths.gemini_home(env).is_dir() or shutil.which("gemini", path=env.get("PATH")) is not None

    def projection_mode(self, scope: Scope) -> Mode:  # noqa: ARG002
        """Both scopes are rendered."""
        return Mode.RENDER

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:  # noqa: ARG002
        """The settings, whom the user trusts, and the short names of directories."""
        return gemini_config.settings_files(ground)

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """Its own files in the root and in its home."""
        home, names = paths.gemini_home(ground.env), gemini_config.user_names(config, ground.env)
        own = (home, paths.home(ground.env) / ".git", *(home / name for name in names))
        if ground.project is None:
            return own
        asked = (*gemini_config.project_names(config, ground), agents_md.NAME, gemini_config.FOLDER)
        below = dict.fromkeys((*names, *asked, gemini_carriers.OWN))
        return (*(ground.checkout / name for name in below), *own)

    def follows(self, ground: Ground, file: InstructionFile) -> tuple[Path, ...]:  # noqa: ARG002
        """What a file imports, by its rules."""
        return gemini_files.imported_by(file)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """The files by which it gets the facts, GEMINI.md with an import among them."""
        if scope is Scope.GLOBAL:
            return gemini_carriers.choose_global(site)
        return () if site.project is None else gemini_carriers.choose(site).carriers

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Where sessions get no facts, or get them twice; settings that can't be read."""
        if site.project is None:
            return ()
        choice = gemini_carriers.choose(site)
        broken = tuple(
            Notice("warning", "gemini-settings", f"{path} can't be read as JSON: {problem}.", path)
            for path, problem in gemini_config.problems(site)
        )
        searched = _search_notice(site) if choice.carriers else ()
        told = (*choice.notices, *broken, *searched, *_import_notices(site, choice.carriers))
        return (*told, *gemini_mcp.notices(site))

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:  # noqa: ARG002
        """The server in the project's settings."""
        return gemini_mcp.edits(site)

    def native_memory(self, env: Mapping[str, str]) -> list[NativeItem]:
        """Its private notes, each with the directory in which it took them."""
        return gemini_memory.read(env)

    def memory_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its registry and the directories of its notes."""
        return gemini_memory.places(env)

    def memory_location(self, site: Ground) -> Path | None:
        """Its private memory of sessions started in the root; None where it has none yet."""
        return gemini_memory.location(site, site.checkout) if isinstance(site, Site) else None

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its own directory first."""
        return skill_places.of_gemini(env)

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """The user's own files, then those from the repository's root down to `start`, with their imports."""
        return gemini_reads.reads(site, start)

    def hand_written(self, site: Site) -> list[NativeItem]:
        """GEMINI.md of the project and of the user, and the notes in `.gemini`."""
        return gemini_memory.hand_written(site)

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, `.gemini`, its home and its private memories of this project."""
        below = () if site.project is None else (site.checkout, site.checkout / gemini_config.FOLDER)
        return (*below, paths.gemini_home(site.env), *gemini_memory.directories(site))


def _search_notice(site: Site) -> tuple[Notice, ...]:
    """Sessions below the root look upwards only as far as a `.git`, or what the settings name instead."""
    markers = gemini_config.markers(site)
    if site.is_git and ".git" in markers:
        return ()
    why = (
        "there is no Git repository"
        if not site.is_git and ".git" in markers
        else f"context.memoryBoundaryMarkers in {gemini_config.user_file(site.env)} doesn't name .git"
    )
    text = f"Gemini CLI may read no files of the root in sessions started below it, as {why}."
    return (Notice("info", "gemini-below-root", text, site.checkout),)


def _import_notices(site: Site, carriers: tuple[Carrier, ...]) -> tuple[Notice, ...]:
    """Facts in which it finds an import, as backticks before them don't pair the way it counts them."""
    found: list[Notice] = []
    for carrier in carriers:
        taken = () if carrier.text else gemini_files.imports_in_block(site.file(carrier.path).data)
        if taken:
            shown = ", ".join(f"@{path}" for path in taken[:3])
            text = (
                f"In the block of {site.file(carrier.path).name} Gemini CLI takes {shown} for an import: "
                "backticks before it don't pair, or it stands in a ~~~ fence. Close them, or write ```."
            )
            found.append(Notice("info", "gemini-import-in-fact", text, carrier.path))
    return tuple(found)
