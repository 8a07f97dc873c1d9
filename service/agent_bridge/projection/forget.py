"""Forgetting a fact: out of the store, of every projection and of the copies that could bring it back.

Its text is remembered as one that nobody wants (by hash), so that no harness, worktree or merge offers it
again; a person may still add it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.config import Settings
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses.block_body import escape_id
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.memory import fact_cache
from agent_bridge.memory.fact import MAX_BYTES, EmptyFact, Fact, FactProblem, parse_fact
from agent_bridge.memory.similarity import normalise
from agent_bridge.memory.store import Store
from agent_bridge.projection import hook_context, judged, keepsakes, removed, review
from agent_bridge.projection.engine import Engine, Report, global_engine
from agent_bridge.projection.judged import Verdict
from agent_bridge.projects import STORE_NAME, Project

_DERIVED = ("MEMORY.md", "index.json")
_TELLING = 20
"""Characters: a shorter text stands in other people's words by chance."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forgetting did.

    `gone_from` are files that had the fact and don't any more, `still_in` those that have it yet (Git is at
    work, say), `said_by_others` those whose own words say the same. `kept` is the copy of its file (None: it
    held a secret), `in_git` are those of its files that Git tracks: history keeps them. `was_private` stays
    remembered. `report` is that of the last pass (None: none was run), `troubles` says what stood in its way.
    """

    fact: Fact
    gone_from: tuple[Path, ...] = ()
    still_in: tuple[Path, ...] = ()
    said_by_others: tuple[Path, ...] = ()
    kept: Path | None = None
    in_git: tuple[Path, ...] = ()
    was_private: bool = False
    report: Report | None = None
    troubles: tuple[str, ...] = ()


@dataclass(slots=True)
class Place:
    """A store and who it belongs to: a set-up project, the user (`is_global`), or nobody who is served yet.

    `cache` is where search keeps its index of the store.
    """

    store: Store
    project: Project | None
    cache: Path
    is_global: bool = False
    engine: Engine | None = field(default=None, init=False)


def stands_in(place: Place, fact: Fact, settings: Settings) -> list[Path]:
    """Every file that has the fact now: its own, the derived ones, the projections, worktrees' copies."""
    engine = _engine(place, settings)
    found = [place.store.root / fact.path]
    for path in dict.fromkeys(_projections(place, engine)):
        if _has(path, fact):
            found.append(path)
    return [*found, *_parted(_same_texts(place, engine, fact))[0]]


def forget(place: Place, fact: Fact, settings: Settings, *, now: datetime) -> Forgotten:
    """Forget a fact. Raises what `Store.remove` raises; trouble with a projection is told in the answer."""
    engine = _engine(place, settings)
    troubles: list[str] = []
    if engine is not None:
        # Blocks and MEMORY.md are in a known state then: no line of the fact counts as somebody else's.
        _try(engine, troubles)
    before = stands_in(place, fact, settings)
    copies, held = _parted(_same_texts(place, engine, fact))
    own = place.store.root / fact.path
    seen = place.store.scan()
    was_private = any(one.path == fact.path for one in (*seen.private, *seen.withheld))
    in_git = (*_tracked([own]), *held)
    kept: list[Path] = []

    def keep(data: bytes) -> None:
        if not fact.secrets:
            kept.append(removed.keep_file(place.store.state, fact, data))

    _never_again(place, fact, now, settings.lock_timeout_s)
    place.store.remove(fact.path, keep=keep)
    for path in copies:
        troubles += _remove_copy(path, fact, keep)
    if place.project is not None:
        (keepsakes.place_of(place.project) / fact.path).unlink(missing_ok=True)
    report = None if engine is None else _try(engine, troubles)
    _drop_caches(place)
    named = {path for path in before if _names(_text(path), fact)}
    said = {path for path in before if path not in named and _says(_text(path), fact)}
    return Forgotten(
        fact,
        gone_from=tuple(path for path in before if path not in named | said),
        still_in=tuple(path for path in before if path in named),
        said_by_others=tuple(path for path in before if path in said),
        kept=kept[0] if kept else None,
        in_git=in_git,
        was_private=was_private,
        report=report,
        troubles=tuple(dict.fromkeys(troubles)),
    )


