"""What Git knows and is doing, asked from the `git` program without disturbing it.

This is the face of the room: `checkout` says where a path lies, `program` starts the program. Names
travel as bytes between NULs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.git.checkout import Checkout as Checkout
from agent_bridge.git.checkout import activity as activity
from agent_bridge.git.checkout import attributes_file as attributes_file
from agent_bridge.git.checkout import exclude_file as exclude_file
from agent_bridge.git.checkout import find_checkout as find_checkout
from agent_bridge.git.checkout import is_inside_git_dir as is_inside_git_dir
from agent_bridge.git.checkout import registered_worktrees as registered_worktrees
from agent_bridge.git.checkout import stale_lock as stale_lock
from agent_bridge.git.checkout import version as version
from agent_bridge.git.checkout import why_no_checkout as why_no_checkout
from agent_bridge.git.checkout import worktrees as worktrees
from agent_bridge.git.program import GitError as GitError
from agent_bridge.git.program import GitMissingError as GitMissingError
from agent_bridge.git.program import GitRefusedError as GitRefusedError
from agent_bridge.git.program import ask_git, failure, run_git

_PATHS_A_CALL = 500


@dataclass(frozen=True, slots=True)
class Stash:
    """A stash or autostash: its commit, when it was made (seconds since 1970), and what Git calls it."""

    commit: str
    made_at: int
    name: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its id, when it was made (seconds since 1970), its author's name and its first line."""

    id: str
    made_at: int
    author: str
    subject: str


def index_stamp(checkout: Checkout) -> tuple[int, int, int] | None:
    """Changes whenever the index does (mtime_ns, size, inode): answers of `tracked` hold until then."""
    try:
        seen = (checkout.git_dir / "index").stat()
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)


def tracked(checkout: Checkout, paths: Iterable[Path]) -> set[Path]:
    """Those of `paths` that are in the index. Paths outside the working tree aren't."""
    inside = _inside(checkout, paths)
    found: set[bytes] = set()
    for some in _batches(list(inside)):
        found.update(_records(_ok(checkout, ["ls-files", "-z", "--", *some])))
    return {path for name, given in inside.items() if name in found for path in given}


def tracked_below(checkout: Checkout, directory: Path) -> set[Path]:
    """Every path in the index below `directory`, existing or not."""
    names = _records(_ok(checkout, ["ls-files", "-z", "--", *_inside(checkout, [directory])]))
    return {checkout.root / os.fsdecode(name) for name in names}


def ignored(checkout: Checkout, paths: Iterable[Path]) -> set[Path]:
    """Those of `paths` that `git add` would leave out. A tracked path never counts as ignored."""
    inside = _inside(checkout, paths)
    if not inside:
        return set()
    # check-ignore knows no --literal-pathspecs; after "./" a name can't be taken for a pattern's prefix.
    given = b"".join(b"./" + name + b"\0" for name in inside)
    answer = run_git(checkout.root, ["check-ignore", "-z", "--stdin"], given=given, literal=False)
    if answer.returncode not in (0, 1):
        raise failure(checkout.root, answer)
    found = {name.removeprefix(b"./") for name in _records(answer.stdout)}
    return {path for name, some in inside.items() if name in found for path in some}


def addable(checkout: Checkout, directory: Path) -> set[Path]:
    """The untracked files below `directory` that `git add -A` would add."""
    command: list[str | bytes] = [
        "ls-files",
        "-z",
        "-o",
        "--exclude-standard",
        "--",
        *_inside(checkout, [directory]),
    ]
    return {checkout.root / os.fsdecode(name) for name in _records(_ok(checkout, command))}


def list_instruction_files(checkout: Checkout, names: Iterable[str]) -> list[Path]:
    """Existing files of these names anywhere in the tree, except ignored ones, ordered by path."""
    wanted = {os.fsencode(name) for name in names}
    patterns = [b":(top,glob)**/" + _glob_escaped(name) for name in sorted(wanted)]
    if not patterns:
        return []
    command: list[str | bytes] = ["ls-files", "-z", "-c", "-o", "--exclude-standard", "--", *patterns]
    found = {checkout.root / os.fsdecode(name) for name in _records(_ok(checkout, command, literal=False))}
    return sorted(path for path in found if path.is_file())


