"""A person's decisions on candidates: made a fact, brought into another fact, or rejected.

Each is remembered (`judged`), so that the same text isn't offered again, and the candidate's file goes. Who
calls holds the lock of the candidate's owner, in whose state directory `state` it lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent_bridge.errors import ConflictError, DuplicateError, RefusedError
from agent_bridge.harnesses.markdown import safe_line
from agent_bridge.memory.fact import Fact, plain_body
from agent_bridge.memory.privacy import PrivacyRecord
from agent_bridge.memory.secrets import find_secrets
from agent_bridge.memory.store import Added, Store
from agent_bridge.projection import judged, removed, review
from agent_bridge.projection.judged import Verdict
from agent_bridge.projection.reverse import written_at
from agent_bridge.projection.review import Candidate

UNKNOWN_SOURCE = "review"
"""The source of a fact whose text nobody knows the writer of: it stood in a file that many may edit."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The fact that a candidate became, or the id of the one that says the same already."""

    added: Added | None
    duplicate: str = ""


def accept(
    state: Path,
    candidate: Candidate,
    store: Store,
    *,
    now: datetime,
    tags: Iterable[str] = (),
    type: str = "project",  # noqa: A002 - the key's own name
    title: str | None = None,
    private: bool = False,
) -> Accepted:
    """Make a fact of it, with its source, origin and time. Raises UsageError where it can't be one."""
    added: Added | None = None
    duplicate = ""
    try:
        added = store.add(
            candidate.text,
            tags=tags,
            type=type,
            source=candidate.source or UNKNOWN_SOURCE,
            private=private,
            title=title or candidate.title or None,
            origin=candidate.origin,
            now=written_at(candidate.created_at, now),
        )
    except DuplicateError as error:
        duplicate = error.fact_id
    fact_id = duplicate if added is None else added.fact.id
    judged.record(state, [candidate.text], Verdict.ADDED, now=now, fact_id=fact_id)
    review.drop_candidate(state, candidate.id)
    return Accepted(added, duplicate)


def merge(
    state: Path, candidate: Candidate, store: Store, fact: Fact, text: str, *, now: datetime
) -> tuple[Fact, Path | None]:
    """Give a fact the text that brings the candidate in; the fact as it is then, and its former file's copy.

    Raises ConflictError where the fact isn't what `fact` says any more, RefusedError where one person's own
    text would be shared, DuplicateError, UsageError.
    """
    present = store.find(fact.path)
    if present.digest != fact.digest:
        raise ConflictError("The fact was changed by somebody else meanwhile", path=store.root / fact.path)
    if shall_be_private(candidate, store) and not _is_private(store, present):
        raise RefusedError(
            "This text is one person's own, and the fact is shared",
            path=store.root / fact.path,
            remedy="`agent-bridge review accept` makes a private fact of it.",
        )
    kept = (
        None
        if present.secrets
        else removed.keep_file(store.state, present, (store.root / present.path).read_bytes())
    )
    changed = store.edit(present.path, text, now=now)
    judged.record(state, [candidate.text], Verdict.MERGED, now=now, fact_id=changed.id)
    review.drop_candidate(state, candidate.id)
    return changed, kept


def reject(state: Path, candidates: Iterable[Candidate], *, now: datetime) -> list[Path]:
    """Take these away for good; where their files are kept (none of a text that holds a secret)."""
    listed = list(candidates)
    judged.record(state, [one.text for one in listed], Verdict.REJECTED, now=now)
    kept: list[Path] = []
    for one in listed:
        place = review.candidate_file(state, one.id)
        if not find_secrets(one.text) and place.is_file():
            kept.append(removed.keep_candidate(state, one.id, place))
        review.drop_candidate(state, one.id)
    return kept


def merged_text(fact: Fact, candidate: Candidate, *, replace: bool) -> str:
    """The fact's text with the candidate's in its place or behind it.

    An edited block begins with the fact's title on a line of its own: that stays the heading that it is in
    the fact, or is left out where the fact has none.
    """
    text = plain_body(candidate.text)
    first, _, rest = text.partition("\n")
    heading, _, _ = fact.body.partition("\n")
    if rest.strip() and first.strip() == safe_line(fact.title):
        is_heading = heading.startswith("#") and heading.lstrip("# ").strip() == fact.title
        text = f"{heading}\n\n{rest.strip()}" if is_heading and replace else rest.strip()
    return text if replace else f"{fact.body.rstrip()}\n\n{text}"


def shall_be_private(candidate: Candidate, store: Store) -> bool:
    """Whether its fact has to be private: it is one person's, or it is like a fact that is, or was."""
    if candidate.private or (candidate.similar and candidate.similar in _once_private(store)):
        return True
    return any(_is_private(store, fact) for fact in store.scan().facts if fact.id == candidate.similar)


def _once_private(store: Store) -> frozenset[str]:
    """The ids of facts that were judged private; they stay so when the fact is gone."""
    return frozenset(PrivacyRecord(store.state).current().ids)


def _is_private(store: Store, fact: Fact) -> bool:
    snapshot = store.scan()
    return any(one.path == fact.path for one in (*snapshot.private, *snapshot.withheld))
