"""How a preview and the report of a pass look: text for people, objects for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from agent_bridge.cli.result import Json, Message, counted, info, warning
from agent_bridge.daemon.status import plain
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection.engine import Report
from agent_bridge.projection.preview import Preview, reader_titles
from agent_bridge.projection.targets import Target

_REFUSALS = {"markers", "name-taken", "refused", "conflict"}
"""Notices about a file that a person has to look at before it can be brought in line."""


def preview_json(would: Preview) -> dict[str, Any]:
    """The preview's stable fields."""
    fields = cast(dict[str, Any], plain(would))
    fields["project"] = {"id": would.project.id, "root": str(would.project.root), "mode": would.project.mode}
    return fields


def preview_text(would: Preview) -> str:
    """What would be done, with diffs, and who would see what."""
    if would.empty:
        parts = [f"{would.project.root}: everything is as it should be."]
    else:
        parts = [f"What agent-bridge does to {would.project.root}:"]
    for step in would.steps:
        parts.append(f"- {step.path}: {step.text}")
        if step.diff:
            parts.append("\n".join(f"    {line}" for line in step.diff.splitlines()))
    parts += _section("These become shared with everybody who has the repository:", would.becomes_shared)
    parts += _section("These stay private:", would.stays_private)
    counts = would.imports
    if any(counts.values()):
        parts.append(
            f"From Codex's memories: {counts.get('project', 0)} for this project, {counts.get('global', 0)} "
            f"for all projects, {counts.get('held', 0)} held for other projects until their `init`."
        )
        parts += [f"  {directory}: {count}" for directory, count in would.held.items()]
    parts += [f"{notice.level}: {_told(notice).text}" for notice in would.notices]
    return "\n".join(parts)


def report_json(report: Report) -> dict[str, Json]:
    """The report's stable fields."""
    return cast(dict[str, Json], plain(report))


def targets_json(targets: Iterable[Target], report: Report) -> list[Json]:
    """The files that carry the memory: who reads them, and `wrote`, `in line`, `waits` or `refused`."""
    return [
        {"path": str(target.path), "readers": list(target.readers), "state": _state(target, report)}
        for target in targets
    ]


def targets_text(targets: Iterable[Target], report: Report) -> list[str]:
    """The same, a line each."""
    return [f"{_state(one, report)}: {one.path} ({reader_titles(one.readers)})" for one in targets]


def is_undone(report: Report) -> bool:
    """Whether a file waits for Git, or for a person who has to look at it."""
    return bool(report.waiting) or bool(_refused(report))


def hindrances(report: Report) -> tuple[Message, ...]:
    """Why a change hasn't reached every file, after a pass."""
    messages = [warning(f"{report.waiting}; it is done when Git is through")] if report.waiting else []
    messages += [_told(notice) for notice in report.notices if notice.code in _REFUSALS]
    return (*messages, *_no_room(report))


def report_messages(report: Report) -> tuple[Message, ...]:
    """What a person should know after a pass."""
    messages = [warning(f"{report.waiting}; it is done when Git is through")] if report.waiting else []
    messages += [warning(f"{one.path}: {one.reason}. {one.remedy}") for one in report.problems]
    messages += [_told(notice) for notice in report.notices]
    messages += _no_room(report)
    if report.candidates:
        messages.append(info(f"{counted(report.candidates, 'text')} to look at: `agent-bridge review`"))
    return tuple(messages)


def _no_room(report: Report) -> list[Message]:
    messages = []
    for path, ids in report.left_out.items():
        some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        count = counted(len(ids), "fact")
        if path.startswith("/"):
            messages.append(warning(f"{path} has no room for {count}: {some}"))
        else:  # a harness: there is no file that could bring them to it
            messages.append(warning(f"{path} gets none of {count} here, see above: {some}"))
    return messages


def _state(target: Target, report: Report) -> str:
    if target.path in report.wrote:
        return "wrote"
    if target.path in _refused(report):
        return "refused"
    return "waits" if report.waiting and target.tracked else "in line"


def _refused(report: Report) -> set[Path | None]:
    return {notice.path for notice in report.notices if notice.code in _REFUSALS}


def _told(notice: Notice) -> Message:
    place = f" ({notice.path})" if notice.path and str(notice.path) not in notice.text else ""
    return (info if notice.level == "info" else warning)(notice.text + place)


def _section(heading: str, lines: tuple[str, ...]) -> list[str]:
    return [heading, *(f"  {line}" for line in lines)] if lines else []
