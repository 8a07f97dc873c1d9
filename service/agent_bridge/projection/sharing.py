"""Making a fact private or shared, Git's side included."""

from __future__ import annotations

from pathlib import Path

from agent_bridge import git
from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project


def tracked_path(project: Project, fact: Fact) -> Path | None:
    """The fact's file where Git tracks it; None where it doesn't, or there is no Git."""
    checkout = git.find_checkout(project.root)
    path = project.store / fact.path
    return path if checkout is not None and path in git.tracked(checkout, [path]) else None


def share_fact(project: Project, settings: Settings, key: str) -> Fact:
    """Let a fact travel with Git and stand in tracked files; both follow at once."""
    engine = Engine(project, settings)
    fact = engine.store.share(key)
    engine.reconcile()
    return fact


def unshare_fact(project: Project, settings: Settings, key: str, *, untrack: bool) -> Fact:
    """Make a fact private: out of every block, and with `untrack` out of Git's index too.

    RefusedError where Git tracks it and `untrack` wasn't given, or while Git is at work. History keeps what
    was committed: the caller says so.
    """
    engine = Engine(project, settings)
    fact = engine.store.find(key)
    path = tracked_path(project, fact)
    checkout = git.find_checkout(project.root)
    if path is not None and checkout is not None:
        busy = git.activity(checkout)
        if busy:
            raise RefusedError(f"Git is at work here ({busy})", path=project.root, remedy="Finish it first.")
        if not untrack:
            raise RefusedError(
                "Git tracks this fact", path=path, remedy="Agree to untrack it; the history keeps its text."
            )
    fact = engine.store.unshare(key)
    # Excluded before it is untracked, so that no `git add` in between takes it back.
    engine.reconcile()
    if path is not None and checkout is not None:
        git.untrack(checkout, [path])
        engine.reconcile()
    return fact
