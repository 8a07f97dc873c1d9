"""How an explanation looks: text for people, 80 columns wide, and objects for programs."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

from agent_bridge.cli.result import Json, counted
from agent_bridge.harnesses.base import Read
from agent_bridge.memory.visible import shortened
from agent_bridge.projection.explain import Double, Explanation, Missing

_WIDTH = 80
_SOME = 5
"""Ids and doubles that are named; the rest is counted. `--json` has all."""


def explanation_json(one: Explanation) -> dict[str, Json]:
    """The stable fields."""
    return {
        "name": one.name,
        "title": one.title,
        "reads": [_read_json(one, read) for read in one.reads if not read.hidden],
        "hidden": [
            {"path": str(read.path), "size": read.size, "why": read.why, "hidden": read.hidden}
            for read in one.reads
            if read.hidden
        ],
        "doubles": [
            {"fact": double.fact or None, "text": double.text, "files": [str(path) for path in double.files]}
            for double in one.doubles
        ],
        "missing": [
            {
                "why": group.why.value,
                "text": group.text,
                "scope": group.scope.value,
                "facts": list(group.facts),
                "titled": list(group.titled),
            }
            for group in one.missing
        ],
        "notices": [
            {
                "level": notice.level,
                "code": notice.code,
                "text": notice.text,
                "path": None if notice.path is None else str(notice.path),
            }
            for notice in one.notices
        ],
        "advice": list(one.advice),
    }


def explanation_text(one: Explanation, start: Path) -> str:
    """The same for people."""
    lines = [f"{one.title}, started in {_short(start)}", ""]
    lines += list(_read_lines(one)) or ["  It reads no file."]
    hidden = [read for read in one.reads if read.hidden]
    if hidden:
        lines += ["", "  Not read:"]
        for read in hidden:
            lines += _wrapped(f"{_short(read.path)}: {read.hidden}")
    if one.doubles:
        lines += ["", "  Shown twice:"]
        for double in one.doubles[:_SOME]:
            lines += _wrapped(_double_text(double))
        lines += _more(len(one.doubles))
    if one.missing:
        lines += ["", "  Facts whose texts it doesn't get:"]
        for group in one.missing:
            lines += _wrapped(_missing_text(group))
    if one.notices:
        lines += ["", "  To know:"]
        for notice in one.notices:
            lines += _wrapped(notice.text)
    if one.advice:
        lines += ["", "  To do:"]
        for text in one.advice[:_SOME]:
            lines += _wrapped(text)
        lines += _more(len(one.advice))
    return "\n".join(lines)


def _read_lines(one: Explanation) -> Iterator[str]:
    read = [read for read in one.reads if not read.hidden]
    for number, each in enumerate(read, 1):
        size = f"{each.shown:,} bytes"
        if each.cut:
            size = f"{each.shown:,} of {each.size:,} bytes"
        count = one.shown.get(each.path, 0)
        told = f", {counted(count, 'fact')}" if count else ""
        name = _short(each.path)
        first = f"  {number:>2}  {name}"
        if len(first) + len(size) + len(told) + 2 <= _WIDTH:
            yield f"{first}  {size}{told}"
        else:
            yield first
            yield f"      {size}{told}"
        yield from _wrapped(each.why, "      ")
        if each.cut:
            yield from _wrapped(f"cut: {each.cut}", "      ")


def _read_json(one: Explanation, read: Read) -> dict[str, Json]:
    return {
        "path": str(read.path),
        "size": read.size,
        "shown": read.shown,
        "why": read.why,
        "cut": read.cut or None,
        "facts": one.shown.get(read.path, 0),
    }


def _double_text(double: Double) -> str:
    what = f"[{double.fact}] {double.text}" if double.fact else f"“{shortened(double.text, 60)}”"
    return f"{what}: in {' and '.join(_short(path) for path in double.files)}"


def _missing_text(group: Missing) -> str:
    some = ", ".join(group.facts[:_SOME]) + (", …" if len(group.facts) > _SOME else "")
    titled = "; its title is shown" if len(group.facts) == 1 else f"; {len(group.titled)} titles are shown"
    whose = "" if group.scope.value == "project" else " for all projects"
    count = counted(len(group.facts), "fact")
    return f"{count}{whose}, {group.text}{titled if group.titled else ''}: {some}"


def _more(count: int) -> list[str]:
    return [f"    … and {count - _SOME} more"] if count > _SOME else []


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    """Lines of at most 80 columns; a path isn't broken."""
    shown = text.replace(str(Path.home()) + os.sep, "~" + os.sep)
    return textwrap.wrap(
        shown,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + ("  " if indent == "    " else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
