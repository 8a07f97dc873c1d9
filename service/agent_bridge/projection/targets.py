"""Which real files get a block: the carriers of all harnesses, one target for each file.

Pure. Two harnesses that read the same file, by whatever name, share one target, so no client can meet a
fact twice there (design, law 1). The smallest budget among the readers serves all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge.harnesses.base import Carrier, InstructionFile, Notice, Scope, Site
from agent_bridge.projects import STORE_NAME

_TEXT_NAME = re.compile(r".+\.(?:md|markdown|mdc|mdx|txt)|.*rules", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """One real file that is to hold one block.

    `path` is the name by which it was first asked for, `real` where that ends. `budget` is in bytes.
    `checkout` is the worktree it lies in (None: outside of any), `tracked` what Git says of it there.
    `own`: the whole file is ours and begins with `header`. `text`: what the block says in place of facts.
    `retired`: it carries no memory any more and its block goes.
    """

    path: Path
    real: Path
    scope: Scope
    readers: tuple[str, ...]
    budget: int
    checkout: Path | None
    tracked: bool
    create: bool
    local: bool
    own: bool
    header: str
    why: str
    text: str = ""
    retired: bool = False
    asked_by: tuple[str, ...] = ()

    @property
    def serves(self) -> tuple[str, ...]:
        """The harnesses that it is for: its readers, else those that want it (for an import, say)."""
        return self.readers or self.asked_by


@dataclass(frozen=True, slots=True)
class Layout:
    """All targets of a project or of the user, and what was dropped on the way and why."""

    targets: tuple[Target, ...]
    notices: tuple[Notice, ...]


def lay_out(carriers: Iterable[tuple[Site, Carrier]], *, budget: int, private_store: bool) -> Layout:
    """Merge carriers into targets.

    `budget` is the product's own limit for a block in bytes. With `private_store` (a store that is kept
    out of Git) files that Git tracks are no targets: their facts would be published.
    """
    found: dict[object, Target] = {}
    notices: list[Notice] = []
    for site, carrier in carriers:
        file = site.file(carrier.path)
        refusal = _refusal(site, file, carrier, private_store=private_store)
        if refusal is not None:
            notices.append(refusal)
            continue
        key: object = file.identity or str(file.real)
        target = _target(site, carrier, file, budget)
        found[key] = _merged(found[key], target) if key in found else target
    # A saved fact is to be where most programs read it first.
    targets = sorted(found.values(), key=lambda target: (-len(target.readers), target.path.name))
    return Layout(tuple(targets), tuple(dict.fromkeys(notices)))


def why_misled(path: Path, real: Path, root: Path) -> str:
    """Why a symlink in the checkout at `root` leads to a file that can't take a block; "" where it can.

    A repository can bring any symlink along: in Git's own files, a fact, settings or a program a block is
    damage, and in Git's configuration one that stops every later command, undoing it too.
    """
    below = real.relative_to(root).parts if real.is_relative_to(root) else ()
    if ".git" in map(str.lower, below):
        return f"it leads to {real}, which is Git's own"
    if below[:1] == (STORE_NAME,):
        return f"it leads to {real}, which is the memory itself"
    if real.name != path.name and not _TEXT_NAME.fullmatch(real.name):
        return f"it leads to {real}, which is no text for people"
    return ""


def served(targets: Iterable[Target]) -> Mapping[str, int]:
    """How many targets each harness reads."""
    counts: dict[str, int] = {}
    for target in targets:
        for reader in target.readers:
            counts[reader] = counts.get(reader, 0) + 1
    return counts


def _refusal(site: Site, file: InstructionFile, carrier: Carrier, *, private_store: bool) -> Notice | None:
    if file.why_unreadable:
        text = f"{file.path} can't hold a block: {file.why_unreadable}."
        return Notice("warning", "carrier-unusable", text, file.path)
    if file.readable and carrier.scope is Scope.PROJECT and not file.inside:
        return Notice(
            "warning",
            "carrier-outside",
            f"{file.path} leads out of the project to {file.real}; nothing is written there.",
            file.path,
        )
    misled = (
        file.readable and carrier.scope is Scope.PROJECT and why_misled(file.path, file.real, site.checkout)
    )
    if misled:
        text = f"{file.path} can't hold a block: {misled}."
        return Notice("warning", "carrier-misled", text, file.path)
    if private_store and file.tracked:
        return Notice(
            "warning",
            "carrier-tracked",
            f"{file.path} is tracked by Git and the store is kept out of Git, so no fact is put there.",
            file.path,
        )
    if not file.readable and not carrier.create:
        return Notice("info", "carrier-missing", f"{file.path} isn't there and isn't made.", file.path)
    return None


def _target(site: Site, carrier: Carrier, file: InstructionFile, budget: int) -> Target:
    in_checkout = file.inside and site.project is not None and carrier.scope is Scope.PROJECT
    return Target(
        path=file.path,
        real=file.real,
        scope=carrier.scope,
        readers=carrier.readers,
        budget=min(budget, carrier.budget),
        checkout=site.checkout if in_checkout else None,
        tracked=file.tracked,
        create=carrier.create,
        local=carrier.local and in_checkout and site.is_git,
        own=carrier.kind == "own",
        header=carrier.header,
        why=carrier.why,
        text=carrier.text,
        asked_by=(carrier.asked_by,) if carrier.asked_by else (),
    )


def _merged(one: Target, other: Target) -> Target:
    return replace(
        one,
        readers=tuple(dict.fromkeys(one.readers + other.readers)),
        asked_by=tuple(dict.fromkeys(one.asked_by + other.asked_by)),
        budget=min(one.budget, other.budget),
        create=one.create or other.create,
        local=one.local and other.local,
        own=one.own and other.own,
        text=one.text if one.text == other.text else "",
        why="; ".join(dict.fromkeys(filter(None, (one.why, other.why)))),
    )
