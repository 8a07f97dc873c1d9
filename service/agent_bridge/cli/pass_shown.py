"""How a preview and the report of a pass look: text for people, objects for programs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from agent_bridge.cli.notices_shown import gathered
from agent_bridge.cli.result import Json, Message, counted, info, warning
from agent_bridge.daemon.status import plain
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection.engine import Report
from agent_bridge.projection.preview import Preview, Step, reader_titles
from agent_bridge.projection.targets import Target

_NOT_MADE = "not made"
_WORTH_REPEATING = 3
"""Lines: a change of no more is shown for each file that gets it."""
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
    parts += _steps_text(would.steps)
    if not would.empty:
        parts += _section("These become shared with everybody who has the repository:", would.becomes_shared)
        parts += _section("These stay private:", would.stays_private)
    counts = would.imports
    if any(counts.values()):
        parts.append(
            f"From Codex's memories: {counts.get('project', 0)} for this project, {counts.get('global', 0)} "
            f"for all projects, {counts.get('held', 0)} held for other projects until their `init`."
        )
        parts += [f"  {directory}: {count}" for directory, count in would.held.items()]
    parts += [f"{told.level}: {told.text}" for told in notices_messages(would.notices)]
    return "\n".join(parts)


def steps_in_words(steps: Iterable[Step]) -> list[str]:
    """The steps without their diffs, a line each; what happens to several files in the same words is one."""
    places: dict[str, list[Path]] = {}
    for step in steps:
        places.setdefault(step.text, []).append(step.path)
    return [f"{', '.join(map(str, found))}: {text}" for text, found in places.items()]


def report_json(report: Report) -> dict[str, Json]:
    """The report's stable fields."""
    return cast(dict[str, Json], plain(report))


def targets_json(targets: Iterable[Target], report: Report) -> list[Json]:
    """The files that carry the memory: who reads the facts there, whom it serves, and what became of it.

    That is `wrote`, `in line`, `waits`, `refused`, or `not made` where there is nothing to say yet.
    """
    return [
        {
            "path": str(target.path),
            "readers": list(target.readers),
            "serves": list(target.serves),
            "state": _state(target, report),
        }
        for target in targets
    ]


def targets_text(targets: Iterable[Target], report: Report) -> list[str]:
    """The same, a line each, without files that nothing has been put into yet."""
    states = [(one, _state(one, report)) for one in targets]
    made = [(one, state) for one, state in states if state != _NOT_MADE]
    return [f"{state}: {one.path} ({reader_titles(one.serves)})" for one, state in made]


def is_undone(report: Report) -> bool:
    """Whether a file waits for Git, or for a person who has to look at it."""
    return bool(report.waiting) or bool(_refused(report))


def hindrances(report: Report) -> tuple[Message, ...]:
    """Why a change hasn't reached every file, after a pass."""
    messages = [warning(f"{report.waiting}; it is done when Git is through")] if report.waiting else []
    messages += notices_messages(notice for notice in report.notices if notice.code in _REFUSALS)
    return (*messages, *_no_room(report))


def report_messages(report: Report) -> tuple[Message, ...]:
    """What a person should know after a pass."""
    messages = [warning(f"{report.waiting}; it is done when Git is through")] if report.waiting else []
    messages += [warning(f"{one.path}: {one.reason}. {one.remedy}") for one in report.problems]
    messages += notices_messages(report.notices)
    messages += _no_room(report)
    if report.candidates:
        messages.append(info(f"{counted(report.candidates, 'text')} to look at: `agent-bridge review`"))
    return tuple(messages)


def notices_messages(notices: Iterable[Notice]) -> list[Message]:
    """What a person should know, each text once with its places."""
    found = gathered((one.level, one.text, str(one.path or "")) for one in notices)
    return [Message(level, text) for level, text in found]


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
    if report.waiting and target.tracked:
        return "waits"
    return "in line" if os.path.lexists(target.path) else _NOT_MADE


def _refused(report: Report) -> set[Path | None]:
    return {notice.path for notice in report.notices if notice.code in _REFUSALS}


def _steps_text(steps: Iterable[Step]) -> list[str]:
    """The steps with their diffs. A change that another file gets too, as the block, is shown once."""
    parts: list[str] = []
    shown: dict[tuple[str, ...], Path] = {}
    plain: list[Step] = []

    def flush() -> None:
        parts.extend(f"- {line}" for line in steps_in_words(plain))
        plain.clear()

    for step in steps:
        if not step.diff:
            plain.append(step)
            continue
        flush()
        parts.append(f"- {step.path}: {step.text}")
        lines = step.diff.splitlines()
        change = tuple(line for line in lines[2:] if line[:1] in ("+", "-"))
        if change in shown and len(change) > _WORTH_REPEATING:
            parts.append(f"    the same {len(change)} lines as in {shown[change]}")
            continue
        shown.setdefault(change, step.path)
        parts += [f"    {line}" for line in lines]
    flush()
    return parts


def _section(heading: str, lines: tuple[str, ...]) -> list[str]:
    return [heading, *(f"  {line}" for line in lines)] if lines else []
