"""By what a pass that looks at everything can tell that nothing has changed since the last one.

A hundred stat calls stand for the dozens of files read and the eight times that Git is asked. They see every
file that was written, replaced, made or removed; what they can't see (a rule in a nested .gitignore, a
program that was installed) waits for the next pass that looks afresh.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_bridge import git, paths
from agent_bridge.harnesses import all_harnesses
from agent_bridge.memory import scan
from agent_bridge.projection.survey import Survey
from agent_bridge.projects import STORE_NAME

Signs = tuple[object, ...]
"""Equal as long as nothing has changed."""


def signs(survey: Survey, others: Iterable[Path]) -> Signs:
    """The signs of all that a survey has seen, of other checkouts' facts, and of `others`."""
    wanted = dict.fromkeys([*_seen(survey), *map(os.fspath, others)])
    facts = [scan.walk(str(site.checkout / STORE_NAME)).found for site in survey.sites[1:]]
    return (*map(_sign, wanted), *(tuple(found.items()) for found in facts))


def _seen(survey: Survey) -> Iterator[str]:
    yield str(paths.projects_file())
    for site in survey.sites:
        yield from site.files
        yield from site.config
        yield from site.listings
        for name in dict.fromkeys(name for harness in all_harnesses() for name in harness.names_above(site)):
            yield from (f"{parent}/{name}" for parent in site.checkout.parents)
    for checkout in survey.checkouts.values():
        yield from (f"{checkout.git_dir}/{name}" for name in ("index", "HEAD", "index.lock"))
    if survey.checkout is not None:
        yield from map(str, (git.exclude_file(survey.checkout), git.attributes_file(survey.checkout)))
        yield from (f"{survey.checkout.common_dir}/{name}" for name in ("config", "worktrees"))
        yield f"{survey.checkout.root}/.gitignore"


def _sign(path: str) -> object:
    """What tells of a change at `path`, be it of a link or of what it leads to; None where nothing is."""
    try:
        found = os.lstat(path)
        ends = os.stat(path) if stat.S_ISLNK(found.st_mode) else found  # noqa: PTH116 - many calls
    except OSError:
        return None
    return (found.st_ino, ends.st_ino, ends.st_mtime_ns, ends.st_ctime_ns, ends.st_size)
