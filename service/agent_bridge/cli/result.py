"""What a command returns: a value that is printed for people or as versioned JSON, in one place.

The JSON envelope is `{"schema": 1, "command", "data", "messages", "errors"}`; the field names are stable.
Named tuples rather than dataclasses: `status` is asked for often, and importing dataclasses takes a third of
its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent_bridge.errors import EXIT_DONE

if TYPE_CHECKING:
    from agent_bridge.errors import AgentBridgeError

SCHEMA = 1

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


class Message(NamedTuple):
    """A remark beside the answer; `level` is "info" or "warning"."""

    level: str
    text: str


class Table(NamedTuple):
    """Rows for people; when piped, one line a row with only the `piped` columns, joined by " | "."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    piped: tuple[int, ...]


class Result(NamedTuple):
    """The outcome of `command`: `view` is the answer for people, `data` the same for programs."""

    command: str
    data: Json = None
    view: tuple[str | Table, ...] = ()
    messages: tuple[Message, ...] = ()
    errors: tuple[Mapping[str, str], ...] = ()
    exit_code: int = EXIT_DONE

    def envelope(self) -> dict[str, Json]:
        """The JSON form, without the view."""
        return {
            "schema": SCHEMA,
            "command": self.command,
            "data": self.data,
            "messages": [message._asdict() for message in self.messages],
            "errors": list(self.errors),
        }


def failure(command: str, error: AgentBridgeError, *, data: Json = None) -> Result:
    """The result of a command that ended with `error`."""
    return Result(command, data=data, errors=(error.as_dict(),), exit_code=error.exit_code)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 fact", "2 facts", "2 memories"."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else many}"


def info(text: str) -> Message:
    """A remark that asks for nothing."""
    return Message("info", text)


def warning(text: str) -> Message:
    """A remark that a person should act on or know."""
    return Message("warning", text)
