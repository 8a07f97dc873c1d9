"""`init`, `plan` and `eject`: a project is set up, and taken out again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.consent import YesOption, agree, can_ask, consent
from agent_bridge.cli.pass_shown import (
    is_undone,
    notices_messages,
    preview_json,
    preview_text,
    report_json,
    report_messages,
    steps_in_words,
)
from agent_bridge.cli.printing import tell
from agent_bridge.cli.result import Json, Message, Result, counted, info, warning
from agent_bridge.cli.where import ProjectOption, start_directory
from agent_bridge.config import Settings, load_settings
from agent_bridge.daemon.client import service_is_running
from agent_bridge.errors import EXIT_DONE, EXIT_LEFT_UNDONE, AgentBridgeError, UsageError
from agent_bridge.projection import preview, setup
from agent_bridge.projection.engine import Report
from agent_bridge.projection.leaving import would_undo
from agent_bridge.projects import Delivery, Project

_PANEL = "Set-up"

LocalOption = Annotated[bool, typer.Option("--local", help="Keep the whole memory out of Git.")]
HooksOption = Annotated[
    bool,
    typer.Option("--hooks", help="No blocks in files: Claude Code and Codex get the memory by a hook."),
]
BlocksOption = Annotated[bool, typer.Option("--blocks", help="Blocks in files again, no hooks.")]
McpOption = Annotated[
    bool | None,
    typer.Option(
        "--mcp/--no-mcp",
        help="Give clients our tools by MCP, or don't; kept with the project, on at first.",
        show_default=False,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("init", panel=_PANEL)(init)
    verbs.verb("plan", panel=_PANEL)(plan)
    verbs.verb("eject", panel=_PANEL)(eject)


def init(
    *,
    yes: YesOption = False,
    local: LocalOption = False,
    private: Annotated[
        bool, typer.Option("--private", help="Keep memories that are taken over out of Git.")
    ] = False,
    hooks: HooksOption = False,
    blocks: BlocksOption = False,
    mcp: McpOption = None,
    dry_run: DryRunOption = False,
    project: ProjectOption = None,
) -> Result:
    """Set a project up: show what would be done, ask, do it."""
    settings = load_settings()
    delivery = _delivery(hooks=hooks, blocks=blocks)
    described = _describe(project, settings, local=local, delivery=delivery, mcp=mcp)
    would = preview.preview_project(described, settings)
    if dry_run:
        return Result("init", data=preview_json(would), view=(preview_text(would),), messages=_odd(settings))
    is_told = not yes and can_ask()
    if is_told:
        tell(preview_text(would))
    known = notices_messages(would.notices)
    consent(f"Set up {described.root}?", yes=yes)
    if would.becomes_shared and not (yes or local or private):
        count = counted(len(would.becomes_shared), "fact")
        private = agree(f"Keep what would become shared ({count}) out of Git for now?")
    done = setup.init(described, settings, keep_private=private)
    return Result(
        "init",
        data={
            "project": {
                "id": described.id,
                "root": str(described.root),
                "mode": described.mode,
                "delivery": described.delivery,
                "mcp": described.mcp,
            },
            "steps": preview_json(would)["steps"],
            "adopted": done.adopted,
            "imported": dict(done.imported),
            "left": [{"path": path, "reason": reason} for path, reason in done.left],
            "report": report_json(done.report),
        },
        view=(_init_text(done, () if is_told else would.steps),),
        messages=(
            *_odd(settings),
            *(warning(f"{path} isn't taken over: {reason}. It is kept.") for path, reason in done.left),
            *(told for told in report_messages(done.report) if not (is_told and told in known)),
            *_service_hint("Next, start the service: `agent-bridge service install`, or `agent-bridge up`."),
        ),
        exit_code=_exit_code([done.report]),
    )


def plan(
    *,
    local: LocalOption = False,
    hooks: HooksOption = False,
    blocks: BlocksOption = False,
    mcp: McpOption = None,
    project: ProjectOption = None,
) -> Result:
    """Show what would be done, as a diff. Nothing is written."""
    settings = load_settings()
    delivery = _delivery(hooks=hooks, blocks=blocks)
    described = _describe(project, settings, local=local, delivery=delivery, mcp=mcp)
    would = preview.preview_project(described, settings)
    return Result("plan", data=preview_json(would), view=(preview_text(would),), messages=_odd(settings))


def eject(
    *,
    yes: YesOption = False,
    every: Annotated[bool, typer.Option("--all", help="Take out all projects.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove our own state too; the memory stays.")
    ] = False,
    dry_run: DryRunOption = False,
    project: ProjectOption = None,
) -> Result:
    """Undo what `init` and the service changed here; facts stay."""
    settings = load_settings()
    leaving = projects.load_projects() if every else [_leaving(project)]
    changed = would_undo(leaving)
    roots = ", ".join(str(one.root) for one in leaving)
    if not leaving:
        return Result("eject", data={"would_undo": []}, view=("No project is set up; nothing to undo.",))
    if dry_run:
        listing = "\n  ".join([f"Would take out {roots} and undo what was done to:", *changed])
        return Result("eject", data={"would_undo": list(changed)}, view=(listing,))
    if not yes and can_ask():
        tell("\n  ".join(["This undoes what was done to:", *changed]))
    consent(f"Take out {roots}?", yes=yes)
    undone: list[dict[str, Json]] = []
    left: list[Project] = []
    notes: list[str] = []
    errors: list[AgentBridgeError] = []
    for one in leaving:
        try:
            done = setup.eject(one, settings, purge=purge)
        except AgentBridgeError as error:
            errors.append(error)
            continue
        left.append(one)
        undone += [{"path": item.path, "outcome": item.outcome, "note": item.note} for item in done.undone]
        notes += done.notes
    refused = [item for item in undone if item["outcome"] == "refused"]
    return Result(
        "eject",
        data={"undone": undone},
        view=("\n".join(_undone_line(item) for item in undone),) if undone else (),
        messages=(*(info(note) for note in notes), *_what_is_left(left, refused)),
        errors=tuple(error.as_dict() for error in errors),
        exit_code=EXIT_LEFT_UNDONE if refused or errors else EXIT_DONE,
    )


def _leaving(directory: Path | None) -> Project:
    """The project to take out; its directory may be gone."""
    if directory is not None and not directory.exists():
        root = Path(os.path.abspath(directory.expanduser()))  # noqa: PTH100 - there is nothing to resolve
        known = [one for one in projects.load_projects() if one.root == root]
        if known:
            return known[0]
    return setup.listed(start_directory(directory))


def _describe(
    directory: Path | None, settings: Settings, *, local: bool, delivery: Delivery | None, mcp: bool | None
) -> Project:
    return setup.describe(
        start_directory(directory),
        mode="local" if local else None,
        worktrees=settings.worktrees,
        delivery=delivery,
        mcp=mcp,
    )


def _delivery(*, hooks: bool, blocks: bool) -> Delivery | None:
    if hooks and blocks:
        raise UsageError("--hooks and --blocks exclude each other.")
    return "hooks" if hooks else "blocks" if blocks else None


def _exit_code(reports: list[Report]) -> int:
    return EXIT_LEFT_UNDONE if any(map(is_undone, reports)) else EXIT_DONE


def _init_text(done: setup.SetUp, steps: Sequence[preview.Step]) -> str:
    lines = [f"{done.project.root} is set up: {counted(done.report.facts, 'fact')}."]
    lines += [f"  {line}" for line in steps_in_words(steps)]
    if done.adopted:
        lines.append(f"  taken over from Claude Code's directory: {counted(done.adopted, 'memory')}")
    lines += [f"  from Codex's memories, {what}: {count}" for what, count in done.imported.items() if count]
    return "\n".join(lines)


def _undone_line(item: dict[str, Json]) -> str:
    note = f" ({item['note']})" if item["note"] else ""
    return f"{item['outcome']}: {item['path']}{note}"


def _what_is_left(leaving: list[Project], refused: list[dict[str, Json]]) -> tuple[Message, ...]:
    if refused:
        return (warning("What was refused is left as it is; look at it and run `agent-bridge eject` again."),)
    kept = [info(f"The memory stays in {one.store}") for one in leaving if one.store.is_dir()]
    return tuple(kept)


def _odd(settings: Settings) -> tuple[Message, ...]:
    return tuple(warning(text) for text in settings.warnings)


def _service_hint(text: str) -> tuple[Message, ...]:
    return () if service_is_running() else (info(text),)
