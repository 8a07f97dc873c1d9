"""Gathers what `explain` needs: the project of a directory, its files, and the facts of both scopes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import git, paths, projects
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import Harness, Read, Scope, Site
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.memory import scan
from agent_bridge.memory.privacy import Judgements, PrivacyRecord
from agent_bridge.memory.snapshot import Snapshot, build
from agent_bridge.projection import hook_context
from agent_bridge.projection.explain import Explanation, Ground, Holder, Known, explain
from agent_bridge.projection.hooked import hooked
from agent_bridge.projection.targets import lay_out
from agent_bridge.projects import Project


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
    facts = (
        *_known(here.project.store, here.project.state, Scope.PROJECT),
        *_known(paths.global_store(), paths.user_state(), Scope.GLOBAL),
    )
    harnesses = tuple(named) or tuple(one for one in all_harnesses() if one.name in site.used)
    return [_explained(one, here, site, user, settings, facts) for one in harnesses]


def _explained(
    harness: Harness, here: Here, site: Site, user: Site, settings: Settings, facts: tuple[Known, ...]
) -> Explanation:
    hook = _hook(harness, here, site)
    reads = (*harness.reads(site, here.start), *([] if hook is None else [hook[0]]))
    holders = (
        *([] if hook is None else [hook[1]]),
        *_holders(harness, site, Scope.PROJECT, settings),
        *_holders(harness, user, Scope.GLOBAL, settings),
    )
    ground = Ground(
        is_set_up=here.is_set_up,
        is_below=here.start != here.checkout,
        notices=harness.notices(site),
        reals={read.path: Path(os.path.realpath(read.path)) for read in reads},
    )
    return explain(harness.name, harness.title, reads, facts, holders, ground)


def _hook(harness: Harness, here: Here, site: Site) -> tuple[Read, Holder] | None:
    """What a hook prints when a session starts, kept in a file of ours; None where there is no hook."""
    installed = hooked(here.project, (harness,), site)
    if not installed:
        return None
    path = hook_context.place(here.project.state, harness.name)
    data = path.read_bytes() if path.is_file() else b""
    settings = ", ".join(dict.fromkeys(str(edit.path) for edit in installed[0].edits))
    why = f"printed when the session starts, by the hook in {settings}"
    hidden = "" if data else "it isn't there yet"
    read = Read(path, len(data), len(data), why, hidden=hidden, text=data.decode("utf-8", "replace"))
    room = installed[0].room.utf8
    return read, Holder(path, Path(os.path.realpath(path)), Scope.PROJECT, data, room, takes_private=True)


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


def _known(place: Path, state: Path, scope: Scope) -> list[Known]:
    """The facts of a store, read without the caches and records that a `Store` writes."""
    found = _snapshot(place, PrivacyRecord(state).current())
    private = {fact.path for fact in (*found.private, *found.withheld)}
    return [Known(fact, scope, is_private=fact.path in private) for fact in found.facts]


def _snapshot(place: Path, judged: Judgements) -> Snapshot:
    read = scan.read_all(place)
    ranked = [(one.order, one.fact) for one in read if one.fact is not None and one.order is not None]
    judged = judged.with_facts(
        fact for _, fact in ranked if fact.private or fact.secrets or judged.hold(fact)
    )
    private = frozenset(fact.path for _, fact in ranked if judged.hold(fact))
    return build(ranked, (), (), private)
