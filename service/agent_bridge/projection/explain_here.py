"""Gathers what `explain` needs: the project of a directory, its files, and the facts of both scopes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import git, paths, projects
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import Harness, Scope, Site
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.memory.store import Store
from agent_bridge.projection.explain import Explanation, Ground, Holder, Known, explain
from agent_bridge.projection.targets import lay_out
from agent_bridge.projects import Project

_HOOKED = frozenset({"claude-code", "codex"})
"""Harnesses that a project's delivery by hooks is for."""


@dataclass(frozen=True, slots=True)
class Here:
    """A directory: `start` as a real path, the project it belongs to or would belong to, its checkout."""

    start: Path
    project: Project
    checkout: Path
    is_set_up: bool


def locate(directory: Path) -> Here:
    """Where a session started in `directory` would be. Raises GitError."""
    start = Path(os.path.realpath(directory))
    known = projects.find_project(start)
    root = projects.locate(start) if known is None else known.root
    project = known or Project(projects.id_for(root), root, projects.captured_environment())
    checkout = git.find_checkout(start)
    return Here(start, project, root if checkout is None else checkout.root, known is not None)


def explain_here(here: Here, settings: Settings, named: Sequence[Harness] = ()) -> list[Explanation]:
    """What each of `named` reads there; without names, each harness that is in use."""
    asked = replace(
        here.project, requested=tuple(dict.fromkeys((*here.project.requested, *(one.name for one in named))))
    )
    # Asked for, a harness is looked at also where nobody uses it; its extra files aren't.
    site = replace(observe_site(asked, here.checkout), project=here.project)
    user = observe_user(site.env)
    facts = (*_facts_of(here.project), *_facts_of_user())
    harnesses = tuple(named) or tuple(one for one in all_harnesses() if one.name in site.used)
    return [_explained(one, here, site, user, settings, facts) for one in harnesses]


def _explained(
    harness: Harness, here: Here, site: Site, user: Site, settings: Settings, facts: tuple[Known, ...]
) -> Explanation:
    holders = (
        *_holders(harness, site, Scope.PROJECT, settings),
        *_holders(harness, user, Scope.GLOBAL, settings),
    )
    reads = harness.reads(site, here.start)
    ground = Ground(
        is_set_up=here.is_set_up,
        by_hook=here.project.delivery == "hooks" and harness.name in _HOOKED,
        is_below=here.start != here.checkout,
        notices=harness.notices(site),
        reals={read.path: Path(os.path.realpath(read.path)) for read in reads},
    )
    return explain(harness.name, harness.title, reads, facts, holders, ground)


def _holders(harness: Harness, site: Site, scope: Scope, settings: Settings) -> list[Holder]:
    carriers = [carrier for carrier in harness.carriers(site, scope) if harness.name in carrier.readers]
    private = site.project is not None and site.project.mode == "local"
    layout = lay_out(((site, one) for one in carriers), budget=settings.block_budget, private_store=private)
    return [
        Holder(
            path=target.path,
            real=target.real,
            scope=scope,
            data=site.file(target.path).data,
            budget=target.budget,
            takes_private=scope is Scope.GLOBAL and not target.tracked,
        )
        for target in layout.targets
    ]


def _facts_of(project: Project) -> Iterable[Known]:
    return _known(Store(project.store, scope="project", state=project.state), Scope.PROJECT)


def _facts_of_user() -> Iterable[Known]:
    return _known(Store(paths.global_store(), scope="global", state=paths.user_state()), Scope.GLOBAL)


def _known(store: Store, scope: Scope) -> list[Known]:
    snapshot = store.scan()
    private = {fact.path for fact in (*snapshot.private, *snapshot.withheld)}
    return [Known(fact, scope, is_private=fact.path in private) for fact in snapshot.facts]
