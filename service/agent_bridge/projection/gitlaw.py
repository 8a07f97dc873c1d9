"""Git is a user too: whose text stands inside a block, and when a file is better left to Git for a while.

A body whose hash line fits is ours and needs no look here. Of any other, each item is ours that equals an
item of the store's rendering or of a block that we wrote in a commit nearby; the rest is somebody's own text.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_bridge import git
from agent_bridge.errors import MarkerError
from agent_bridge.harnesses.block_render import DocumentText, FactText
from agent_bridge.harnesses.managed_block import Item, block_text, hash_valid, is_ours, items, render_block

STASH_WAIT_S = 900.0
"""How long a file waits for the stash that holds our block. Longer, and its readers would miss new facts."""

_STASHING_S = 2.0
"""How long a stash may take: what we write between its commit and its reset is reset too."""

_NO_LIMIT = 1 << 40
_CONFLICT_MARK = re.compile(rb"([<>])\1{6}(?: .*)?\Z")
_BLOCK_MARK = re.compile(rb" {0,3}<!--[ \t]*agent-bridge:memory:(?:start|end)\b")
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The items of a block, sorted: `ours` may be rendered away, `foreign` are texts to keep for review."""

    ours: tuple[Item, ...]
    foreign: tuple[str, ...]


def foreign_items(
    data: bytes,
    documents: Iterable[DocumentText],
    facts: Iterable[FactText],
    revisions: Iterable[bytes],
) -> tuple[str, ...]:
    """The texts inside the file's block that aren't ours: candidates, to be kept before it is rendered.

    `data` are the file's bytes now; `revisions` its bytes in HEAD, HEAD's parents and MERGE_HEAD, and perhaps
    as we wrote them last. Where Git left a conflict inside the block, both sides count. Where somebody wrote
    lines into an item of ours, only those lines are given.
    Raises MarkerError where a conflict crosses the border of the block: a person has to resolve that first.
    """
    line = conflict_across(data)
    if line is not None:
        raise MarkerError("A conflict that Git left crosses the border of our block.", line=line)
    body = block_text(data)
    if body is None or hash_valid(body):
        return ()
    shown = render_block(tuple(documents), tuple(facts), budget=_NO_LIMIT).body
    known = [*items(shown), *items(render_block((), ()).body), *_committed(revisions)]
    return judge(items(body), known).foreign


def judge(found: Iterable[Item], known: Sequence[Item]) -> Judgement:
    """Sort the items of a block by whether they say what a `known` one says."""
    keys = {item.key for item in known}
    ours: list[Item] = []
    foreign: dict[str, None] = {}
    for item in found:
        if item.key in keys or not (added := _added_text(item, known)):
            ours.append(item)
        else:
            foreign[added] = None
    return Judgement(tuple(ours), tuple(foreign))


def conflict_across(data: bytes) -> int | None:
    """The line (from 1) where a conflict begins that holds a marker of our block; None without one."""
    if b"<<<<<<<" not in data:
        return None
    begun: int | None = None
    crossed = False
    for number, line in enumerate(_LINE_END.split(data), start=1):
        mark = _CONFLICT_MARK.match(line)
        if mark and mark[1] == b"<":
            begun, crossed = number, False
        elif mark:
            if begun is not None and crossed:
                return begun
            begun = None
        elif _BLOCK_MARK.match(line):
            crossed = True
    return None


def restored_by_git(
    current: bytes,
    head: bytes | None,
    stashed: Iterable[tuple[int, bytes]],
    *,
    written_at: float | None,
    now: float,
    limit: float = STASH_WAIT_S,
) -> float | None:
    """Until when a tracked file waits for a stash, in seconds since 1970; None when it needn't.

    It waits where Git has put it back to HEAD's bytes and a stash made since we wrote it holds another
    version: written now, it would be in the way of `git stash pop`. `stashed`: for each stash that changes
    the file, when it was made and the bytes it holds. `written_at`: our last write, None when that isn't
    known; then a stash counts that holds a block of ours.
    """
    if head is None or _lf(current) != _lf(head):
        return None
    until = [
        made_at + limit
        for made_at, held in stashed
        if (_holds_our_block(held) if written_at is None else made_at + _STASHING_S >= int(written_at))
    ]
    latest = max(until, default=0.0)
    return latest if latest > now else None


