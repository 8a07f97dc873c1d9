"""Extra files for one harness, asked for by name (`sync --to`), and taken back again."""

from __future__ import annotations

from dataclasses import replace

from agent_bridge import files, projects
from agent_bridge.config import Settings
from agent_bridge.errors import UsageError
from agent_bridge.harnesses import all_harnesses, in_use
from agent_bridge.harnesses.base import Harness, KeyEdit, by_path
from agent_bridge.harnesses.guarded import Broken, Guarded
from agent_bridge.harnesses.row_harness import RowHarness
from agent_bridge.projection import undo
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.setup import set_keys
from agent_bridge.projection.survey import survey_project
from agent_bridge.projects import Project

ALL = "all"
_SHORT = {"claude": "claude-code"}
"""Names that people type, and those that the harnesses have."""


def named(name: str) -> tuple[Harness, ...]:
    """The harness of that name; for `all` those with code of ours (the table's need no asking).

    Raises UsageError with the names that there are.
    """
    known = tuple(one for one in all_harnesses() if not isinstance(one, Broken))
    if name == ALL:
        return tuple(one for one in known if not isinstance(one, RowHarness | Guarded))
    found = tuple(one for one in known if one.name == _SHORT.get(name, name))
    if not found:
        names = ", ".join(sorted({ALL, *_SHORT, *(one.name for one in known)}))
        raise UsageError(f"There is no harness {name!r}.", remedy=f"Known are: {names}.")
    return found


def request(project: Project, wanted: tuple[Harness, ...], settings: Settings) -> Project:
    """Ask for the extra files of these harnesses; what that needs in settings is set at once.

    The project as it is listed then; the files themselves come with the next pass.
    """
    asked = tuple(one.name for one in wanted)
    after = replace(project, requested=tuple(dict.fromkeys((*project.requested, *asked))))
    return _change(project, after, settings)


def withdraw(project: Project, unwanted: tuple[Harness, ...], settings: Settings) -> Project:
    """Take that back: keys now, files with the next pass."""
    names = {one.name for one in unwanted}
    after = replace(project, requested=tuple(name for name in project.requested if name not in names))
    return _change(project, after, settings)


def _change(before: Project, after: Project, settings: Settings) -> Project:
    if before == after:
        return before
    ledger = Ledger(before.state)
    with files.locked(before.lock, timeout=settings.lock_timeout_s, purpose="sync"):
        old = survey_project(before, settings).keys
        if set(before.requested) - set(after.requested):
            in_use.forget(before.state)
        projects.add_project(after)
        new = survey_project(after, settings).keys
        set_keys(ledger, tuple(edit for edit in new if edit not in old))
        _take_back(ledger, [edit for edit in old if edit not in new])
    return after


def _take_back(ledger: Ledger, edits: list[KeyEdit]) -> None:
    for path, group in by_path(edits).items():
        undo.undo_keys(ledger, path, group)
