"""Files that carried the memory once and don't any more: which of them still hold our block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agent_bridge import git
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses.base import NO_LIMIT, Scope, Site
from agent_bridge.projection.ledger import Kind, Ledger
from agent_bridge.projection.survey import Survey
from agent_bridge.projection.targets import Target


def former_carriers(ledger: Ledger, survey: Survey) -> list[Target]:
    """The files with a record of a block that no harness reads by any carrier now, as targets to retire.

    A file that is gone keeps its record: it may come back with its block. One below a checkout that isn't
    surveyed, or that has become a link out of it, is left to `eject`.
    """
    wanted = {target.real for target in survey.layout.targets}
    former = []
    for entry in ledger.entries():
        path = Path(entry.path)
        if entry.kind not in (Kind.BLOCK, Kind.OWN) or not _is_there(path):
            continue
        real = Path(os.path.realpath(path))
        site = _site_of(real, survey.sites)
        if real not in wanted and site is not None:
            former.append(_target(path, real, site, survey, header=entry.header))
    return former


def _is_there(path: Path) -> bool:
    """Whether it is a file; one that can't be looked at for lack of rights, say, waits as if it were gone."""
    try:
        return path.is_file()
    except OSError:
        return False


def _site_of(real: Path, sites: Iterable[Site]) -> Site | None:
    """Where a file lies; a user's own files lie in no checkout, and any place is right for them."""
    nearest = [site for site in sites if site.project is None or real.is_relative_to(site.checkout)]
    return max(nearest, key=lambda site: len(site.checkout.parts), default=None)


def _target(path: Path, real: Path, site: Site, survey: Survey, *, header: str) -> Target:
    checkout = None if site.project is None else survey.checkouts.get(site.checkout)
    return Target(
        path=path,
        real=real,
        scope=Scope.GLOBAL if site.project is None else Scope.PROJECT,
        readers=(),
        budget=NO_LIMIT,
        checkout=None if checkout is None else checkout.root,
        tracked=checkout is not None and _is_tracked(checkout, real),
        create=False,
        local=False,
        own=bool(header),
        header=header,
        why="it carries no memory any more",
        retired=True,
    )


def _is_tracked(checkout: git.Checkout, real: Path) -> bool:
    try:
        return real in git.tracked(checkout, [real])
    except AgentBridgeError:
        return True  # then it waits whenever Git is at work
