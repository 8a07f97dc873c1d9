"""Extra files for one harness, asked for by name (`sync --to`), and taken back again."""

from __future__ import annotations

from dataclasses import replace

from agent_bridge import files, projects
from agent_bridge.config import Settings
from agent_bridge.errors import NotFoundError, UsageError
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

    The project as it is listed then; the files themselves come with the next pass. Asking again finishes
    what was interrupted. Raises NotFoundError where the project has been ejected meanwhile.
    """
    return _change(project, wanted, settings, asked=True)


def withdraw(project: Project, unwanted: tuple[Harness, ...], settings: Settings) -> Project:
    """Take that back: keys now, files with the next pass. Raises NotFoundError as `request` does."""
    return _change(project, unwanted, settings, asked=False)


def _change(project: Project, harnesses: tuple[Harness, ...], settings: Settings, *, asked: bool) -> Project:
    if not harnesses:
        return project  # a plain `sync` asks for nothing, and two looks at everything take a second
    ledger = Ledger(project.state)
    with files.locked(project.lock, timeout=settings.lock_timeout_s, purpose="sync"):
        listed = _as_listed(project)  # others may have been asked for since it was read
        more, fewer = _with(listed, harnesses), _without(listed, harnesses)
        after, other = (more, fewer) if asked else (fewer, more)
        old = survey_project(other, settings).keys
        # Named, they counted as in use; only what is found on the machine does now.
        in_use.forget(project.state, set(other.requested) - set(after.requested))
        projects.add_project(after)
        new = survey_project(after, settings).keys
        set_keys(ledger, tuple(edit for edit in new if edit not in old))
        _take_back(ledger, [edit for edit in old if edit not in new])
    return after


def _as_listed(project: Project) -> Project:
    found = next((one for one in projects.load_projects() if one.id == project.id), None)
    if found is None:
        raise NotFoundError(
            "This project isn't set up any more", path=project.root, remedy="Run `agent-bridge init` first."
        )
    return found


def _with(project: Project, harnesses: tuple[Harness, ...]) -> Project:
    names = (one.name for one in harnesses)
    return replace(project, requested=tuple(dict.fromkeys((*project.requested, *names))))


def _without(project: Project, harnesses: tuple[Harness, ...]) -> Project:
    names = {one.name for one in harnesses}
    return replace(project, requested=tuple(name for name in project.requested if name not in names))


def _take_back(ledger: Ledger, edits: list[KeyEdit]) -> None:
    for path, group in by_path(edits).items():
        undo.undo_keys(ledger, path, group)
