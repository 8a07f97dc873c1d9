"""Make foreign text safe to stand inside a block of somebody's markdown file; find texts in such a file.

Everything here takes text and gives text. A fact is hostile until it went through `safe_body` or `safe_line`:
it may try to end our block, to hide what follows it, or to look like another fact. Agents read the raw text,
so changes are as small as the purpose allows: one backslash, one space, or more heading marks.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent_bridge.memory.similarity import normalise
from agent_bridge.memory.visible import one_line, visible

NOTICE_PREFIX = "**Left out here:**"

_EOL = re.compile("\r\n|\r|\n")
_OUR_COMMENT = re.compile(r"<!--(?=\s*agent-bridge)", re.IGNORECASE)
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_LIST_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|$)")
_CHECKBOX = re.compile(r"^\[[ xX]\] ")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_IMPORT = re.compile(r"(?<![A-Za-z0-9_`\\@])@(?=[A-Za-z0-9._~/-])")

_NONE = -1
_CONTAINED = -2


class Fences:
    """Follow fenced code through the lines of a text (CommonMark 4.5, without container blocks)."""

    __slots__ = ("marker",)

    def __init__(self) -> None:
        self.marker = ""  # the fence that is open, or nothing

    def covers(self, line: str) -> bool:
        """Whether `line` (the next, without its line end) belongs to fenced code; fences count as code."""
        if self.marker:
            stripped = line.strip(" \t")
            indent = len(line) - len(line.lstrip(" "))
            closes = stripped.startswith(self.marker) and not stripped.strip(self.marker[0])
            if closes and indent <= 3:
                self.marker = ""
            return True
        found = _FENCE.match(line)
        if found:
            self.marker = found[1] or found[2]
        return found is not None


def safe_body(text: str, *, below: int = 3) -> str:
    """A fact's or document's text, safe inside a block: LF lines, no blank ones around, nothing unclosed.

    Headings outside fenced code go below level `below`, underlined ones become `#` headings. Code fences that
    are open at the end are closed. `@path` in prose, which Claude Code would import, gets a backslash. A
    comment that isn't closed on its line, our markers in any spelling, and lines that look like Git's
    conflict markers or like the block's own notice are defused.
    """
    fences = Fences()
    out: list[str] = []
    lines = _without_imports(_visible(text).split("\n"))
    paragraph = _NONE  # where in `out` the paragraph began that an underline would turn into a heading
    for line in lines:
        if fences.covers(line):
            out.append(_not_conflict(line))
            paragraph = _NONE
        elif (underline := _UNDERLINE.match(line)) and paragraph >= 0:
            title = " ".join(part.strip() for part in out[paragraph:])
            out[paragraph:] = [_heading(below + (1 if underline[1][0] == "=" else 2), title)]
            paragraph = _NONE
        elif heading := _ATX.match(line):
            out.append(_heading(below + len(heading[1]), _defused(heading[2] or "")))
            paragraph = _NONE
        else:
            paragraph = _paragraph_after(line, paragraph, len(out))
            out.append(_defused(line))
    if fences.marker:
        out.append(fences.marker)
    while out and not out[0].strip():
        del out[0]
    while out and not out[-1].strip():
        out.pop()
    return "\n".join(out)


def safe_line(text: str) -> str:
    """A title, name or hook as one line: no line breaks, control characters, heading marks, comments."""
    (line,) = _without_imports([one_line(text)])
    return re.sub(r"^(?:#+(?: |$))+", "", line).strip()


def first_heading(text: str) -> tuple[str, str]:
    """(heading, rest) when `text` (from `safe_body`) begins with a heading, else ("", text)."""
    line, _, rest = text.partition("\n")
    found = _ATX.match(line)
    if not found:
        return "", text
    title = (found[2] or "").strip()
    unclosed = title.rstrip("#")
    if not unclosed or unclosed[-1] in " \t":
        title = unclosed.rstrip()
    return title, rest.lstrip("\n")


@lru_cache(maxsize=32)  # what people wrote around a block stays the same over many renderings
def whole_texts(text: str) -> frozenset[str]:
    """Each paragraph and list item of a markdown text, normalised. Comments, headings and code aren't.

    An item with a checkbox is there with it and without.
    """
    found: set[str] = set()
    current: list[str] = []

    def flush() -> None:
        if current:
            whole = normalise("\n".join(current))
            found.update((whole, _CHECKBOX.sub("", whole, count=1)))
            current.clear()

    fences = Fences()
    for line in _EOL.split(_without_comments(text)):
        if fences.covers(line) or not line.strip() or _ATX.match(line) or _RULE.match(line):
            flush()
            continue
        item = _LIST_ITEM.match(line)
        if item:
            flush()
            current.append(item[2] or "")
        else:
            current.append(line)
    flush()
    found.discard("")
    return frozenset(found)


def _without_imports(lines: list[str]) -> list[str]:
    """The lines with every `@path` outside code defused.

    Where code spans can't be told line by line (a run of backticks without its partner), those inside spans
    are defused too: what Claude Code takes for a span may then be none.
    """
    plain = [not line.strip("`~ ") or "`" not in _SPAN.sub("", line) for line in lines]
    fences = Fences()
    covered = [fences.covers(line) for line in lines]
    spans_hold = all(ok or code for ok, code in zip(plain, covered, strict=True))

    def defused(line: str) -> str:
        if not spans_hold:
            return _IMPORT.sub(r"\\@", line)
        parts: list[str] = []
        end = 0
        for span in _SPAN.finditer(line):
            parts += [_IMPORT.sub(r"\\@", line[end : span.start()]), span[0]]
            end = span.end()
        return "".join([*parts, _IMPORT.sub(r"\\@", line[end:])])

    return [
        line if code or "@" not in line else defused(line) for line, code in zip(lines, covered, strict=True)
    ]


def _visible(text: str) -> str:
    return _OUR_COMMENT.sub("<\\!--", visible(text))


def _defused(line: str) -> str:
    closed = max(line.rfind("-->") - 3, 0)  # a comment that begins from here on has no end on this line
    line = _not_conflict(line[:closed] + line[closed:].replace("<!--", "<\\!--"))
    return "\\" + line if line.startswith(NOTICE_PREFIX) else line


def _not_conflict(line: str) -> str:
    return " " + line if _CONFLICT.match(line) else line


def _heading(level: int, text: str) -> str:
    return f"{'#' * min(level, 6)} {text}".rstrip()


def _paragraph_after(line: str, paragraph: int, here: int) -> int:
    """Where the paragraph begins that `line` belongs to: an index, `_NONE`, `_CONTAINED` (list, quote)."""
    if not line.strip() or _RULE.match(line):
        return _NONE
    if line[0] == ">" or _LIST_ITEM.match(line) or (line[0] in " \t" and paragraph == _NONE):
        return _CONTAINED
    return here if paragraph == _NONE else paragraph


def _without_comments(text: str) -> str:
    return _COMMENT.sub("", text) if "<!--" in text else text
