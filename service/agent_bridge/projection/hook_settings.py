"""The settings by which hooks run: kept in line, and taken back when a project wants blocks again.

Those in a project are in its own ledger. Those of the user serve all projects: they are in the user's ledger
and go when the last project with hooks goes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence

from agent_bridge import files, paths
from agent_bridge.errors import AgentBridgeError, LockTimeoutError
from agent_bridge.harnesses import hook_command
from agent_bridge.harnesses.base import KeyEdit, Notice, by_path
from agent_bridge.projection import apply, undo
from agent_bridge.projection.hooked import Hooked, own_edits, user_edits
from agent_bridge.projection.ledger import KeyRecord, Ledger
from agent_bridge.projection.on_record import edits_on_record
from agent_bridge.projects import Project, load_projects


def withdraw_stale(project: Project, own: Ledger, user: Ledger, all_hooked: Iterable[Hooked]) -> bool:
    """Take back hooks of ours that aren't wanted as they are; True when something was. Both locks are held.

    Raises AgentBridgeError.
    """
    stale = [(own, edit) for edit in _stale_own(project, own, all_hooked)]
    stale += [(user, edit) for edit in _stale_of_user(project, user, all_hooked)]
    for ledger, edit in stale:
        undo.undo_keys(ledger, edit.path, [edit])
    return bool(stale)


def stale(project: Project, own: Ledger, user: Ledger, all_hooked: Iterable[Hooked]) -> list[KeyEdit]:
    """What `withdraw_stale` would take back."""
    return [*_stale_own(project, own, all_hooked), *_stale_of_user(project, user, all_hooked)]


def withdraw_users(user: Ledger, project: Project) -> list[undo.Undone]:
    """Take the user's hooks back when no project but the leaving one has any. The user's lock is held."""
    return undo.withdraw(user, leaving(user, project))


def leaving(user: Ledger, project: Project) -> Sequence[KeyEdit]:
    """The user's hooks that go with this project: none while another has any."""
    return () if _others(project) else _recorded(user)


def keep(
    project: Project,
    own: Ledger,
    all_hooked: Sequence[Hooked],
    look_again: Callable[[], Sequence[Hooked]],
) -> list[Notice]:
    """Set hooks again that need it although `init` did so once; what to tell. The project's lock is held.

    They need it where they were never recorded, where their program is gone and another is there, and where
    another hook has come before ours, so that the trust is needed at another key. What a person has taken
    out is the part of `housekeeping.check_keys`. `look_again` reads the settings afresh.
    """
    try:
        mine, users = own_edits(project, all_hooked), user_edits(project, all_hooked)
        user = Ledger(paths.user_state())
        needing = [ledger for ledger, edits in ((own, mine), (user, users)) if _need_setting(ledger, edits)]
        if not needing:
            return []
        are_new = not any(map(_recorded, needing))
        with files.locked(paths.user_state() / "lock", timeout=0, purpose="hooks"):
            fresh = look_again() if withdraw_stale(project, own, user, all_hooked) else all_hooked
            set_edits(own, own_edits(project, fresh))
            set_edits(user, user_edits(project, fresh))
    except LockTimeoutError:
        return []  # its holder may be waiting for the project's lock; the next pass looks again
    except AgentBridgeError as error:
        return [Notice("warning", error.code, error.sentence())]
    if are_new:
        return []  # what `init` has shown comes true
    places = ", ".join(sorted({str(edit.path) for edit in (*mine, *users)}))
    return [Notice("info", "hooks-set", f"The hooks that bring the memory were set again: {places}.")]


def set_edits(ledger: Ledger, edits: Iterable[KeyEdit]) -> None:
    """Set keys file by file. Raises AgentBridgeError."""
    for path, group in by_path(edits).items():
        apply.edit_keys(ledger, path, group)


def _stale_own(project: Project, own: Ledger, all_hooked: Iterable[Hooked]) -> list[KeyEdit]:
    wanted = own_edits(project, all_hooked)
    return [edit for edit in _recorded(own) if not _is_among(edit, wanted)]


def _stale_of_user(project: Project, user: Ledger, all_hooked: Iterable[Hooked]) -> list[KeyEdit]:
    """Of the files that this project's hooks are in; of all where no project has any more."""
    wanted = user_edits(project, all_hooked)
    files_of_ours = {edit.path for edit in wanted}
    leaving = not wanted and project.delivery != "hooks" and not _others(project)
    return [
        edit
        for edit in _recorded(user)
        if (leaving or edit.path in files_of_ours) and not _is_among(edit, wanted)
    ]


def _others(project: Project) -> bool:
    return any(one.delivery == "hooks" for one in load_projects() if one.id != project.id)


def _recorded(ledger: Ledger) -> list[KeyEdit]:
    """The hooks of ours on record, and their trust."""
    return edits_on_record(ledger, _is_hook)


def _is_hook(record: KeyRecord) -> bool:
    if record.element:
        return bool(hook_command.program_in(json.loads(record.ours)))
    return record.key[:2] == ("hooks", "state")


def _is_among(edit: KeyEdit, wanted: Iterable[KeyEdit]) -> bool:
    return any((edit.path, edit.key, edit.value) == (one.path, one.key, one.value) for one in wanted)


def _need_setting(ledger: Ledger, edits: Sequence[KeyEdit]) -> bool:
    known = _recorded(ledger)
    missing = [edit for edit in edits if not _in_force(edit)]
    return any(
        _may_be_added(edit, known) if edit.element else _has_moved(edit, edits, known) for edit in missing
    )


def _may_be_added(edit: KeyEdit, known: Iterable[KeyEdit]) -> bool:
    former = [one for one in known if one.element and one.path == edit.path and one.key == edit.key]
    programs = [hook_command.program_in(one.value) for one in former]
    return not any(os.access(program, os.X_OK) for program in programs) and not _is_among(edit, former)


def _has_moved(edit: KeyEdit, edits: Iterable[KeyEdit], known: Iterable[KeyEdit]) -> bool:
    stands = all(_in_force(one) for one in edits if one.element)
    return stands and not any(one.path == edit.path and one.key == edit.key for one in known)


def _in_force(edit: KeyEdit) -> bool:
    data = files.read_image(edit.path).data
    if edit.element:
        return apply.has_element(edit.format, data, edit.key, edit.value)
    return apply.get_key(edit.format, data, edit.key) == edit.value
