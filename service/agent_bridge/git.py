"""What Git knows and is doing, asked from the `git` program without disturbing it.

Names travel as bytes between NULs. What is asked twice a second (`activity`, `worktrees`, `index_stamp`)
reads a few files of Git's documented layout (gitrepository-layout(5)) and starts no process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.git_program import GitError as GitError
from agent_bridge.git_program import GitMissingError as GitMissingError
from agent_bridge.git_program import GitRefusedError as GitRefusedError
from agent_bridge.git_program import failure, run_git

STALE_LOCK_S = 600.0
"""An `index.lock` this old is told to the user; it is never removed by us."""

_PATHS_A_CALL = 500


_SIGNS_OF_WORK = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("MERGE_AUTOSTASH", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
    ("index.lock", "index.lock"),
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """One working tree of a repository; all paths are real and absolute.

    `root` is the tree's top, `git_dir` its own administrative directory (`.git`, or `.git/worktrees/NAME`),
    `common_dir` the one that all worktrees share, `main_root` the main working tree's top; None where the
    repository is bare.
    """

    root: Path
    common_dir: Path
    git_dir: Path
    main_root: Path | None

    @property
    def is_main(self) -> bool:
        return self.git_dir == self.common_dir


@dataclass(frozen=True, slots=True)
class Stash:
    """A stash or autostash: its commit, when it was made (seconds since 1970), and what Git calls it."""

    commit: str
    made_at: int
    name: str


def find_checkout(path: Path) -> Checkout | None:
    """The working tree that `path` lies in; None outside of one, in a bare repository, or without Git.

    `why_no_checkout` tells which. Raises GitRefusedError where somebody else owns the repository, GitError
    where Git can't read it.
    """
    place = _existing_directory(path)
    try:
        answer = _locate(place)
    except GitMissingError:
        return None
    if answer is None:
        return None
    root, git_dir, common_dir = answer
    main_root = root if git_dir == common_dir else _main_root(common_dir)
    return Checkout(root=root, common_dir=common_dir, git_dir=git_dir, main_root=main_root)


def why_no_checkout(path: Path) -> str:
    """Why `find_checkout` found none at `path`, in a sentence; empty where it does find one.

    The one dangerous case is a repository that we can't ask about: what Git would add is then unknown.
    """
    place = _existing_directory(path)
    holder = next((up for up in (place, *place.parents) if os.path.lexists(up / ".git")), None)
    try:
        if find_checkout(place) is not None:
            return ""
        run_git(place, ["--version"])
    except GitMissingError:
        return (
            f"{holder} is a Git repository, but there is no `git` program to ask about it."
            if holder
            else "There is no `git` program."
        )
    except AgentBridgeError as error:
        return str(error)
    if _ask(place, ["rev-parse", "--is-bare-repository"]) == b"true\n":
        return f"{place} lies in a bare Git repository, which has no working tree."
    if _ask(place, ["rev-parse", "--is-inside-git-dir"]) == b"true\n":
        return f"{place} lies inside a `.git` directory."
    if holder is not None:
        return f"{holder / '.git'} leads to no Git repository."
    return f"{place} lies in no Git repository."


def version() -> tuple[int, ...]:
    """Git's version as numbers, such as (2, 39, 5); empty when there is no Git."""
    try:
        words = run_git(Path("/"), ["--version"]).stdout.decode("utf-8", "replace").split()
    except GitError:
        return ()
    digits: list[int] = []
    for part in words[2].split(".") if len(words) > 2 else []:
        if not part.isdigit():
            break
        digits.append(int(part))
    return tuple(digits)


def worktrees(checkout: Checkout) -> list[Path]:
    """The tops of all working trees that exist, the main one first."""
    found = [] if checkout.main_root is None else [checkout.main_root]
    for name in _names(checkout.common_dir / "worktrees"):
        record = checkout.common_dir / "worktrees" / name
        try:
            # Absolute, or (from 2.48 on) relative to the record.
            link = Path(os.fsdecode((record / "gitdir").read_bytes().rstrip(b"\n")))
        except OSError:
            continue
        top = (record / link).parent
        if link.name == ".git" and (top / ".git").is_file():
            found.append(top.resolve())
    if checkout.root not in found:
        found.append(checkout.root)
    return found


def activity(checkout: Checkout) -> str | None:
    """What Git is in the middle of in this working tree: "rebase", "merge", "index.lock"…; None when idle.

    Only looks whether a few names exist.
    """
    for name, work in _SIGNS_OF_WORK:
        if os.path.lexists(checkout.git_dir / name):
            return work
    return None


def stale_lock(checkout: Checkout, *, now: float) -> str | None:
    """A sentence about an `index.lock` that a killed Git has probably left behind, or None."""
    lock = checkout.git_dir / "index.lock"
    try:
        age = now - lock.lstat().st_mtime
    except OSError:
        return None
    if age < STALE_LOCK_S:
        return None
    return (
        f"{lock} is {int(age // 60)} minutes old. If no Git command is running, remove it; "
        "until then nothing is written into files that Git tracks."
    )


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


