"""What `eject` will change, before it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_bridge import paths
from agent_bridge.projection import hook_settings, mcp_settings, skill
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.legacy_signs import ledger_of
from agent_bridge.projects import Project, load_projects


def would_undo(leaving: Sequence[Project]) -> tuple[str, ...]:
    """The files that `eject` of one project, or of all, changes; of a skill its directory. Reads only."""
    ledgers = [ledger for one in leaving for ledger in (Ledger(one.state), ledger_of(one))]
    own = [entry.path for ledger in ledgers for entry in ledger.entries()]
    return tuple(dict.fromkeys((*own, *_of_all_projects(leaving))))


def _of_all_projects(leaving: Sequence[Project]) -> list[str]:
    """Files that serve all projects: all of them go with the last one, some with the last that needs them."""
    user = Ledger(paths.user_state())
    if {one.id for one in load_projects()} <= {one.id for one in leaving}:
        going = [Path(entry.path) for entry in user.entries()]
    else:
        edits = [
            edit
            for one in leaving
            for edit in (*hook_settings.leaving(user, one), *mcp_settings.leaving(user, one))
        ]
        going = [edit.path for edit in edits]
        going += [place for one in leaving for place in skill.leaving(user, one)]
    copies = skill.copies(user)
    return [str(next((one for one in copies if one in path.parents), path)) for path in going]
