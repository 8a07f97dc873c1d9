"""Facts of worktrees that were projects of their own and are gone: their copies come home.

Such a project keeps copies of the facts that Git doesn't hold (`keepsakes`). Once Git has forgotten the
worktree and its directory is gone, the main checkout's store takes them over; private ones stay private.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError, DuplicateError
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.fact import MAX_BYTES, EmptyFact, FactProblem, parse_fact
from agent_bridge.memory.privacy import PrivacyRecord
from agent_bridge.memory.store import Store
from agent_bridge.projection import judged, keepsakes
from agent_bridge.projection.ledger import digest
from agent_bridge.projects import Project, load_projects


def bring_home(project: Project, store: Store, checkout: git.Checkout | None) -> list[Notice]:
    """Take over what removed worktrees of `project` have left; a copy goes once its fact is in the store."""
    if checkout is None:
        return []
    notices: list[Notice] = []
    for one in load_projects():
        if one.main == project.root and is_removed(one, checkout):
            notices += _bring(one, store)
    return notices


def is_removed(project: Project, checkout: git.Checkout) -> bool:
    """Whether a worktree's directory is gone and Git knows no worktree there: no disk will bring it back."""
    return not os.path.lexists(project.root) and project.root not in git.registered_worktrees(checkout)


def copies(project: Project) -> list[Path]:
    """The copies of facts that a project keeps, sorted."""
    place = keepsakes.place_of(project)
    return [place / name for name in sorted(keepsakes.facts_below(place))]


def _bring(worktree: Project, store: Store) -> Iterable[Notice]:
    place = keepsakes.place_of(worktree)
    private = PrivacyRecord(worktree.state).current()
    for copy in copies(worktree):
        name = copy.relative_to(place).as_posix()
        try:
            data = files.read_image(copy, within=place, limit=MAX_BYTES).data
            fact = parse_fact(name, data)
            if judged.is_rejected(store.state, fact.body):
                continue  # forgotten, or rejected in the review; the copy stays
            # Another name than in the worktree: should it be committed there, a merge brings that name.
            own = f"{name.removesuffix('.md')}-{digest(data)[:4]}.md"
            added = store.adopt(data, own, "worktree", private=fact.private or private.hold(fact)).fact
        except (DuplicateError, EmptyFact):
            copy.unlink()
            continue
        except (FactProblem, AgentBridgeError) as problem:
            text = f"A fact of the removed worktree {worktree.root} isn't taken over: {problem}"
            yield Notice("warning", "not-adopted", text, copy)
            continue
        copy.unlink()
        text = f"{worktree.root / '.memory' / name} was taken over as {added.id}: its worktree is gone."
        yield Notice("info", "adopted", text, store.root / added.path)
