"""Which of a checkout's files Gemini CLI loads, imports too. Pure.

Source: Gemini CLI 0.61.0, by running it; `gemini_imports` says what an import is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_bridge.harnesses import gemini_imports, managed_block
from agent_bridge.harnesses.base import InstructionFile, Site

_FOLLOWED = (".md", ".mdc", ".txt")
"""Suffixes of imported files that could hold a block; other ones are shown, but decide nothing."""


def loaded(site: Site, names: Iterable[str], place: Path, root: Path) -> tuple[InstructionFile, ...]:
    """The files of these names in `place` that can be read, then what they import from below `root`.

    An imported file that isn't there is part of the answer: it is read as soon as it is.
    """
    found = [file for name in names if (file := site.file(place / name)).readable]
    fresh = list(found)
    for _ in range(gemini_imports.MAX_DEPTH):
        imported = [site.file(path) for file in fresh for path in imported_by(file)]
        known = {file.path for file in found}
        fresh = [
            one for one in dict.fromkeys(imported) if one.path not in known and one.real.is_relative_to(root)
        ]
        found += fresh
    return tuple(found)


def imported_by(file: InstructionFile) -> tuple[Path, ...]:
    """The files that a file's own text imports. Our block doesn't count: it must not decide its place."""
    if not file.readable:
        return ()
    text = b"\n".join(managed_block.around(file.data)).decode("utf-8", "replace")
    paths = (gemini_imports.resolve(found.path, file.path.parent) for found in gemini_imports.imports(text))
    return tuple(dict.fromkeys(path for path in paths if path.suffix in _FOLLOWED))


def import_would_work(data: bytes, text: str) -> bool:
    """Whether an import behind the user's text, or where our block stands in it, is none in code."""
    before, after = managed_block.around(data)
    start = before.decode("utf-8", "replace") + "\n"
    whole = f"{start}{text}\n{after.decode('utf-8', 'replace')}"
    at = len(start) + text.index("@")
    return any(found.start == at for found in gemini_imports.imports(whole))


def imports_in_block(data: bytes) -> tuple[str, ...]:
    """Paths in our block that Gemini CLI takes for imports."""
    before, after = (part.decode("utf-8", "surrogateescape") for part in managed_block.around(data))
    text = data.decode("utf-8", "surrogateescape")
    start, end = len(before), len(text) - len(after)
    return tuple(found.path for found in gemini_imports.imports(text) if start <= found.start < end)
