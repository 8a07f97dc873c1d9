"""A merge driver for files with a block: Git merges the user's text, our side's block stays.

Two branches that both render facts always differ inside the block, and it is rendered anew anyway. So the
block is taken out of all three versions, `git merge-file` merges the rest, and our side's block is put back.
Text that somebody wrote into the other side's block is carried over, for the projection to judge.

Formats: gitattributes(5), "Defining a custom merge driver"; %S %X %Y (the labels) exist since Git 2.44.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.errors import MarkerError
from agent_bridge.harnesses.block_body import Item, escape_id, hash_valid, items
from agent_bridge.harnesses.managed_block import (
    BlockSpan,
    block_text,
    dominant_eol,
    find_block,
    remove,
    splice,
)

NAME = "agent-bridge"
MERGED = 0
CONFLICTS = 10
"""Merged, with conflicts marked. Not 1: that is also how a broken Python installation exits."""
NOT_MERGED = 3
"""Nothing was done to any file; the configuration line goes on with Git's own merge."""

_LABELS = ("ours", "base", "theirs")
_LABELS_SINCE = (2, 44)


@dataclass(frozen=True, slots=True)
class Merge:
    """How to merge: the length of conflict markers, and the labels of our side, the base and theirs."""

    marker_size: int = 7
    labels: tuple[str, str, str] = _LABELS


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged text, and whether it holds conflicts."""

    data: bytes
    conflicts: bool


def main(argv: Sequence[str]) -> int:
    """`agent-bridge merge-driver %O %A %B %L %P [%S %X %Y]`: merges into the file %A.

    Returns MERGED, CONFLICTS, or NOT_MERGED when the file is as it was.
    """
    if len(argv) not in (5, 8) or not argv[3].isdigit():
        return NOT_MERGED
    base_file, our_file, their_file = (Path(name) for name in argv[:3])
    aside = our_file.with_name(f".{our_file.name}.agent-bridge.tmp")
    labels = (argv[6], argv[5], argv[7]) if len(argv) == 8 else _LABELS
    try:
        ours, base, theirs = (file.read_bytes() for file in (our_file, base_file, their_file))
        merged = merge(ours, base, theirs, Merge(int(argv[3]), labels))
        if merged is None:
            return NOT_MERGED
        aside.write_bytes(merged.data)
        aside.replace(our_file)
    except OSError as error:
        sys.stderr.write(f"agent-bridge merge-driver: {error}\n")
        aside.unlink(missing_ok=True)
        return NOT_MERGED
    return CONFLICTS if merged.conflicts else MERGED


def settings(program: Path, git_version: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    """The keys and values of the driver for the repository's own Git configuration."""
    return (
        (f"merge.{NAME}.name", "merge around the memory block, keep the block"),
        (f"merge.{NAME}.driver", driver_command(program, git_version)),
    )


def driver_command(program: Path, git_version: tuple[int, ...]) -> str:
    """The shell text that Git runs: our program, or `git merge-file` where that is missing or fails.

    `program`: absolute path of the `agent-bridge` command.
    """
    quoted = shlex.quote(str(program)).replace("%", "%%")
    labels = " %S %X %Y" if git_version >= _LABELS_SINCE else ""
    ours, base, theirs = ("%X", "%S", "%Y") if labels else _LABELS
    return (
        f"p={quoted}; "
        f'if test -x "$p"; then "$p" merge-driver %O %A %B %L %P{labels}; '
        f"case $? in {MERGED}) exit 0;; {CONFLICTS}) exit 1;; esac; fi; "
        f"git merge-file -q --marker-size=%L -L {ours} -L {base} -L {theirs} %A %O %B || exit 1"
    )


def may_drive(merge_attribute: str) -> bool:
    """Whether a file may be given to the driver, by its `merge` attribute (`git.attribute`) as it is now.

    `info/attributes` beats every `.gitattributes`: where a project has chosen a way to merge, that stays.
    """
    return merge_attribute in ("unspecified", NAME)


def attribute_lines(relpaths: Iterable[str]) -> list[str]:
    """Lines for `info/attributes` that give files (from the top of the checkout, with `/`) to the driver.

    A name that such a file can't express exactly gets none.
    """
    return [f"{pattern} merge={NAME}" for path in sorted(set(relpaths)) if (pattern := _pattern(path))]


def own_program() -> Path | None:
    """The `agent-bridge` command that belongs to this Python, else the one on PATH."""
    beside = Path(sys.executable).with_name("agent-bridge")
    if beside.is_file():
        return beside
    found = shutil.which("agent-bridge")
    return Path(found).absolute() if found else None


def merge(ours: bytes, base: bytes, theirs: bytes, how: Merge) -> Merged | None:
    """Merge three versions of a file; None where only Git's plain merge will do.

    That is where the markers of a version are broken, no version has a block, or Git refuses (binary files).
    """
    try:
        our_block, base_block, their_block = find_block(ours), find_block(base), find_block(theirs)
    except MarkerError:
        return None
    if our_block is None and base_block is None and their_block is None:
        return None
    if our_block is None or their_block is None or base_block is None:
        body = _body_of_some(ours, base_block, theirs)
        return _merge_texts(ours, base, theirs, body, how)
    block = _kept_block(ours, our_block, base_block, their_block)
    versions = (_cut(ours, our_block), _cut(base, base_block), _cut(theirs, their_block))
    place = _placeholder(ours, base, theirs)
    our_text, base_text, their_text = (cut.around(place) for cut in versions)
    merged = merge_file(our_text, base_text, their_text, how)
    if merged is None or not _once_and_agreed(merged.data, place, how.marker_size):
        merged = _merge_halves(versions, place, how)
    if merged is None:
        return None
    data = merged.data.replace(place, block)
    last = block + versions[0].eol
    if data.endswith(last) and not _last_line_ended(*(cut.ended for cut in versions)):
        data = data.removesuffix(versions[0].eol)
    return Merged(data, merged.conflicts)


