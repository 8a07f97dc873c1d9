"""`opencode …`: our plugin for OpenCode, and what it asks for."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import __version__, files, paths, projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.opencode_context import checkout_of, told
from agent_bridge.cli.result import Json, Message, Result, info, warning
from agent_bridge.cli.where import ProjectOption, start_directory
from agent_bridge.errors import EXIT_DONE, EXIT_LEFT_UNDONE, UsageError
from agent_bridge.projects import Project

_PANEL = "Agents"
_FOLDER = ".opencode"
_PURPOSE = "OpenCode plugin"
GlobalOption = Annotated[
    bool, typer.Option("--global", help="For all projects: ~/.config/opencode, not this project's directory.")
]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    opencode = Verbs("opencode", "OpenCode: a plugin that tells and remembers.")
    opencode.verb("install-plugin")(install_plugin)
    opencode.verb("remove-plugin")(remove_plugin)
    opencode.verb("status")(plugin_status)
    opencode.verb("context", hidden=True)(context)
    verbs.add(opencode, panel=_PANEL)


def install_plugin(*, for_all: GlobalOption = False, project: ProjectOption = None) -> Result:
    """Put the plugin into a project, or for all of them; again after an upgrade.

    Sessions of OpenCode then begin with the memory that its instruction files don't bring, and have the tools
    `remember` and `memory_search`, unless our MCP server brings such tools. Needs a restart of OpenCode.
    """
    from agent_bridge.config import load_settings
    from agent_bridge.projection import opencode_plugin
    from agent_bridge.projection.engine import Engine
    from agent_bridge.projection.housekeeping import Excluder
    from agent_bridge.projection.ledger import Ledger
    from agent_bridge.projection.merge_driver import own_program

    _check(for_all=for_all, project=project)
    settings = load_settings()
    user, program = Ledger(paths.user_state()), own_program()
    remarks: list[Message] = []
    with ExitStack() as held:
        held.enter_context(
            files.locked(paths.user_state() / "lock", timeout=settings.lock_timeout_s, purpose=_PURPOSE)
        )
        waits = False
        ledgers = [user, *(Ledger(one.state) for one in projects.load_projects())]
        before = {path for ledger in ledgers for path in opencode_plugin.seeds(ledger)}
        if for_all:
            done = opencode_plugin.install(user, paths.opencode_config(), program)
            directories = [(one, one.root / _FOLDER, one.root) for one in projects.load_projects()]
        else:
            listed, checkout = _here(project)
            directories = [(listed, checkout / _FOLDER, checkout)]
        for one, directory, root in directories:
            if for_all and not directory.is_dir():
                continue
            engine = Engine(one, settings)
            held.enter_context(files.locked(engine.lock, timeout=settings.lock_timeout_s, purpose=_PURPOSE))

            def exclude(engine: Engine = engine, one: Project = one) -> None:
                Excluder(one, engine.ledger).keep(engine.survey(), engine.store.scan())

            if for_all:
                waits |= opencode_plugin.seed(engine.ledger, directory, within=root, before_writing=exclude)
            else:
                done = opencode_plugin.install(
                    engine.ledger, directory, program, within=root, before_writing=exclude
                )
        # OpenCode waits for its other directories too; these come last, as the plugin may be refused.
        waits |= opencode_plugin.seed(user, paths.opencode_config())
        if (paths.home() / _FOLDER).is_dir():
            waits |= opencode_plugin.seed(user, paths.home() / _FOLDER)
        made = {path for ledger in ledgers for path in opencode_plugin.seeds(ledger)} - before
    if made:
        names = ", ".join(sorted(map(str, made)))
        remarks.append(
            info(f"So that OpenCode's start doesn't wait for its own package, we made too: {names}")
        )
    if program is None:
        remarks.append(warning("The command `agent-bridge` isn't found; the plugin looks for it on PATH."))
    if done.waits or waits:
        remarks.append(
            info(
                "OpenCode installs its own package before it loads plugins here; with no way to the package "
                "registry a start takes a minute."
            )
        )
    remarks.append(info("Restart OpenCode to load it."))
    return Result(
        "opencode install-plugin",
        data={
            "plugin": str(done.plugin),
            "wrote": done.wrote,
            "seeded": done.seeded,
            "made": sorted(map(str, made)),
            "waits": done.waits,
        },
        view=(f"{'Installed' if done.wrote else 'Up to date'}: {done.plugin}",),
        messages=tuple(remarks),
    )


def remove_plugin(*, for_all: GlobalOption = False, project: ProjectOption = None) -> Result:
    """Take the plugin out again, with what was put beside it."""
    from agent_bridge.config import load_settings
    from agent_bridge.projection import opencode_plugin
    from agent_bridge.projection.engine import Engine
    from agent_bridge.projection.housekeeping import Excluder
    from agent_bridge.projection.ledger import Ledger

    _check(for_all=for_all, project=project)
    settings = load_settings()
    user, directory = Ledger(paths.user_state()), paths.opencode_config()
    if not for_all:
        _, checkout = _here(project)
        directory = checkout / _FOLDER
    engines = [Engine(one, settings) for one in projects.load_projects()]
    with ExitStack() as held:
        for lock in (paths.user_state() / "lock", *(engine.lock for engine in engines)):
            held.enter_context(files.locked(lock, timeout=settings.lock_timeout_s, purpose=_PURPOSE))
        ledgers = [user, *(engine.ledger for engine in engines)]
        undone = [one for ledger in ledgers for one in opencode_plugin.remove_plugin(ledger, directory)]
        if not any(opencode_plugin.plugins(ledger) for ledger in ledgers):
            undone += [one for ledger in ledgers for one in opencode_plugin.remove_seeds(ledger)]
        elif not opencode_plugin.plugins(user):
            for engine in engines:
                undone += opencode_plugin.remove_seeds(engine.ledger)
        for engine in engines:
            if any(Path(one.path).is_relative_to(engine.store.root.parent) for one in undone):
                Excluder(engine.project, engine.ledger).keep(engine.survey(), engine.store.scan())
    refused = any(one.outcome == "refused" for one in undone)
    rows: list[Json] = [{"path": one.path, "outcome": one.outcome, "note": one.note} for one in undone]
    lines = [f"{one.outcome}: {one.path}" + (f" ({one.note})" if one.note else "") for one in undone]
    return Result(
        "opencode remove-plugin",
        data={"undone": rows},
        view=("\n".join(lines) or f"No plugin of ours is in {directory}.",),
        exit_code=EXIT_LEFT_UNDONE if refused else EXIT_DONE,
    )


def plugin_status(*, project: ProjectOption = None) -> Result:
    """Say where the plugin is installed, and whether it is up to date."""
    from agent_bridge.projection import opencode_plugin
    from agent_bridge.projection.ledger import Ledger

    places: list[tuple[str, Ledger, Path]] = [("global", Ledger(paths.user_state()), paths.opencode_config())]
    start = start_directory(project)
    listed = projects.find_project(start)
    if listed is not None:
        places.append(("project", Ledger(listed.state), checkout_of(start, listed) / _FOLDER))
    rows: list[Json] = []
    lines = []
    for scope, ledger, directory in places:
        state = opencode_plugin.state(ledger, directory)
        rows.append({"scope": scope, "path": str(directory / opencode_plugin.PLUGIN), "state": state})
        lines.append(f"{scope}: {_STATES[state]} ({directory / opencode_plugin.PLUGIN})")
    return Result("opencode status", data={"version": __version__, "plugins": rows}, view=("\n".join(lines),))


_STATES = {
    "absent": "not installed",
    "current": "installed",
    "outdated": "installed, out of date: `agent-bridge opencode install-plugin` updates it",
    "changed": "installed and changed by somebody since; it is left alone",
    "foreign": "somebody else's file of that name; it is left alone",
}


def context(*, project: ProjectOption = None) -> Result:
    """Print what a session in a directory isn't told by OpenCode's instruction files."""
    return told(start_directory(project))


def _check(*, for_all: bool, project: Path | None) -> None:
    if for_all and project is not None:
        raise UsageError("--global and --project exclude each other.")


def _here(project: Path | None) -> tuple[Project, Path]:
    """The set-up project of a directory, and its checkout there. Raises NotFoundError."""
    from agent_bridge.projection.setup import listed

    start = start_directory(project)
    found = listed(start)
    return found, checkout_of(start, found)
