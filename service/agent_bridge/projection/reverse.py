"""The way back on request (`sync --from`): texts that stand in a harness's files become facts.

A look writes nothing anywhere, not even a cache or a lock. Bringing back adds what is new and keeps for
review what is like a fact; a fact that is there is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git, paths
from agent_bridge.config import Settings
from agent_bridge.errors import DuplicateError, UsageError
from agent_bridge.harnesses.base import Harness, NativeItem
from agent_bridge.memory import scan
from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.store import Store
from agent_bridge.memory.times import iso, timestamp
from agent_bridge.projection import judged, review
from agent_bridge.projection.judged import Judged, Verdict
from agent_bridge.projection.presence import Presence
from agent_bridge.projection.sorting import Finding, Memory, Outcome, sort_texts
from agent_bridge.projection.survey import survey_project
from agent_bridge.projects import Project


def look(project: Project, harnesses: Sequence[Harness], settings: Settings) -> list[Finding]:
    """What bringing back would do, text by text: the project's in reading order, then the user's own."""
    project_items, user_items = _by_scope(found_items(project, harnesses, settings))
    found = sort_texts(project_items, _seen(project.store, project.state), threshold=settings.similarity)
    if user_items:
        user = _seen(paths.global_store(), paths.user_state())
        found += sort_texts(user_items, user, threshold=settings.similarity)
    return found


def bring_back(
    project: Project,
    harnesses: Sequence[Harness],
    settings: Settings,
    *,
    now: datetime,
    private: bool = False,
) -> list[Finding]:
    """Bring texts back: new ones become facts, private ones with `private`; the findings say which.

    What stands in files of the user's own home belongs to no project and goes into the global store. Raises
    LockTimeoutError, and what `Presence.check` raises.
    """
    timeout = settings.lock_timeout_s
    with files.locked(project.lock, timeout=timeout, purpose="sync --from"):
        Presence(project).check()
        items = found_items(project, harnesses, settings)
        project_items, user_items = _by_scope(replace(one, private=one.private or private) for one in items)
        store = Store(project.store, state=project.state, lock_timeout_s=timeout)
        done = take_in(store, project_items, now=now, threshold=settings.similarity, base=project.root)
    if user_items:
        state = paths.user_state()
        with files.locked(state / "lock", timeout=timeout, purpose="sync --from"):
            user = Store(paths.global_store(), scope="global", state=state, lock_timeout_s=timeout)
            done += take_in(user, user_items, now=now, threshold=settings.similarity)
    return done


def _by_scope(items: Iterable[NativeItem]) -> tuple[list[NativeItem], list[NativeItem]]:
    """The items of a project's directories, and those that belong to the user."""
    listed = list(items)
    return [one for one in listed if one.directory is not None], [
        one for one in listed if one.directory is None
    ]


def take_in(
    store: Store, items: Iterable[NativeItem], *, now: datetime, threshold: float, base: Path | None = None
) -> list[Finding]:
    """Sort items and do what follows: add the new ones, keep conflicts for review.

    `base`: the directory from which origins are told. The caller holds the lock of the store's owner.
    """
    memory = remembered(store)
    done: list[Finding] = []
    added: dict[str, Judged] = {}
    try:
        for finding in sort_texts(items, memory, threshold=threshold):
            if finding.outcome is Outcome.NEW:
                done.append(_add(store, finding, now, base))
            elif finding.outcome is Outcome.CONFLICT:
                done.append(_keep(store.state, finding, done, now, base))
            else:
                done.append(finding)
            if done[-1].outcome is Outcome.NEW:
                added[done[-1].item.text] = Judged(Verdict.ADDED, done[-1].fact_id, iso(now))
    finally:
        judged.record_all(store.state, added)
    return done


def remembered(store: Store) -> Memory:
    """What texts are compared with, for a store that may be scanned in the usual way."""
    found = store.scan()
    waiting = tuple(review.load_candidates(store.state))
    return Memory(found.facts, found.documents, waiting, judged.load(store.state))


def found_items(project: Project, harnesses: Sequence[Harness], settings: Settings) -> list[NativeItem]:
    """The texts that harnesses have, over the main checkout and the worktrees; reads only.

    What stands in a file that Git ignores is one person's, so it is private.
    """
    names = tuple(harness.name for harness in harnesses)
    asked = replace(project, requested=tuple(dict.fromkeys((*project.requested, *names))))
    survey = survey_project(asked, settings)
    found: list[NativeItem] = []
    for site in survey.sites:
        here = [
            replace(item, harness=harness.name)
            for harness in harnesses
            for item in harness.hand_written(site)
        ]
        checkout = survey.checkouts.get(site.checkout)
        inside = {item.source_file for item in here if item.source_file.is_relative_to(site.checkout)}
        ignored = set() if checkout is None else git.ignored(checkout, inside)
        found += [replace(item, private=item.private or item.source_file in ignored) for item in here]
    return list(_each_once(found, [site.checkout for site in survey.sites]))


def _each_once(items: Iterable[NativeItem], checkouts: Sequence[Path]) -> Iterator[NativeItem]:
    """The items, of a file that several harnesses read, or that each worktree has, those found first."""
    seen: dict[tuple[Path, str], tuple[str, Path | None]] = {}
    for item in items:
        path = item.source_file
        root = next((one for one in checkouts if path.is_relative_to(one)), None)
        place = path if root is None else path.relative_to(root)
        finder = (item.harness, root)
        if seen.setdefault((place, text_hash(item.text)), finder) == finder:
            yield item


def origin_of(path: Path, base: Path | None) -> str:
    """A file as it is told: from `base` or from the home, so that no user's name goes into a shared fact."""
    home = paths.home()
    if base is not None and path.is_relative_to(base):
        return path.relative_to(base).as_posix()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def written_at(created_at: str, now: datetime) -> datetime:
    """The moment that a harness told, or `now` where it told none or one that is yet to come."""
    told = timestamp(created_at)
    moment = datetime.fromisoformat(told) if told else now
    return moment if moment.astimezone(UTC) <= now else now


def _add(store: Store, finding: Finding, now: datetime, base: Path | None) -> Finding:
    item = finding.item
    try:
        added = store.add(
            item.text,
            source=item.harness,
            title=item.title or None,
            private=item.private,
            origin=origin_of(item.source_file, base),
            now=written_at(item.created_at, now),
        )
    except DuplicateError as error:
        return replace(finding, outcome=Outcome.SKIPPED, fact_id=error.fact_id, why="it is remembered")
    except (FactProblem, UsageError) as error:
        return replace(finding, outcome=Outcome.REFUSED, why=str(error))
    return replace(finding, fact_id=added.fact.id)


def _keep(
    state: Path, finding: Finding, done: Sequence[Finding], now: datetime, base: Path | None
) -> Finding:
    """Keep a conflict for review; one with a text that has just become a fact is one with that fact."""
    like = finding.fact_id if finding.follows is None else done[finding.follows].fact_id
    finding = replace(finding, fact_id=like, follows=None)
    item = finding.item
    review.keep_candidate(
        state,
        item.text,
        origin=origin_of(item.source_file, base),
        why=finding.why,
        now=now,
        similar=like,
        score=finding.score,
        source=item.harness,
        created_at=item.created_at,
        title=item.title,
        private=item.private,
    )
    return finding


def _seen(place: Path, state: Path) -> Memory:
    """The memory as its files have it, read without the caches and records of a `Store`."""
    read = scan.read_all(place)
    return Memory(
        tuple(one.fact for one in read if one.fact is not None),
        tuple(one.document for one in read if one.document is not None),
        tuple(review.load_candidates(state)),
        judged.load(state),
    )
