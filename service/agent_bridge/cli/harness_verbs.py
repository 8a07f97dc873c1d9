"""`harnesses`: which agent programs are known, which are in use here, and how memory reaches each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.result import Json, Message, Result, Table, info, warning
from agent_bridge.cli.where import ProjectOption, start_directory
from agent_bridge.config import Settings, load_settings
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import Harness, Notice, Site
from agent_bridge.harnesses.entry_points import row_of
from agent_bridge.harnesses.guarded import Broken
from agent_bridge.harnesses.observe import observe_user
from agent_bridge.harnesses.row import Row, way
from agent_bridge.harnesses.row_places import exists_any
from agent_bridge.projection import setup
from agent_bridge.projection.survey import survey_project
from agent_bridge.projection.targets import Layout
from agent_bridge.projects import Project

_PANEL = "Set-up"
_TOLD = ("row-double", "row-hides", "row-cut", "row-setting", "row-remote", "row-unserved")


class Known(NamedTuple):
    """What is known of a harness that has a module of its own: the way in words, the source and its date."""

    way: str
    source: str
    as_of: str


_OURS = {
    "claude-code": Known(
        "its memory directory; AGENTS.md or CLAUDE.md", "the program, 2.1.332", "2026-11-29"
    ),
    "codex": Known("AGENTS.md", "the program, 0.171.0", "2026-11-29"),
    "opencode": Known("AGENTS.md; its plugin", "the program, 1.18.33", "2026-11-29"),
    "gemini": Known("GEMINI.md, which imports AGENTS.md", "the program, 0.61.0", "2026-11-29"),
    "antigravity": Known("AGENTS.md", "its language server, as recorded", "2026-11-29"),
}


def register(verbs: Verbs) -> None:
    """Add the command of this module."""
    verbs.verb("harnesses", panel=_PANEL)(harnesses)


def harnesses(*, project: ProjectOption = None) -> Result:
    """List the agent programs that are known, and how memory reaches each of them here."""
    settings = load_settings()
    described, layout, main = _looked(start_directory(project), settings)
    listed = [harness for harness in all_harnesses() if not isinstance(harness, Broken)]
    found = [_described(harness, described, main, layout) for harness in listed]
    root = None if described is None else str(described.root)
    return Result(
        "harnesses",
        data={"project": root, "harnesses": found},
        view=(_table(found),),
        messages=(*_odd(settings), *_messages(main)),
    )


def _looked(start: Path, settings: Settings) -> tuple[Project | None, Layout, Site]:
    """The project, the files that carry its memory, and what was seen of it; without one, the user's own."""
    try:
        described = setup.describe(start)
    except RefusedError:
        return None, Layout((), ()), observe_user(dict(os.environ))
    survey = survey_project(described, settings)
    return described, survey.layout, survey.sites[0]


def _described(harness: Harness, project: Project | None, main: Site, layout: Layout) -> dict[str, Json]:
    row = row_of(harness)
    known = _known(harness, row)
    root = main.checkout
    markers = row.markers if row is not None and project is not None else ()
    carriers = [target.path for target in layout.targets if harness.name in target.readers]
    files = sorted(path.relative_to(root).as_posix() for path in carriers if path.is_relative_to(root))
    return {
        "name": harness.name,
        "title": harness.title,
        "in_use": harness.name in main.used,
        "asked_for": project is not None and harness.name in project.requested,
        "files_here": exists_any(root / marker for marker in markers),
        "reached_by": list(files) if harness.name in main.used else [],
        "way": known.way,
        "source": known.source,
        "as_of": known.as_of,
        "certain": row is None or row.certain,
        "doubt": "" if row is None else row.doubt,
    }


def _known(harness: Harness, row: Row | None) -> Known:
    if row is not None:
        return Known(way(row), row.source, row.as_of)
    return _OURS.get(harness.name, Known("as its own code says", "another distribution", ""))


def _table(found: list[dict[str, Json]]) -> Table:
    rows = [
        (
            str(one["name"]),
            str(one["title"]),
            _use(one),
            _by(one),
            str(one["source"]),
            str(one["as_of"]) + ("" if one["certain"] else " ?"),
        )
        for one in sorted(found, key=lambda one: not one["in_use"])
    ]
    columns = ("name", "program", "in use", "memory reaches it by", "known from", "as of")
    return Table(columns, tuple(rows), (0, 2, 3, 4, 5))


def _by(one: dict[str, Json]) -> str:
    files = one["reached_by"]
    return ", ".join(map(str, files)) if isinstance(files, list) and files else f"({one['way']})"


def _use(one: dict[str, Json]) -> str:
    if one["asked_for"]:
        return "asked for"
    if one["in_use"]:
        return "yes"
    return "no, but its files are here" if one["files_here"] else "no"


def _messages(main: Site) -> tuple[Message, ...]:
    found: dict[Notice, None] = {}
    for harness in all_harnesses():
        if harness.name in main.used or isinstance(harness, Broken):
            found |= dict.fromkeys(harness.notices(main))
    told = [notice for notice in found if notice.code in (*_TOLD, "harness-broken")]
    return tuple((warning if notice.level == "warning" else info)(notice.text) for notice in told)


def _odd(settings: Settings) -> tuple[Message, ...]:
    return tuple(warning(text) for text in settings.warnings)