def _engine(place: Place, settings: Settings) -> Engine | None:
    if place.engine is None and place.project is not None:
        place.engine = Engine(place.project, settings)
    elif place.engine is None and place.is_global:
        place.engine = global_engine(settings)
    return place.engine


def _try(engine: Engine, troubles: list[str]) -> Report | None:
    try:
        report = engine.reconcile()
        engine.settle()
    except AgentBridgeError as error:
        troubles.append(error.sentence())
        return None
    return report


def _projections(place: Place, engine: Engine | None) -> Iterator[Path]:
    for name in _DERIVED:
        yield place.store.root / name
    if engine is not None:
        yield from (target.path for target in engine.survey().layout.targets)
        yield from (Path(entry.path) for entry in engine.ledger.entries())
    if place.project is not None:
        yield from hook_context.present(place.project.state)


def _has(path: Path, fact: Fact) -> bool:
    """Whether a file names the fact or has its text."""
    text = _text(path)
    return _names(text, fact) or _says(text, fact)


def _names(text: str, fact: Fact) -> bool:
    marks = (f"[{escape_id(fact.id)}]", f"({fact.path})", f"(<{fact.path}>)", f'"{fact.path}"')
    return any(mark in text for mark in marks)


def _says(text: str, fact: Fact) -> bool:
    body = normalise(fact.body)
    return len(body) >= _TELLING and body in normalise(text)


def _text(path: Path) -> str:
    try:
        return files.read_image(path).data.decode("utf-8", "replace") if path.is_file() else ""
    except AgentBridgeError:
        return ""


def _same_texts(place: Place, engine: Engine | None, fact: Fact) -> list[Path]:
    """The files of the worktrees' own stores that have the fact's text."""
    if engine is None or place.project is None:
        return []
    found = []
    for site in engine.survey().sites[1:]:
        top = site.checkout / STORE_NAME
        if top.is_dir() and not top.is_symlink():
            found += [top / name for name in sorted(keepsakes.facts_below(top)) if _is_same(top, name, fact)]
    return found


def _parted(same: list[Path]) -> tuple[list[Path], list[Path]]:
    """Copies that may go, and files that Git tracks in their worktree: those are their branch's, and stay."""
    held = list(_tracked(same))
    return [path for path in same if path not in held], held


def _remove_copy(path: Path, fact: Fact, keep: Callable[[bytes], None]) -> list[str]:
    """Remove a copy that still has the fact's text; what stood in the way, and then it stays."""
    try:
        image = files.read_image(path, plain=True, limit=MAX_BYTES)
        if image.existed and parse_fact(path.name, image.data).text_hash == fact.text_hash:
            keep(image.data)
            files.delete(image)
    except (AgentBridgeError, FactProblem, EmptyFact) as error:
        return [f"{path} is left as it is: {error}"]
    return []


def _is_same(top: Path, name: Path, fact: Fact) -> bool:
    try:
        image = files.read_image(top / name, within=top, plain=True, limit=MAX_BYTES)
        other = parse_fact(name.as_posix(), image.data)
    except (AgentBridgeError, FactProblem, EmptyFact):
        return False
    return other.text_hash == fact.text_hash


def _tracked(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        checkout = git.find_checkout(path.parent)
        if checkout is not None and git.tracked(checkout, [path]):
            yield path


def _never_again(place: Place, fact: Fact, now: datetime, timeout: float) -> None:
    item = fact_item(fact)
    texts = (fact.body, item.text, "\n\n".join(part for part in (item.title, item.text) if part))
    with files.locked(place.store.state / "lock", timeout=timeout, purpose="forget"):
        judged.record(place.store.state, texts, Verdict.REJECTED, now=now, fact_id=fact.id)
        for text in texts:
            review.drop_candidate(place.store.state, review.candidate_id(text))


def _drop_caches(place: Place) -> None:
    """Caches of texts: they are made again when they are needed."""
    for path in (
        *(place.cache.with_name(place.cache.name + end) for end in ("", "-wal", "-shm", "-journal")),
        fact_cache.cache_path(place.store.state),
    ):
        path.unlink(missing_ok=True)


__all__ = ["Forgotten", "Place", "forget", "stands_in"]