def unmerged(checkout: Checkout, paths: Iterable[Path]) -> set[Path]:
    """Those of `paths` whose conflict isn't resolved in the index yet."""
    inside = _inside(checkout, paths)
    found: set[bytes] = set()
    for some in _batches(list(inside)):
        records = _records(_ok(checkout, ["ls-files", "-z", "-u", "--", *some]))
        found.update(record.partition(b"\t")[2] for record in records)
    return {path for name, given in inside.items() if name in found for path in given}


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
    return _ask(checkout.root, ["cat-file", "blob", rev.encode() + b":" + os.fsencode(relpath)])


def revisions(checkout: Checkout) -> tuple[str, ...]:
    """HEAD, its parents, and what is being merged in: commit ids without repeats; () before a commit."""
    heads = _ask(checkout.root, ["rev-parse", "HEAD^0", "HEAD^@"])
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
    found = _ask(checkout.root, command)
    return tuple(found.decode("ascii", "replace").split()) if found else ()


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
    for record in _records(_ask(checkout.root, [*command, "--"]) or b""):
        commit, made_at, name = record.decode("utf-8", "replace").split(" ", 2)
        found.append(Stash(commit, int(made_at), name))
    return found


def stash_time(checkout: Checkout) -> int | None:
    """When the newest stash was made, in seconds since 1970."""
    return max((stash.made_at for stash in stashes(checkout)), default=None)


def stash_holds(checkout: Checkout, stash: Stash, relpath: str) -> bytes | None:
    """The file's bytes as the stash keeps them, where they differ from those it was made upon; else None."""
    kept = show(checkout, stash.commit, relpath)
    return None if kept is None or kept == show(checkout, f"{stash.commit}^1", relpath) else kept


def exclude_file(checkout: Checkout) -> Path:
    """The local ignore file; all worktrees share it."""
    return checkout.common_dir / "info" / "exclude"


def attributes_file(checkout: Checkout) -> Path:
    """The local attributes file; all worktrees share it, and it beats every `.gitattributes`."""
    return checkout.common_dir / "info" / "attributes"


def config_get(checkout: Checkout, key: str) -> str | None:
    """The last value of `key` in the repository's own configuration file."""
    value = _ask(checkout.root, ["config", "--local", "-z", "--get", key])
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


def _locate(place: Path) -> tuple[Path, Path, Path] | None:
    questions = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"]
    answer = run_git(place, ["rev-parse", "--path-format=absolute", *questions])
    if answer.returncode != 0:
        if b"not a git repository" in answer.stderr or b"must be run in a work tree" in answer.stderr:
            return None
        raise failure(place, answer)
    lines = answer.stdout.split(b"\n")[:-1]
    if len(lines) != len(questions):  # a name with a line break in it: ask one by one
        answers = [run_git(place, ["rev-parse", "--path-format=absolute", each]) for each in questions]
        lines = [each.stdout.removesuffix(b"\n") for each in answers]
    root, git_dir, common_dir = (Path(os.fsdecode(line)).resolve() for line in lines)
    return root, git_dir, common_dir


def _main_root(common_dir: Path) -> Path | None:
    def setting(*words: str) -> bytes:
        command: list[str | bytes] = [f"--git-dir={common_dir}", "config", "-z", *words]
        return (_ask(common_dir, command) or b"").removesuffix(b"\0")

    if setting("--type=bool", "--get", "core.bare") == b"true":
        return None
    elsewhere = setting("--get", "core.worktree")  # submodules have it
    if not elsewhere and common_dir.name != ".git":
        return None
    top = (common_dir / os.fsdecode(elsewhere)).resolve() if elsewhere else common_dir.parent
    return top if top.is_dir() else None


def _autostashes(checkout: Checkout) -> Iterator[Stash]:
    for name in ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"):
        try:
            commit = (checkout.git_dir / name).read_text("ascii", "replace").strip()
        except OSError:
            continue
        if not _is_id(commit):
            continue
        when = _ask(checkout.root, ["log", "--no-show-signature", "-1", "--format=%ct", commit, "--"])
        if when is not None:
            yield Stash(commit, int(when), name)


def _is_id(text: str) -> bool:
    return len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def _existing_directory(path: Path) -> Path:
    absolute = Path.cwd() / path
    return next((up for up in (absolute, *absolute.parents) if up.is_dir()), Path(absolute.anchor))


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


def _ask(place: Path, words: Sequence[str | bytes]) -> bytes | None:
    """What Git prints, or None where it says that there is no such thing."""
    answer = run_git(place, words)
    return answer.stdout if answer.returncode == 0 else None


def _ok(
    checkout: Checkout, words: Sequence[str | bytes], *, given: bytes = b"", literal: bool = True
) -> bytes:
    answer = run_git(checkout.root, words, given=given, literal=literal)
    if answer.returncode != 0:
        raise failure(checkout.root, answer)
    return answer.stdout
