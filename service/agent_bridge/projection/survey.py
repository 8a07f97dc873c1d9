"""One look at everything that decides a project's projections: checkouts, instruction files, settings.

This is the slow part (it asks Git and reads a few dozen files), done at start, on a change outside the
store, and by the periodic pass; a saved fact doesn't need it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_bridge import git, paths
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses, managed_block
from agent_bridge.harnesses.base import Adoption, Carrier, Harness, KeyEdit, LinkEdit, Notice, Scope, Site
from agent_bridge.harnesses.in_use import active
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.projection.hooked import Hooked, hooked, own_edits
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.legacy_signs import tell_signs
from agent_bridge.projection.mcp_settings import Wiring, wiring
from agent_bridge.projection.plan import item_texts
from agent_bridge.projection.skill import Choice, choose
from agent_bridge.projection.targets import Layout, lay_out, served
from agent_bridge.projects import ENVIRONMENT_NAMES, Project, load_projects

_RECORDED = frozenset(ENVIRONMENT_NAMES) - {"HOME"}


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen, and what follows from it.

    `sites`: the main checkout first, then its worktrees. `heard`: per harness the normalised texts that
    the global blocks give it (`plan.item_texts`). `checkout` is the main one's, None outside Git;
    `checkouts` are all of them by their root. `native_off` are user-wide keys that switch off what harnesses
    remember by themselves. `unserved` are harnesses in use that neither a file nor a hook brings the facts
    to; `hooked` are those with a hook, whose settings in the project are among `keys`; so are those of `mcp`.
    """

    sites: tuple[Site, ...]
    checkout: git.Checkout | None
    checkouts: Mapping[Path, git.Checkout]
    layout: Layout
    keys: tuple[KeyEdit, ...]
    native_off: tuple[KeyEdit, ...]
    links: tuple[LinkEdit, ...]
    adoptions: tuple[Adoption, ...]
    notices: tuple[Notice, ...]
    heard: Mapping[str, frozenset[str]]
    unserved: tuple[str, ...] = ()
    hooked: tuple[Hooked, ...] = ()
    mcp: Wiring = field(default_factory=Wiring)
    skill: Choice = field(default_factory=Choice)


def survey_project(project: Project, settings: Settings) -> Survey:
    """Look at a project: its main checkout and, where they share its store, its worktrees.

    Settings and links are for harnesses that somebody uses here; files in the project serve all of them.
    """
    checkout = git.find_checkout(project.root)
    roots = [project.root]
    if checkout is not None and project.worktrees == "shared":
        apart = {one.root for one in load_projects()} | {project.root}
        roots += [root for root in git.worktrees(checkout) if root not in apart and root.is_dir()]
    sites = tuple(observe_site(project, root) for root in roots)
    known = {root: git.find_checkout(root) for root in roots[1:]} | {project.root: checkout}
    main = sites[0]
    harnesses = active(all_harnesses(), main)
    used = tuple(harness for harness in harnesses if harness.name in main.used)
    carriers = _carriers(sites, harnesses, Scope.PROJECT)
    layout = lay_out(carriers, budget=settings.block_budget, private_store=project.mode == "local")
    by_hook = hooked(project, used, main)
    mcp = wiring(project, used, sites)
    skill = choose(project, used, main, Ledger(paths.user_state()))
    reached = {*served(layout.targets), *(one.name for one in by_hook)}
    keys = tuple(edit for site in sites for harness in used for edit in harness.key_edits(site))
    return Survey(
        sites=sites,
        checkout=checkout,
        checkouts={root: found for root, found in known.items() if found is not None},
        layout=layout,
        keys=keys + own_edits(project, by_hook) + mcp.own,
        native_off=tuple(edit for harness in used for edit in harness.disable_native_memory(main)),
        links=tuple(link for harness in used for link in harness.links(main)),
        adoptions=tuple(adoption for harness in used for adoption in harness.adoptions(main)),
        notices=_without_git(project, checkout)
        + _notices(sites, harnesses)
        + layout.notices
        + mcp.notices
        + skill.notices
        + tell_signs(project),
        heard=_heard(main, harnesses, settings),
        unserved=tuple(harness.title for harness in used if harness.name not in reached),
        hooked=by_hook,
        mcp=mcp,
        skill=skill,
    )


def survey_user(settings: Settings, env: Mapping[str, str] | None = None) -> Survey:
    """Look at the user's own places, for the global store; harnesses that nobody uses here are left out.

    Without `env`, what the last `init` saw counts: a service doesn't have its user's shell variables.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _RECORDED}
    recorded = load_projects()
    environment.update(recorded[-1].environment if env is None and recorded else env or {})
    site = observe_user(environment)
    harnesses = tuple(harness for harness in all_harnesses() if harness.name in site.used)
    layout = lay_out(
        _carriers((site,), harnesses, Scope.GLOBAL), budget=settings.block_budget, private_store=False
    )
    native = tuple(edit for harness in harnesses for edit in harness.disable_native_memory(site))
    return Survey(
        sites=(site,),
        checkout=None,
        checkouts={},
        layout=layout,
        keys=tuple(edit for harness in harnesses for edit in harness.key_edits(site)),
        native_off=native,
        links=(),
        adoptions=(),
        notices=layout.notices,
        heard={},
    )


def _without_git(project: Project, checkout: git.Checkout | None) -> tuple[Notice, ...]:
    if checkout is not None or not os.path.lexists(project.root / ".git"):
        return ()
    text = f"Nothing keeps private facts out of Git here: {git.why_no_checkout(project.root)}"
    return (Notice("warning", "no-git", text, project.root),)


def _carriers(
    sites: Iterable[Site], harnesses: Iterable[Harness], scope: Scope
) -> list[tuple[Site, Carrier]]:
    return [
        (site, replace(carrier, asked_by=harness.name))
        for site in sites
        for harness in harnesses
        for carrier in harness.carriers(site, scope)
    ]


def _notices(sites: Iterable[Site], harnesses: Iterable[Harness]) -> tuple[Notice, ...]:
    found = [notice for site in sites for harness in harnesses for notice in harness.notices(site)]
    return tuple(dict.fromkeys(found))


def _heard(site: Site, harnesses: Iterable[Harness], settings: Settings) -> Mapping[str, frozenset[str]]:
    carriers = _carriers((site,), harnesses, Scope.GLOBAL)
    targets = lay_out(carriers, budget=settings.block_budget, private_store=False).targets
    heard: dict[str, list[frozenset[str]]] = {}
    for target in targets:
        body = managed_block.block_text(site.file(target.path).data)
        items = managed_block.items(body) if body else ()
        texts = frozenset(text for item in items for text in item_texts(item))
        for reader in target.readers:
            heard.setdefault(reader, []).append(texts)
    return {reader: frozenset.intersection(*texts) for reader, texts in heard.items()}
