"""`sync`: bring the agents' files in line now, ask for further ones, and bring texts back from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.carry import carry_unless_served
from agent_bridge.cli.findings_shown import findings_counts, findings_json, findings_text
from agent_bridge.cli.pass_shown import is_undone, report_json, report_messages, targets_json, targets_text
from agent_bridge.cli.result import Json, Message, Result, info, warning
from agent_bridge.cli.where import ProjectOption, global_place, project_place, start_directory
from agent_bridge.config import Settings, load_settings
from agent_bridge.errors import EXIT_DONE, EXIT_LEFT_UNDONE, AgentBridgeError, UsageError
from agent_bridge.harnesses.base import Harness, Notice
from agent_bridge.projection import requests, reverse, setup
from agent_bridge.projection.engine import Engine, Report, global_engine
from agent_bridge.projection.sorting import Outcome
from agent_bridge.projects import Project

_PANEL = "Set-up"

ToOption = Annotated[
    list[str],
    typer.Option(
        "--to",
        metavar="AGENT",
        help="Give this agent its own extra file too, and show what it reads; or all.",
    ),
]
NotToOption = Annotated[
    list[str], typer.Option("--not-to", metavar="AGENT", help="Take the extra file of this agent away again.")
]
FromOption = Annotated[
    list[str],
    typer.Option(
        "--from",
        metavar="AGENT",
        help="Show which texts in this agent's files aren't remembered; or all. Only --apply writes.",
    ),
]
ApplyOption = Annotated[
    bool, typer.Option("--apply", help="With --from: remember the new ones, keep what is alike for review.")
]
PrivateOption = Annotated[
    bool, typer.Option("--private", help="With --apply: keep what is remembered out of Git.")
]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("sync", panel=_PANEL)(sync)


def sync(
    *,
    to: ToOption = [],  # noqa: B006
    not_to: NotToOption = [],  # noqa: B006
    back_from: FromOption = [],  # noqa: B006
    apply: ApplyOption = False,
    private: PrivateOption = False,
    project: ProjectOption = None,
) -> Result:
    """Bring the agents' files in line with the memory, now; or texts of theirs back, by --from."""
    settings = load_settings()
    if back_from:
        if to or not_to:
            raise UsageError("--from goes alone: first bring texts back, then write files.")
        return _brought_back(project, settings, _named(back_from), apply=apply, private=private)
    if apply or private:
        raise UsageError("--apply and --private belong to --from.", remedy="Say from which agent.")
    wanted, unwanted = _named(to), _named(not_to)
    both = sorted({one.name for one in wanted} & {one.name for one in unwanted})
    if both:
        raise UsageError(f"{both[0]} is both asked for and taken back.")
    listed = setup.listed(start_directory(project))
    former = _carrying(listed, settings) if unwanted else set()
    listed = requests.request(listed, wanted, settings)
    listed = requests.withdraw(listed, unwanted, settings)
    return _brought_in_line(listed, settings, {one.name for one in wanted}, former)


def _brought_back(
    directory: Path | None,
    settings: Settings,
    harnesses: tuple[Harness, ...],
    *,
    apply: bool,
    private: bool,
) -> Result:
    """The texts of these harnesses, sorted; with `apply` the new ones are remembered."""
    listed = setup.listed(start_directory(directory))
    if apply:
        found = reverse.bring_back(listed, harnesses, settings, now=datetime.now(UTC), private=private)
    else:
        found = reverse.look(listed, harnesses, settings)
    counts = findings_counts(found)
    messages: list[Message] = [warning(text) for text in settings.warnings]
    if apply and counts["conflict"]:
        messages.append(info("What is alike waits for you: `agent-bridge review`."))
    added = {one.item.directory is None for one in found if one.outcome is Outcome.NEW} if apply else set()
    for is_global in sorted(added):
        messages += carry_unless_served(global_place() if is_global else project_place(listed.root))
    return Result(
        "sync",
        data={
            "from": [one.name for one in harnesses],
            "applied": apply,
            "counts": counts,
            "findings": findings_json(listed, found),
        },
        view=(findings_text(listed, found, applied=apply),),
        messages=tuple(messages),
        exit_code=EXIT_LEFT_UNDONE if counts["conflict"] or counts["refused"] else EXIT_DONE,
    )


def _carrying(listed: Project, settings: Settings) -> set[Path]:
    """The project's files that carry the memory now."""
    targets = Engine(listed, settings).survey().layout.targets
    return {target.path for target in targets if os.path.lexists(target.path)}


def _brought_in_line(listed: Project, settings: Settings, shown: set[str], former: set[Path]) -> Result:
    """All files brought in line; those for a harness of `shown` are listed, all where it is empty.

    `former` carried the memory until now: what is gone of them, by us or by the service, is told.
    """
    reports: list[Report] = []
    lines: list[str] = []
    data: list[Json] = []
    for engine in (Engine(listed, settings), global_engine(settings)):
        report = _passed(engine)
        targets = [
            target
            for target in engine.survey().layout.targets
            if not shown or shown.intersection((*target.readers, *target.asked_by))
        ]
        reports.append(report)
        lines += targets_text(targets, report)
        data.append({**report_json(report), "targets": targets_json(targets, report)})
    removed = sorted(str(path) for path in former if not os.path.lexists(path))
    lines += [f"removed: {path}" for path in removed]
    return Result(
        "sync",
        data={"reports": data, "requested": list(listed.requested), "removed": removed},
        view=("\n".join(lines) or "No file carries this memory yet.",),
        messages=(
            *(warning(text) for text in settings.warnings),
            *_seen_otherwise(listed),
            *(message for report in reports for message in report_messages(report)),
        ),
        exit_code=EXIT_LEFT_UNDONE if any(map(is_undone, reports)) else EXIT_DONE,
    )


def _named(names: Sequence[str]) -> tuple[Harness, ...]:
    return tuple(dict.fromkeys(one for name in names for one in requests.named(name)))


def _passed(engine: Engine) -> Report:
    report = engine.reconcile()
    try:
        engine.settle()
    except AgentBridgeError as error:
        trouble = Notice("warning", error.code, error.sentence())
        report = replace(report, notices=(*report.notices, trouble))
    return report


def _seen_otherwise(project: Project) -> tuple[Message, ...]:
    """A word on variables that differ from what `init` saw: the service goes by those."""
    changed = projects.environment_changes(project)
    if not changed:
        return ()
    names = ", ".join(changed)
    told = f"{names}: not as `init` saw it. What `init` saw counts; run it again to change that."
    return (warning(told),)
