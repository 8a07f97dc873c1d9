"""What follows a projection: excludes, worktrees' own facts, keys that went missing, secrets in Git."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from agent_bridge import files, git, paths
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import config_edit
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.memory.store import Store
from agent_bridge.projection import apply, excludes, gitlaw, review
from agent_bridge.projection.adopt import finish_link
from agent_bridge.projection.keepsakes import Overwritten, look_after, place_of
from agent_bridge.projection.ledger import Entry, Kind, Ledger, digest
from agent_bridge.projection.legacy_signs import derived_tracked
from agent_bridge.projection.survey import Survey
from agent_bridge.projects import STORE_NAME, Project, load_projects


class Excluder:
    """Keeps info/exclude right: what nobody has judged, and what is private, can't be added to Git.

    Which facts Git tracks is asked again only when its index has changed.
    """

    def __init__(self, project: Project | None, ledger: Ledger) -> None:
        """`project` None: the global store."""
        self._project = project
        self._store = paths.global_store() if project is None else project.store
        self._ledger = ledger
        self._tracked: set[Path] = set()
        self._stamp: object = self
        self._kept: object = None
        self._settings: tuple[Path, ...] = ()

    def tracks(self, path: Path) -> bool:
        """Whether Git tracked `path`, below the store, when `keep` last asked."""
        return path in self._tracked

    @property
    def tracked(self) -> set[Path]:
        """What Git tracked below the store when `keep` last asked."""
        return self._tracked

    def keep(self, survey: Survey, snapshot: Snapshot, *, full: bool = True) -> None:
        """Bring our section of info/exclude in line with the store."""
        project, checkout = self._project, survey.checkout
        if project is None:
            self._keep_global(snapshot)
        if checkout is None or project is None:
            return
        stamp = git.index_stamp(checkout)
        if full or stamp != self._stamp:
            self._tracked, self._stamp = git.tracked_below(checkout, project.store), stamp
            self._settings = _local_settings(checkout, self._ledger, survey)
        created = sorted({*_created_here(self._ledger, survey), *self._settings})
        shared = {fact.path for fact in snapshot.shared} | {item.name for item in snapshot.documents}
        wanted = (shared, created, stamp)
        if wanted == self._kept and not full:
            return
        local = project.mode == "local"
        new = sorted(shared - {path.relative_to(project.store).as_posix() for path in self._tracked})
        alone = stands_alone(project, checkout)
        lines = excludes.exclude_lines(
            store=STORE_NAME, local=local, shared=new if alone else (), created=created
        )
        if not alone:
            lines = with_siblings(lines, files.read_image(git.exclude_file(checkout)).data)
        apply.edit_lines(self._ledger, git.exclude_file(checkout), lines)
        if project.store.is_dir():
            self._guard(
                checkout,
                project.store,
                excludes.guard_lines(local=local, shared=new),
                look=full,
                always=not alone,
            )
        self._kept = wanted

    def _keep_global(self, snapshot: Snapshot) -> None:
        """The same for the global store, in its own .gitignore: homes are kept in repositories too."""
        shared = sorted(fact.path for fact in snapshot.shared)
        if shared != self._kept and self._store.is_dir():
            apply.edit_lines(self._ledger, self._store / ".gitignore", excludes.guard_lines(shared=shared))
            self._kept = shared

    def _guard(
        self, checkout: git.Checkout, store: Path, lines: list[str], *, look: bool, always: bool
    ) -> None:
        """Keep a guard in the store's own .gitignore, from the day on that the repository makes it necessary.

        It stays then: with it in place nobody can tell whether it is still needed.
        """
        place = store / ".gitignore"
        if place in self._tracked and git.activity(checkout):
            return
        data = files.read_image(place, within=store, plain=True).data
        stands = config_edit.remove_lines(data) != data
        if always or stands or (look and excludes.needs_guard(checkout, store)):
            apply.edit_lines(self._ledger, place, lines)


def stands_alone(project: Project, checkout: git.Checkout) -> bool:
    """Whether no other project of the same repository shares its exclude file.

    Worktrees that are projects of their own do: a name let in for one would let in another's private fact of
    that name.
    """
    family = project.main or project.root
    others = [one for one in load_projects() if one.id != project.id]
    return checkout.main_root is not None and not any(family in (one.main, one.root) for one in others)


def with_siblings(lines: Iterable[str], present: bytes) -> list[str]:
    """The lines of a project and those that its siblings have in `present`, with nothing let in by name."""
    theirs = config_edit.our_lines(present)
    return sorted({*lines, *(line for line in theirs if not line.startswith("!"))})


def tell_missing_store(project: Project | None) -> tuple[Notice, ...]:
    """That a project's memory is gone, which looks like one without facts to everybody else."""
    if project is None or project.store.is_dir():
        return ()
    text = f"{project.store} is gone: no agent has a fact of this project until it is back or made anew."
    return (Notice("warning", "store-missing", text, project.store),)