def attribute(checkout: Checkout, name: str, paths: Iterable[Path]) -> dict[Path, str]:
    """What gitattributes say about `name` for each path inside: a value, "set", "unset" or "unspecified"."""
    inside = _inside(checkout, paths)
    if not inside:
        return {}
    given = b"".join(path + b"\0" for path in inside)
    fields = _records(_ok(checkout, ["check-attr", "-z", "--stdin", name], given=given))
    values = {fields[i]: fields[i + 2].decode("utf-8", "replace") for i in range(0, len(fields) - 2, 3)}
    return {path: values[known] for known, some in inside.items() if known in values for path in some}


def show(checkout: Checkout, rev: str, relpath: str) -> bytes | None:
    """The file's bytes in commit `rev`, as stored (no filters, no end-of-line conversion); None if not there.

    `relpath` is relative to the working tree's top, with `/`.
    """
    if not rev or rev.startswith("-") or ":" in rev:
        raise ValueError(f"not a revision: {rev!r}")
    return ask_git(checkout.root, ["cat-file", "blob", rev.encode() + b":" + os.fsencode(relpath)])


def revisions(checkout: Checkout) -> tuple[str, ...]:
    """HEAD, its parents, and what is being merged in: commit ids without repeats; () before a commit."""
    heads = ask_git(checkout.root, ["rev-parse", "HEAD^0", "HEAD^@"])
    ids = heads.decode("ascii", "replace").split() if heads else []
    for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"):
        try:
            ids += (checkout.git_dir / name).read_text("ascii", "replace").split()
        except OSError:
            continue
    return tuple(dict.fromkeys(rev for rev in ids if _is_id(rev)))


def history(checkout: Checkout, relpath: str, *, limit: int = 20) -> tuple[str, ...]:
    """The last commits that changed the file, newest first, as seen from HEAD."""
    command: list[str | bytes] = ["rev-list", f"--max-count={limit}", "HEAD", "--", os.fsencode(relpath)]
    found = ask_git(checkout.root, command)
    return tuple(found.decode("ascii", "replace").split()) if found else ()


def commits_of(checkout: Checkout, relpath: str, *, limit: int = 20) -> tuple[Commit, ...]:
    """The last commits that touched the file, newest first, as seen from HEAD; renames are followed."""
    form = "--format=%H%x1f%at%x1f%an%x1f%s"
    command: list[str | bytes] = ["log", "--follow", "--no-show-signature", "-z", form, f"-n{limit}"]
    found = ask_git(checkout.root, [*command, "--", os.fsencode(relpath)]) or b""
    fields = (record.decode("utf-8", "replace").split("\x1f", 3) for record in _records(found))
    return tuple(
        Commit(each[0], int(each[1]), each[2], each[3])
        for each in fields
        if len(each) == 4 and each[1].isdecimal()
    )


def only_committed_since(checkout: Checkout, relpath: str, moment: float, *, limit: int = 200) -> bool:
    """Whether HEAD has moved by commits made in this working tree alone since `moment` (seconds since 1970),
    and the last of those that changed the file is among them.

    After a merge, pull, checkout, rebase or reset it isn't so; nor for a file that is only staged.
    """
    last = history(checkout, relpath, limit=1)
    command: list[str | bytes] = [
        "log",
        "-g",
        "--no-show-signature",
        "-z",
        "--date=unix",
        "--format=%H %gd %gs",
        f"-n{limit}",
        "HEAD",
        "--",
    ]
    found = False
    for record in _records(ask_git(checkout.root, command) or b"") if last else ():
        commit, name, action = record.decode("utf-8", "replace").split(" ", 2)
        when = name.removeprefix("HEAD@{").removesuffix("}")
        if when.isdecimal() and int(when) < int(moment):
            return found
        if not action.startswith(("commit:", "commit (amend):", "commit (initial):")):
            return False
        found = found or commit == last[0]
    return found


def passed_through(checkout: Checkout, relpath: str, moment: float, *, limit: int = 50) -> bool:
    """Whether HEAD has been at a commit that holds the file since `moment` (seconds since 1970).

    Leaving such a commit, Git takes the file away. Only the last `limit` moves of HEAD are looked at.
    """
    command: list[str | bytes] = ["log", "-g", "--no-show-signature", "-z", "--date=unix", "--format=%H %gd"]
    seen: dict[str, None] = {}
    for record in _records(ask_git(checkout.root, [*command, f"-n{limit}", "HEAD", "--"]) or b""):
        commit, name = record.decode("utf-8", "replace").split(" ", 1)
        when = name.removeprefix("HEAD@{").removesuffix("}")
        if when.isdecimal() and int(when) < int(moment):
            break
        seen[commit] = None
    return any(show(checkout, commit, relpath) is not None for commit in seen)


