"""Facts saved into a worktree's own `.memory/`: taken over once, and nothing is written there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError, DuplicateError
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.fact import MAX_BYTES, EmptyFact, FactProblem, parse_fact
from agent_bridge.memory.store import Store
from agent_bridge.projection import judged
from agent_bridge.projection.ledger import digest
from agent_bridge.projection.survey import Survey
from agent_bridge.projects import STORE_NAME, Project

_INDEX = "MEMORY.md"


def adopt_from_worktrees(project: Project, store: Store, survey: Survey) -> list[Notice]:
    """Take over what is new in the worktrees' own stores and not committed: that comes by merge.

    What was taken over once is remembered by its bytes, so that deleting the fact is respected.
    """
    notices: list[Notice] = []
    memory = project.state / "worktree-facts.json"
    seen = _remembered(memory)
    before = len(seen)
    for site in survey.sites[1:]:
        place = site.checkout / STORE_NAME
        checkout = survey.checkouts.get(site.checkout)
        if checkout is None or not place.is_dir() or place.is_symlink():
            continue
        committed = git.tracked_below(checkout, place)
        for path in _facts(place):
            if path not in committed:
                notices += _adopt(store, place, path, seen)
    if len(seen) != before:
        files.write_own(memory, json.dumps(sorted(seen)).encode())
    return notices


def _adopt(store: Store, place: Path, path: Path, seen: set[str]) -> list[Notice]:
    try:
        data = files.read_image(path, within=place, limit=MAX_BYTES).data
        known = digest(data)
        if known in seen or not data.strip():
            return []
        if judged.is_rejected(store.state, parse_fact(path.name, data).body):
            seen.add(known)  # forgotten, or rejected in the review: a person adds it, or nobody
            return []
        # Another name than in the worktree: should the file be committed there, a merge brings it under that.
        name = f"{path.relative_to(place).as_posix().removesuffix('.md')}-{known[:4]}.md"
        fact = store.adopt(data, name, "worktree").fact
    except (DuplicateError, EmptyFact):
        seen.add(known)
        return []
    except (FactProblem, AgentBridgeError) as problem:
        return [Notice("warning", "not-adopted", f"{path} isn't taken over: {problem}", path)]
    seen.add(known)
    return [Notice("info", "adopted", f"{path} was taken over as {fact.id}.", path)]


def _facts(place: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(place):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        for name in sorted(names):
            path = Path(base, name)
            if name.endswith(".md") and not name.startswith(".") and name != _INDEX:
                try:
                    if stat.S_ISREG(path.lstat().st_mode):
                        yield path
                except OSError:  # gone meanwhile
                    continue


def _remembered(memory: Path) -> set[str]:
    try:
        found = json.loads(memory.read_bytes())
        return {text for text in found if isinstance(text, str)}
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        # Damaged: at worst a deleted fact of a worktree comes once more.
        return set()
