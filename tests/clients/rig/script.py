"""What a fake model answers: a list of turns, each text, tool calls, or both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]
"""A request's JSON body, as the client sent it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the model. `input` is what the client's schema for that tool asks for."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Again:
    """Said by a turn that isn't over: the next request is for the same turn."""

    call: Call


Said: TypeAlias = str | Call | Sequence[str | Call]
Turn: TypeAlias = Said | Callable[[Body], Said | Again]
"""One answer of the model; a function computes it from the request it answers."""


def write(path: Path, content: str) -> Call:
    """Claude's Write: create or replace a whole file."""
    return Call("Write", {"file_path": str(path), "content": content})


def edit(path: Path, old: str, new: str) -> Call:
    """Claude's Edit: replace one text by another. The client wants a Read of the file before it."""
    return Call("Edit", {"file_path": str(path), "old_string": old, "new_string": new})


def read(path: Path) -> Call:
    """Claude's Read."""
    return Call("Read", {"file_path": str(path)})


def bash(command: str) -> Call:
    """Claude's Bash."""
    return Call("Bash", {"command": command, "description": "scripted by a test"})


class Script:
    """Hands out the turns in order, from whichever thread asks; after the last one it says "done"."""

    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self._turns = list(turns)
        self._next = 0
        self._lock = threading.Lock()
        self.failure: Exception | None = None
        """What a turn's function raised. The runner raises it again where the test can see it."""

    def answer(self, body: Body) -> tuple[str | Call, ...]:
        """The next turn, as a tuple of texts and calls."""
        with self._lock:
            if self._next == len(self._turns):
                return ("done",)
            turn = self._turns[self._next]
            self._next += 1
        try:
            said = turn(body) if callable(turn) else turn
        except Exception as failure:
            self.failure = failure
            raise
        if isinstance(said, Again):
            with self._lock:
                self._next -= 1
            return (said.call,)
        return (said,) if isinstance(said, str | Call) else tuple(said)

    def add(self, turns: Sequence[Turn]) -> None:
        """Say these after the others."""
        with self._lock:
            self._turns += turns

    @property
    def left(self) -> int:
        """How many turns nobody has asked for."""
        return len(self._turns) - self._next