def stashes(checkout: Checkout, *, limit: int = 50) -> list[Stash]:
    """The stashes of the repository, newest first, and the autostash of a rebase or merge under way here.

    Costs no process while there are none.
    """
    found = list(_autostashes(checkout))
    logged = os.path.lexists(checkout.common_dir / "logs" / "refs" / "stash")
    if not logged and not os.path.lexists(checkout.common_dir / "reftable"):
        return found
    command: list[str | bytes] = [
        "log",
        "-g",
        "--no-show-signature",
        "-z",
        "--format=%H %ct %gd",
        f"-n{limit}",
        "refs/stash",
    ]
    for record in _records(ask_git(checkout.root, [*command, "--"]) or b""):
        commit, made_at, name = record.decode("utf-8", "replace").split(" ", 2)
        found.append(Stash(commit, int(made_at), name))
    return found


def stash_holds(checkout: Checkout, stash: Stash, relpath: str) -> bytes | None:
    """The file's bytes as the stash keeps them, where they differ from those it was made upon; else None."""
    kept = show(checkout, stash.commit, relpath)
    return None if kept is None or kept == show(checkout, f"{stash.commit}^1", relpath) else kept


def config_get(checkout: Checkout, key: str) -> str | None:
    """The last value of `key` in the repository's own configuration file."""
    value = ask_git(checkout.root, ["config", "--local", "-z", "--get", key])
    return None if value is None else value.removesuffix(b"\0").decode("utf-8", "surrogateescape")


def config_set(checkout: Checkout, key: str, value: str) -> None:
    """Sets `key` in the repository's own configuration file, replacing all its values there."""
    _ok(checkout, ["config", "--local", "--replace-all", key, value])


def config_unset(checkout: Checkout, key: str) -> None:
    """Takes `key` out of the repository's own configuration file; fine when it isn't there."""
    answer = run_git(checkout.root, ["config", "--local", "--unset-all", key])
    if answer.returncode not in (0, 5):  # 5: no such key
        raise failure(checkout.root, answer)


def untrack(checkout: Checkout, paths: Iterable[Path]) -> None:
    """Takes files out of the index and leaves them on disk. History keeps what was committed."""
    # Not `git rm`: it refreshes the index and so runs the filters that the repository names.
    given = b"".join(name + b"\0" for name in _inside(checkout, paths))
    _ok(checkout, ["update-index", "--force-remove", "-z", "--stdin"], given=given)


def _autostashes(checkout: Checkout) -> Iterator[Stash]:
    for name in ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"):
        try:
            commit = (checkout.git_dir / name).read_text("ascii", "replace").strip()
        except OSError:
            continue
        if not _is_id(commit):
            continue
        when = ask_git(checkout.root, ["log", "--no-show-signature", "-1", "--format=%ct", commit, "--"])
        if when is not None:
            yield Stash(commit, int(when), name)


def _is_id(text: str) -> bool:
    return len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)


def _inside(checkout: Checkout, paths: Iterable[Path]) -> dict[bytes, list[Path]]:
    """Names relative to the top; links on the way are followed, since Git never looks beyond one."""
    names: dict[bytes, list[Path]] = {}
    parents: dict[Path, Path] = {}
    for path in paths:
        full = checkout.root / path
        if full == checkout.root:
            names.setdefault(b".", []).append(path)
            continue
        if full.parent not in parents:
            parents[full.parent] = full.parent.resolve()
        real = parents[full.parent] / full.name
        if real.is_relative_to(checkout.root):
            names.setdefault(os.fsencode(real.relative_to(checkout.root)), []).append(path)
    return names


def _batches(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(names), _PATHS_A_CALL):
        yield names[start : start + _PATHS_A_CALL]


def _records(output: bytes) -> list[bytes]:
    return output.split(b"\0")[:-1]


def _glob_escaped(name: bytes) -> bytes:
    return b"".join(b"\\" + bytes([c]) if c in b"*?[\\" else bytes([c]) for c in name)


def _ok(
    checkout: Checkout, words: Sequence[str | bytes], *, given: bytes = b"", literal: bool = True
) -> bytes:
    answer = run_git(checkout.root, words, given=given, literal=literal)
    if answer.returncode != 0:
        raise failure(checkout.root, answer)
    return answer.stdout
