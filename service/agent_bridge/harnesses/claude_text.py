"""How Claude Code shows the text of a file: without front matter, comments and outer white space. Pure.

Source: Claude Code 2.1.332, by running it. A comment that begins a line goes with the empty lines behind it;
one inside a line, in code or in a list item stays. Line ends become LF where a comment was taken out.
MEMORY.md is cut at 200 lines, then at the last line end before 25,000 characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_bridge.harnesses.markdown import Fences
from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import FactProblem

INDEX_LINES, INDEX_CHARACTERS = 200, 25_000

_OPENS = re.compile(r" {0,3}<!--")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LIST_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as the model gets it, and what was cut off for a limit, in words ("": nothing)."""

    text: str
    cut: str = ""


def shown(data: bytes) -> str:
    """An instruction file's text."""
    return _without_comments(_parts(data)[1]).strip()


def shown_index(data: bytes) -> Shown:
    """MEMORY.md's text. Characters are UTF-16 code units there; those outside of the BMP are rare enough."""
    text = shown(data)
    lines = text.split("\n")
    kept = "\n".join(lines[:INDEX_LINES])
    if len(kept) > INDEX_CHARACTERS:
        end = kept.rfind("\n", 0, INDEX_CHARACTERS + 1)
        kept = kept[: end if end > 0 else INDEX_CHARACTERS]
    if kept == text:
        return Shown(text)
    left = len(lines) - (kept.count("\n") + 1)
    what = f"the last {left} of {len(lines)} lines" if left else f"all after {INDEX_CHARACTERS:,} characters"
    limit = f"{INDEX_LINES} lines and {INDEX_CHARACTERS:,} characters"
    return Shown(kept, f"{what}: Claude Code loads at most {limit} of MEMORY.md")


def only_for_paths(data: bytes) -> bool:
    """Whether a rules file is for certain files alone, by `paths` in its front matter: read later."""
    try:
        values = frontmatter.read_mapping(_parts(data)[0]).get("paths")
    except FactProblem:
        return False
    listed = values if isinstance(values, list) else [values]
    patterns = [part.strip() for value in listed if isinstance(value, str) for part in value.split(",")]
    patterns = [pattern.removesuffix("/**") for pattern in patterns]
    return any(pattern not in ("", "**") for pattern in patterns)


def _parts(data: bytes) -> tuple[str, str]:
    """Front matter and the rest."""
    text = data.decode("utf-8-sig", "replace")
    try:
        parts = frontmatter.split(text)
    except FactProblem:  # front matter of over 64 KiB
        return "", text
    return (text[parts.start : parts.end], text[parts.body :]) if parts.closed else ("", text)


def _without_comments(text: str) -> str:
    if "<!--" not in text:
        return text
    fences = Fences()
    out: list[str] = []
    lines = text.replace("\r\n", "\n").split("\n")
    taken = in_list = False
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[:1] in ("", " ", "\t"))
        if fences.covers(line) or not _OPENS.match(line) or (in_list and line[0] == " "):
            out.append(line)
            continue
        whole = [line]
        while "-->" not in whole[-1] and at < len(lines):
            whole.append(lines[at])
            at += 1
        block = "\n".join(whole)
        rest = _COMMENT.sub("", block)
        taken = taken or rest != block  # one that is never closed stays
        if rest.strip():
            out.append(rest)
            continue
        while at < len(lines) and not lines[at]:
            at += 1
    return "\n".join(out) if taken else text


__all__ = ["Shown", "only_for_paths", "shown", "shown_index"]
