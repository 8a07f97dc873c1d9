"""The `@path` imports of Claude Code's instruction files. Pure.

Source: Claude Code 2.1.332, by running it. `@AGENTS.md`, `@./docs/x.md`, `@~/x.md` at the start of a run of
text or after white space, in paragraphs, headings, quotes, lists and tables; not in code spans, fenced or
indented code, comments and HTML blocks. Punctuation behind a path belongs to it. A path is relative to the
real directory of the file that names it; imported files may import.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MAX_DEPTH = 5
"""How deep imports of imports are followed."""

_TOKEN = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\]|\\ )+)", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_COMMENT_OPENS = re.compile(r"^ {0,3}<!--")
_HTML_OPENS = re.compile(
    r"^ {0,3}</?(?:address|article|aside|blockquote|body|center|dd|details|div|dl|dt|fieldset|figure|footer|"
    r"form|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|optgroup|option|p|pre|script|section|"
    r"style|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?:[\s/>]|$)",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"^\s*(?:[-+*]|\d{1,9}[.)])\s")
_INDENTED = re.compile(r"^(?: {4}| {0,3}\t)")
_TICKS = re.compile(r"`+")
_INLINE_BREAK = re.compile(r"<!--.{0,500}?-->|</?[A-Za-z][^<>]{0,200}>|\*+", re.DOTALL)
_START = re.compile(r"(?:\./|\.\./|~/|/|[A-Za-z0-9._-])")


def imports(text: str) -> tuple[str, ...]:
    """The paths that a text imports, as written, in order and without repeats. Time is linear in the text."""
    found: dict[str, None] = {}
    for paragraph in _paragraphs(text):
        for match in _TOKEN.finditer(_INLINE_BREAK.sub("\n", _without_spans(paragraph))):
            path = match[1].replace("\\ ", " ").partition("#")[0]
            if path and path != "/" and _START.match(path) and "\x00" not in path:
                found[path] = None
    return tuple(found)


def resolve(written: str, importer: Path, home: Path) -> Path:
    """Where an import leads: `~/` is the home, else relative to `importer`'s directory (its real path)."""
    if written.startswith("~/"):
        return Path(os.path.normpath(home / written[2:]))
    return Path(os.path.normpath(importer.parent / written))


def _paragraphs(text: str) -> list[str]:
    """Runs of prose lines: code blocks, HTML blocks and comments that stand alone are left out."""
    paragraphs: list[list[str]] = [[]]
    fence = ""
    comment = html = in_list = False
    for line in text.splitlines():
        if comment:
            comment = "-->" not in line
        elif fence:
            fence = "" if _closes(fence, line) else fence
        elif html:
            html = bool(line.strip())
        elif opened := _opened_fence(line):
            fence = opened
        elif _COMMENT_OPENS.match(line):
            comment = "-->" not in line
            paragraphs.append([line.partition("-->")[2]])
        elif _HTML_OPENS.match(line):
            html = True
        elif not paragraphs[-1] and not in_list and _INDENTED.match(line):
            pass
        elif line.strip():
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and (bool(paragraphs[-1]) or line[0] in " \t"))
            paragraphs[-1].append(line)
            continue
        paragraphs.append([])
    return ["\n".join(lines) for lines in paragraphs if lines]


def _opened_fence(line: str) -> str:
    match = _FENCE.match(line)
    return match[1] if match and not (match[1][0] == "`" and "`" in match[2]) else ""


def _closes(fence: str, line: str) -> bool:
    match = _FENCE.match(line)
    return bool(match and match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip())


def _without_spans(paragraph: str) -> str:
    """The paragraph with code spans blanked: a run of backticks up to the next run of the same length."""
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(paragraph)]
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[number][1] - runs[number][0], []).append(number)
    kept: list[str] = []
    at = number = 0
    while number < len(runs):
        start, end = runs[number]
        same = later[end - start]
        while same and same[-1] <= number:
            same.pop()
        if not same:
            number += 1
            continue
        closing = same[-1]
        kept += [paragraph[at:start], "`"]
        at = runs[closing][1]
        number = closing + 1
    return "".join([*kept, paragraph[at:]])