def check_keys(ledger: Ledger) -> list[Notice]:
    """Put back, once, a key of ours that went missing; another value is its user's word."""
    notices: list[Notice] = []
    for entry in ledger.entries():
        if entry.kind is not Kind.KEYS:
            continue
        try:
            notices += _check_entry(ledger, entry)
        except AgentBridgeError as error:
            notices.append(Notice("warning", error.code, error.sentence(), Path(entry.path)))
    return notices


def check_links(ledger: Ledger, store: Store) -> list[Notice]:
    """Finish a link that a kill interrupted, remake one that is gone, tell of one that was replaced."""
    notices: list[Notice] = []
    for entry in ledger.entries():
        path = Path(entry.path)
        if entry.kind is not Kind.LINK:
            continue
        if not os.path.lexists(path) and path.parent.is_dir():
            notices.append(_remade(path, entry.target))
        elif not path.is_symlink() or str(path.readlink()) != entry.target:
            text = f"{path} isn't our link any more. `agent-bridge init` adopts what is in it."
            notices.append(Notice("warning", "link-replaced", text, path))
        else:
            finish_link(ledger, store, path, "claude-code")
    return notices


def keep_copies(
    project: Project, tracked: set[Path], now: datetime, step: Callable[[], None] = lambda: None
) -> list[Notice]:
    """Keep copies of facts that Git ignores; one that Git overwrote since becomes a candidate."""
    notices: list[Notice] = []

    def candidate(lost: Overwritten) -> None:
        text = lost.data.decode("utf-8", "replace")
        why = "Git replaced this fact by one of the same name"
        review.keep_candidate(project.state, text, origin=str(lost.path), why=why, now=now)
        told = f"Git replaced {lost.path}; its former text waits in `agent-bridge review`."
        notices.append(Notice("warning", "overwritten", told, lost.path))

    look_after(project.store, tracked, place_of(project), candidate, step)
    return notices


def tell_git(
    project: Project, survey: Survey, snapshot: Snapshot, tracked: set[Path], now: float
) -> list[Notice]:
    """What Git holds, or would add, though it is private or holds a secret; and what stands in its way."""
    checkout = survey.checkout
    facts = (*snapshot.withheld, *snapshot.private)
    notices = []
    for fact in facts:
        path = project.store / fact.path
        kinds = ", ".join(fact.secrets)
        if path in tracked and fact.secrets:
            text = (
                f"{path} is tracked by Git and seems to hold a secret ({kinds}). Rotate the secret, history "
                f"keeps it; `git rm --cached -- {STORE_NAME}/{fact.path}` untracks the file."
            )
            notices.append(Notice("warning", "secret-tracked", text, path))
        elif path in tracked:
            text = f"{path} is private but tracked by Git. `agent-bridge unshare {fact.id}` untracks it."
            notices.append(Notice("warning", "private-tracked", text, path))
        elif fact.secrets:
            text = f"{path} seems to hold a secret ({kinds}); it is shown to no agent."
            notices.append(Notice("warning", "secret", text, path))
    if checkout is not None:
        notices += _exposed(checkout, project.store, {project.store / fact.path for fact in facts})
        notices += _in_the_way(checkout, survey, now)
    return notices


