"""What the edits of somebody's JSON and TOML have in common: their text, and the refusal to change a key."""

from __future__ import annotations

from collections.abc import Sequence

from agent_bridge.errors import RefusedError

BOM = b"\xef\xbb\xbf"


def text_of(data: bytes) -> str:
    """A file's text without its byte order mark. Raises RefusedError (line, column) for what isn't UTF-8."""
    body = data.removeprefix(BOM)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        column = error.start - body.rfind(b"\n", 0, error.start)
        raise RefusedError(
            "The file isn't UTF-8.", detail=f"line {line}, column {column}", remedy="Save it as UTF-8."
        ) from error


def bytes_of(text: str, *, like: bytes) -> bytes:
    """The bytes of a changed text, with the byte order mark that the file had."""
    return (BOM if like.startswith(BOM) else b"") + text.encode("utf-8")


def eol_of(text: str) -> str:
    """The line end that most lines have."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def place_of(text: str, at: int) -> str:
    """An offset in words, in lines and columns from 1."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}"


def unwritable(key: Sequence[str], why: str) -> RefusedError:
    """The error for a key that can't be changed without changing more than it."""
    return RefusedError(
        f"`{'.'.join(key)}` can't be changed in this file.", detail=why, remedy="Change it by hand."
    )
