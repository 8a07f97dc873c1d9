"""Which stores a call of a memory tool speaks of, and what its agent is told where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_bridge.errors import NotFoundError, RefusedError
from agent_bridge.mcp.ports import NoProject, StorePlace
from agent_bridge.memory.visible import one_line

if TYPE_CHECKING:
    from agent_bridge.mcp.call import Session
    from agent_bridge.mcp.ports import MemoryPort
    from agent_bridge.memory.fact import Fact

ReadScope = Literal["project", "global", "both"]
WriteScope = Literal["project", "global"]

_GLOBAL = 'Use scope "global" only for what holds in all of the user\'s projects.'


@dataclass(frozen=True, slots=True)
class Readable:
    """Stores to read, the project's first. `missing` says why there is none of a project that can be
    written, `trouble` what keeps an existing one from being read."""

    places: tuple[StorePlace, ...]
    missing: NoProject | None = None
    trouble: str = ""


def readable(memory: MemoryPort, start: Path | None, scope: ReadScope | None) -> Readable:
    """The stores that a reading tool looks through. Blocks; creates nothing."""
    places: list[StorePlace] = []
    missing: NoProject | None = None
    trouble = ""
    if scope != "global":
        try:
            found = memory.project(start)
        except RefusedError as error:
            trouble = error.sentence()
        else:
            missing = found if isinstance(found, NoProject) else None
            place = found.readable if isinstance(found, NoProject) else found
            places += [] if place is None else [place]
    if scope != "project":
        places.append(memory.everybodys())
    return Readable(tuple(places), missing, trouble)


def writable(memory: MemoryPort, start: Path | None, scope: WriteScope) -> StorePlace:
    """The store that a new fact goes into. Blocks. Raises NoProjectError, RefusedError."""
    if scope == "global":
        return memory.everybodys()
    found = memory.project(start)
    if isinstance(found, NoProject):
        raise NoProjectError(found, start)
    return found


def holding(
    memory: MemoryPort, start: Path | None, key: str, scope: WriteScope | None
) -> tuple[StorePlace, Fact, NoProject | None]:
    """The fact called `key`, and where it is; not None: why that store can't be written. Blocks.

    Raises NotFoundError, UsageError where several begin so.
    """
    seen = readable(memory, start, scope)
    for place in seen.places:
        try:
            fact = memory.serialized(place, lambda place=place: place.store.find(key))  # type: ignore[misc]
        except NotFoundError:
            continue
        return place, fact, seen.missing if place.scope == "project" else None
    where = "" if scope is None else f" in the {scope} memory"
    raise NotFoundError(
        f"There is no fact {one_line(key)[:200]}{where}.",
        detail=seen.trouble,
        remedy="recall and list_memory show ids.",
    )


class NoProjectError(RefusedError):
    """There is no project's memory to write into; `init` needs a person."""

    code = "no_project"

    def __init__(self, missing: NoProject, start: Path | None, *, is_told: bool = False) -> None:
        """`is_told`: the hint to run `init` was given before."""
        remedy = _GLOBAL if is_told else _remedy(missing)
        super().__init__(f"Nothing was written: {_why(missing, start)}", remedy=remedy)
        self.missing = missing


def told(session: Session, error: NoProjectError) -> NoProjectError:
    """The error for this session: with the hint to run `init` the first time only."""
    is_told, session.has_been_told_of_init = session.has_been_told_of_init, True
    return NoProjectError(error.missing, session.start, is_told=is_told)


def hint_once(session: Session, missing: NoProject | None) -> str:
    """The hint to run `init`, the first time that a session needs it; "" after that."""
    if missing is None or session.has_been_told_of_init:
        return ""
    session.has_been_told_of_init = True
    reads = "It can be read, not written." if missing.readable else "Only the global memory was looked at."
    return f"Note: {_why(missing, session.start)} {reads} {_remedy(missing)}"


def _why(missing: NoProject, start: Path | None) -> str:
    if missing.reason == "no-directory":
        if start is None:
            return "this client hasn't told a directory that it works in, so there is no project."
        return f"{_shown(start)} isn't a directory that can be looked into, so there is no project."
    if missing.reason == "no-repository":
        return f"{_shown(start)} isn't in a Git repository, so it has no project memory."
    return f"the project {_shown(missing.root)} isn't set up for agent-bridge, so it has no memory yet."


def _remedy(missing: NoProject) -> str:
    if missing.reason == "not-set-up":
        return f"Tell the user once: `agent-bridge init`, run there, sets it up. {_GLOBAL}"
    return _GLOBAL


def _shown(path: Path | None) -> str:
    return one_line(str(path))[:300]