def _remade(path: Path, target: str) -> Notice:
    try:
        path.symlink_to(target, target_is_directory=True)
    except OSError as error:
        return Notice("warning", "link-missing", f"{path} is missing and can't be made again: {error}", path)
    return Notice("info", "link-restored", f"{path} was missing and was made again.", path)


def _exposed(checkout: git.Checkout, store: Path, private: set[Path]) -> list[Notice]:
    notices = []
    for found in excludes.check(checkout, store, private):
        if found.how is excludes.Exposure.ADDABLE:
            text = f"{found.path} is private, but a .gitignore lets `git add` take it. Remove that rule."
            notices.append(Notice("warning", "private-addable", text, found.path))
        elif found.path not in private:
            notices.append(derived_tracked(found.path))
    return notices


def _in_the_way(checkout: git.Checkout, survey: Survey, now: float) -> list[Notice]:
    notices = []
    lock = git.stale_lock(checkout, now=now)
    if lock:
        notices.append(Notice("warning", "index-lock", lock, checkout.git_dir / "index.lock"))
    for target in survey.layout.targets:
        if target.tracked and target.checkout == checkout.root and git.stashes(checkout):
            relative = target.real.relative_to(checkout.root).as_posix()
            hint = gitlaw.stash_hint(checkout, relative, files.read_image(target.real).data)
            if hint:
                notices.append(Notice("info", "stash", hint, target.path))
    return notices


def _created_here(ledger: Ledger, survey: Survey) -> list[Path]:
    """Files of ours in the checkouts, relative, that aren't to become part of the repository through us.

    The ledger decides, not who reads a file now: it may be read by others than those it was made for, or by
    nobody any more. One that its user has given to Git is the repository's.
    """
    given = {str(target.path) for target in survey.layout.targets if target.tracked}
    roots = [site.checkout for site in survey.sites]
    made = [
        Path(entry.path)
        for entry in ledger.entries()
        if entry.kind is Kind.FILE
        or (entry.created and entry.kind in (Kind.BLOCK, Kind.OWN) and entry.path not in given)
    ]
    return sorted({path.relative_to(root) for path in made for root in roots if path.is_relative_to(root)})


def _local_settings(checkout: git.Checkout, ledger: Ledger, survey: Survey) -> tuple[Path, ...]:
    """Settings files, relative, that we wrote into and that nothing else keeps out of Git."""
    edited = {edit.path for edit in survey.keys if edit.local and ledger.get(edit.path) is not None}
    inside = {path for path in edited if path.is_relative_to(checkout.root)}
    ignored = git.ignored(checkout, inside)
    present = files.read_image(git.exclude_file(checkout)).data
    names = {path: path.relative_to(checkout.root) for path in inside - git.tracked(checkout, inside)}
    return tuple(
        name
        for path, name in sorted(names.items())
        if excludes.needs_line(name.as_posix(), ignored=path in ignored, present=present)
    )


def _check_entry(ledger: Ledger, entry: Entry) -> list[Notice]:
    path = Path(entry.path)
    image = files.read_image(path)
    if digest(image.data) == entry.after:
        return []
    after = image.data
    notices: list[Notice] = []
    records = list(entry.keys)
    for position, record in enumerate(records):
        name = ".".join(record.key)
        current = apply.get_key(entry.format, after, record.key)
        among_others = record.element and isinstance(current, list)
        if among_others and apply.has_element(entry.format, after, record.key, json.loads(record.ours)):
            continue
        if among_others:
            name = f"An element of ours in {name}"
        if (among_others or current is config_edit.ABSENT) and not record.put_back:
            after, records[position] = apply.put_back(entry.format, after, record)
            text = f"{name} was missing in {path} and was put back."
            notices.append(Notice("info", "key-restored", text, path))
        elif among_others or current is config_edit.ABSENT:
            text = f"{name} was taken out of {path} again; that is respected."
            notices.append(Notice("warning", "key-respected", text, path))
        elif not apply.is_value(current, record.ours):
            text = f"{name} in {path} has another value than ours ({record.ours}); that is respected."
            notices.append(Notice("warning", "key-respected", text, path))
    if after != image.data:
        ledger.put(apply.written(replace(entry, keys=tuple(records)), image, after))
        files.replace(image, after, keep_dir=ledger.kept)
    return notices
