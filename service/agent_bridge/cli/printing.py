"""The one module that prints: a result for people or as JSON, and the questions that a command asks.

Answers go to stdout; remarks, errors and questions to stderr. Text from facts and files is hostile: control
characters, terminal escapes, and marks that reorder text or that nobody sees, are shown as `\\x1b` and the
like, never sent.
Rich is loaded only for a table at a terminal; into a pipe goes plain text.
"""

# ruff: noqa: T201 - this is where printing is done

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_bridge.cli.result import Result, Table

_READABLE = 18
"""Characters of a folded cell that are still read as text."""
_BETWEEN = 3
"""What a table puts between two columns."""
_REORDERING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x2028, 0x2029)
# What a person doesn't see and a model reads. Joiners aren't among them: scripts and emoji need those.
_UNSEEN = (0xAD, 0x200B, *range(0x2060, 0x2065), 0xFEFF, *range(0xE0000, 0xE0080))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), *_REORDERING, *_UNSEEN)
_SHOWN = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    for code in _CONTROLS
}
_BLOCK = {code: shown for code, shown in _SHOWN.items() if chr(code) not in "\n\t"}
_LINE = _SHOWN | {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}


def show(result: Result, *, as_json: bool) -> None:
    """Print `result` and flush, so that a closed pipe is noticed here."""
    for stream in (sys.stdout, sys.stderr):
        _print_what_it_can(stream)
    if as_json:
        _show_json(result)
        return
    for part in result.view:
        if isinstance(part, str):
            print(harmless(part))
        else:
            _show_table(part)
    sys.stdout.flush()
    for message in result.messages:
        prefix = "" if message.level == "info" else f"{message.level}: "
        print(prefix + harmless(message.text), file=sys.stderr)
    for error in result.errors:
        print(_error_text(error), file=sys.stderr)
    sys.stderr.flush()


def ask(question: str) -> bool:
    """Put `question` to the person at the terminal; anything but yes is no."""
    print(harmless(question) + " [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def tell(text: str) -> None:
    """Show what a question is about, before it is asked; on stderr like the question itself."""
    _print_what_it_can(sys.stderr)
    print(harmless(text), file=sys.stderr, flush=True)


def put(line: str) -> None:
    """Print one line at once: for commands that show something before they end, such as `service run`."""
    _print_what_it_can(sys.stdout)
    print(harmless(line), flush=True)


def harmless(text: str) -> str:
    """`text` with everything that could move the cursor, change the terminal or reorder text made visible."""
    return text.replace("\r\n", "\n").translate(_BLOCK)


def harmless_line(text: str) -> str:
    """The same, on one line."""
    return text.translate(_LINE)


def _show_json(result: Result) -> None:
    import json

    # ASCII: no escape sequence, lone surrogate or narrow locale can break it.
    print(json.dumps(result.envelope(), indent=2), flush=True)


def _show_table(table: Table) -> None:
    if not table.rows:
        return
    if not sys.stdout.isatty():
        for row in table.rows:
            print(" | ".join(harmless_line(row[column]) for column in table.piped))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console

    if len(table.columns) > 2 and _least_width(table) > Console().width:
        for row in table.rows:
            print(harmless_line(row[0]), "  " + "  ".join(map(harmless_line, row[1:])), sep="\n")
        return
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(table.columns):
        shown.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(harmless_line(cell)) for cell in row))
    Console().print(shown)


def _least_width(table: Table) -> int:
    """Columns that a terminal needs so that the table's cells are still read as words."""
    widths = [max(map(len, cells)) for cells in zip(table.columns, *table.rows, strict=True)]
    return widths[0] + sum(min(width, _READABLE) for width in widths[1:]) + _BETWEEN * len(widths)


def _error_text(error: Mapping[str, str]) -> str:
    title, path = error.get("title", ""), error.get("path", "")
    if path and path not in title:
        title = f"{title.removesuffix('.')}: {path}"
    first = "agent-bridge: " + title
    rest = [error[key] for key in ("detail", "remedy") if error.get(key)]
    return harmless("\n  ".join([first, *("\n  ".join(text.splitlines()) for text in rest)]))


def _print_what_it_can(stream: TextIO) -> None:
    """A terminal without UTF-8 gets escapes instead of a crash."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def silence() -> None:
    """Point stdout at nothing once it takes nothing, so that the interpreter's last flush can't fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
