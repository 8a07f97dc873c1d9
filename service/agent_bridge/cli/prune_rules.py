"""Which rows of the list of sessions are pruned, and what that takes: rules without a process or a clock.

Four classes: *dead* (no such process: the row goes), *orphaned* (alive, without a terminal or taken over by
init: ended on request), *live* (ended only when named or with everything), *remote* (another machine's: never
touched). A living process that only lost its row would come back with its next heartbeat, so it is ended.
What can't be told for certain counts as live.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agent_bridge.daemon.processes import Process

_SLACK_MS = 5000
"""A process may have been seen to start so much after it registered: clocks are read in whole seconds."""


class Class(StrEnum):
    """What a row's process is."""

    DEAD = "dead"
    ORPHANED = "orphaned"
    LIVE = "live"
    REMOTE = "remote"


class Action(StrEnum):
    """What is done about a row."""

    REMOVE = "remove"
    """Take the row out of the list."""
    END = "end"
    """End the process, then take the row out."""
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a row says of its process; each may be missing. `registered_at` is the registry's, in ms."""

    agent_id: str
    pid: int | None
    host: str | None
    registered_at: int | None


@dataclass(frozen=True, slots=True)
class Here:
    """This machine and user; `spared` are processes that are never ended, each with why."""

    host: str
    user: int
    spared: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the system says of a row's number: a process, that there is none, or nothing (`is_hidden`)."""

    process: Process | None = None
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A row with its class; `why` says what that rests on. `process` only where it may be ended.

    `protection` says why it is never ended, whoever asks.
    """

    claim: Claim
    kind: Class
    why: str
    process: Process | None = None
    protection: str = ""


def is_local(claim: Claim, here: Here) -> bool:
    """Whether the row says that it is a process of this machine."""
    return claim.host is not None and claim.host.casefold() == here.host.casefold()


def judge(claim: Claim, seen: Seen, here: Here) -> Judged:
    """The class of a row; `seen` is what was found for its number, where it is local."""
    if claim.host is None:
        return Judged(claim, Class.REMOTE, "it doesn't say on which machine it runs", protection="unknown")
    if not is_local(claim, here):
        return Judged(claim, Class.REMOTE, f"it runs on {claim.host}", protection="another machine's")
    if claim.pid is None:
        return Judged(claim, Class.LIVE, "it names no process", protection="it names no process")
    if seen.is_hidden:
        hidden = f"process {claim.pid} can't be looked at"
        return Judged(claim, Class.LIVE, hidden, protection=hidden)
    process = seen.process
    if process is None:
        return Judged(claim, Class.DEAD, f"there is no process {claim.pid}")
    if claim.registered_at is not None and process.started_at > claim.registered_at + _SLACK_MS:
        return Judged(claim, Class.DEAD, f"process {claim.pid} is another one, started later")
    protection = _protection(process, here)
    if protection:
        return Judged(claim, Class.LIVE, protection, protection=protection)
    if process.is_adopted:
        return Judged(claim, Class.ORPHANED, "its parent is gone", process)
    if not process.has_terminal:
        return Judged(claim, Class.ORPHANED, "it has no terminal", process)
    return Judged(claim, Class.LIVE, "it has a terminal", process)


def action(judged: Judged, *, named: bool, orphans: bool, everything: bool) -> Action:
    """What is done about a row; `named` says that the person named it."""
    if judged.kind is Class.DEAD:
        return Action.REMOVE
    if judged.process is None:
        return Action.KEEP
    if named or everything or (orphans and judged.kind is Class.ORPHANED):
        return Action.END
    return Action.KEEP


def _protection(process: Process, here: Here) -> str:
    if process.pid == 1:
        return "process 1 is the machine's own"
    if process.user != here.user:
        return f"process {process.pid} is another user's"
    return here.spared.get(process.pid, "")