def merge_file(ours: bytes, base: bytes, theirs: bytes, how: Merge) -> Merged | None:
    """What `git merge-file` makes of three texts (conflict style as configured); None where it refuses."""
    with tempfile.TemporaryDirectory(prefix="agent-bridge-") as directory:
        names = [Path(directory, name) for name in _LABELS]
        for name, data in zip(names, (ours, base, theirs), strict=True):
            name.write_bytes(data)
        labels = [word for label in how.labels for word in ("-L", label)]
        command = ["git", "merge-file", "-p", "-q", f"--marker-size={how.marker_size}", *labels]
        # The environment is Git's own on purpose: it says which repository's settings count.
        done = subprocess.run([*command, *names], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if not 0 <= done.returncode <= 127:
        return None
    return Merged(done.stdout, done.returncode > 0)


def _kept_block(ours: bytes, our_block: BlockSpan, base: BlockSpan | None, theirs: BlockSpan) -> bytes:
    """Our side's block, with what somebody wrote into the other side's; its hash then fits no more."""
    kept = ours[our_block.start : our_block.end]
    if hash_valid(theirs.body):
        return kept
    known = {item.key for block in (our_block, base) if block is not None for item in items(block.body)}
    foreign = [_as_written(item) for item in items(theirs.body) if item.key not in known]
    if not foreign:
        return kept
    eol = dominant_eol(kept) or b"\n"
    end_marker = kept.rpartition(eol)[2]
    added = "\n\n" + "\n\n".join(foreign) + "\n"
    return (
        kept[: len(kept) - len(end_marker)]
        + added.encode("utf-8", "replace").replace(b"\n", eol)
        + end_marker
    )


def _as_written(item: Item) -> str:
    if item.fact_id is not None:
        heading = f"### {item.title} [{escape_id(item.fact_id)}]"
    else:
        heading = f"### {item.title}" if item.title else ""
    return "\n\n".join(part for part in (heading, item.text) if part)


def _body_of_some(ours: bytes, base_block: BlockSpan | None, theirs: bytes) -> str | None:
    """The block to keep where not all versions have one; None where our side took it away for good.

    That is so unless somebody wrote into theirs: the projection then judges what it is.
    """
    our_block, their_block = find_block(ours), find_block(theirs)
    if our_block is not None and their_block is not None:
        return block_text(_kept_block(ours, our_block, base_block, their_block))
    if our_block is not None:
        return block_text(ours)
    taken_away = base_block is not None and their_block is not None and hash_valid(their_block.body)
    return None if taken_away else block_text(theirs)


def _merge_texts(ours: bytes, base: bytes, theirs: bytes, body: str | None, how: Merge) -> Merged | None:
    """Merge what the versions are without their blocks, and put the one to keep at the end."""
    merged = merge_file(remove(ours), remove(base), remove(theirs), how)
    if merged is None or body is None:
        return merged
    return Merged(splice(merged.data, body).data, merged.conflicts)


def _merge_halves(versions: Sequence[_Cut], place: bytes, how: Merge) -> Merged | None:
    """Merge what stands above the block and what stands below it, each for itself.

    Git joins conflicts that lie close together, also across our placeholder; this keeps the block out.
    """
    ours, base, theirs = versions
    above = merge_file(ours.above, base.above, theirs.above, how)
    below = merge_file(ours.below, base.below, theirs.below, how)
    if above is None or below is None:
        return None
    return Merged(above.data + place + ours.eol + below.data, above.conflicts or below.conflicts)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A version around its block. `eol` ends the block's last line, also where the file ends without one."""

    above: bytes
    eol: bytes
    below: bytes
    ended: bool

    def around(self, place: bytes) -> bytes:
        return self.above + place + self.eol + self.below


def _cut(data: bytes, block: BlockSpan) -> _Cut:
    rest = data[block.end :]
    found = re.match(rb"\r\n|\n|\r", rest)
    eol = found[0] if found else dominant_eol(data) or b"\n"
    return _Cut(data[: block.start], eol, rest[len(eol) :] if found else b"", found is not None)


def _last_line_ended(ours: bool, base: bool, theirs: bool) -> bool:  # noqa: FBT001
    return theirs if ours == base else ours


def _placeholder(*texts: bytes) -> bytes:
    number = 0
    while any(f"<!-- agent-bridge: block {number} -->".encode() in text for text in texts):
        number += 1
    return f"<!-- agent-bridge: block {number} -->".encode()


def _once_and_agreed(data: bytes, place: bytes, marker_size: int) -> bool:
    """Whether the placeholder came out of the merge once and in no conflict."""
    if data.count(place) != 1:
        return False
    before = data[: data.index(place)]
    begun = re.findall(rb"(?:^|[\r\n])([<>])\1{%d}(?![<>])" % (marker_size - 1), before)
    return not begun or begun[-1] == b">"


def _pattern(path: str) -> str | None:
    """`path` as an exact pattern for gitattributes(5), in quotes where it needs them."""
    if any(char in "\n\r\0" or "\udc80" <= char <= "\udcff" for char in path):
        return None
    escaped = "/" + re.sub(r"([\\*?\[])", r"\\\1", path)
    if re.search(r'[\s"]', escaped):
        return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'
    return escaped