def restored_by_stash(
    checkout: git.Checkout,
    relpath: str,
    current: bytes,
    *,
    written_at: float | None,
    now: float | None = None,
    limit: float = STASH_WAIT_S,
) -> str | None:
    """A sentence why the tracked file has to wait for a stash (see `restored_by_git`), or None.

    Starts no process while the repository has no stash.
    """
    stashes = git.stashes(checkout)
    if not stashes:
        return None
    moment = time.time() if now is None else now
    recent = [stash for stash in stashes if stash.made_at + limit > moment]
    held = [(stash.made_at, git.stash_holds(checkout, stash, relpath)) for stash in recent]
    stashed = [(made_at, data) for made_at, data in held if data is not None]
    if not stashed:
        return None
    head = git.show(checkout, "HEAD", relpath)
    until = restored_by_git(current, head, stashed, written_at=written_at, now=moment, limit=limit)
    if until is None:
        return None
    minutes = max(1, round((until - moment) / 60))
    return (
        f"{checkout.root / relpath} waits for `git stash pop` or `git stash drop`: a stash holds its last "
        f"version. It is written again in {minutes} min in any case."
    )


def stash_hint(checkout: git.Checkout, relpath: str, current: bytes) -> str | None:
    """What to tell of a stash that will clash with the file as it now is, or None."""
    stashes = git.stashes(checkout)
    head = git.show(checkout, "HEAD", relpath) if stashes else None
    if head is None or _lf(current) == _lf(head):
        return None
    for stash in stashes:
        held = git.stash_holds(checkout, stash, relpath)
        if held is not None and _holds_our_block(held):
            return (
                f"{stash.name} holds an older version of {checkout.root / relpath}. Before `git stash pop`, "
                f"run `git checkout -- {shlex.quote(relpath)}`; the block is written again afterwards."
            )
    return None


def committed_versions(checkout: git.Checkout, relpath: str) -> tuple[bytes, ...]:
    """The file's bytes in HEAD, its parents, what is being merged in, and the last commits that changed it.

    For `foreign_items`: where colleagues have committed several edits of a block, our own lies further back.
    """
    revisions = dict.fromkeys((*git.revisions(checkout), *git.history(checkout, relpath)))
    found = (git.show(checkout, revision, relpath) for revision in revisions)
    return tuple(dict.fromkeys(data for data in found if data is not None))


def _committed(revisions: Iterable[bytes]) -> list[Item]:
    found: list[Item] = []
    for data in revisions:
        try:
            body = block_text(data)
        except MarkerError:
            continue
        if body is not None and hash_valid(body):
            found += items(body)
    return found


def _added_text(item: Item, known: Iterable[Item]) -> str:
    """What is foreign in an item: the lines added to one of ours, or all of it."""
    whole = "\n\n".join(part for part in (item.title, item.text) if part)
    best = whole
    for ours in known:
        if (ours.fact_id, ours.title) == (item.fact_id, item.title):
            added = _inserted(ours.text, item.text)
            if added is not None and len(added) < len(best):
                best = added
    return best


def _inserted(before: str, after: str) -> str | None:
    """The lines of `after` that make `before` into it when put between its lines; None if it takes more."""
    wanted = [line.strip() for line in before.split("\n") if line.strip()]
    added: list[str] = []
    for line in after.split("\n"):
        if wanted and line.strip() == wanted[0]:
            del wanted[0]
        else:
            added.append(line)
    return None if wanted else "\n".join(added).strip("\n")


def _holds_our_block(data: bytes) -> bool:
    try:
        return is_ours(data)
    except MarkerError:
        return False


def _lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")
