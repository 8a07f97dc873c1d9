"""Where a path lies in Git: its working tree and the directories behind it, and what is going on there.

What is asked twice a second (`activity`, `worktrees`) reads a few files of Git's documented layout
(gitrepository-layout(5)) and starts no process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.git.program import GitError, GitMissingError, ask_git, failure, run_git

STALE_LOCK_S = 600.0
"""An `index.lock` this old is told to the user; it is never removed by us."""

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
    if ask_git(place, ["rev-parse", "--is-bare-repository"]) == b"true\n":
        return f"{place} lies in a bare Git repository, which has no working tree."
    if ask_git(place, ["rev-parse", "--is-inside-git-dir"]) == b"true\n":
        return f"{place} lies inside a `.git` directory."
    if holder is not None:
        return f"{holder / '.git'} leads to no Git repository."
    return f"{place} lies in no Git repository."


def is_inside_git_dir(path: Path) -> bool:
    """Whether a directory belongs to a repository's own files: below a `.git`, or in a bare repository."""
    try:
        return ask_git(_existing_directory(path), ["rev-parse", "--is-inside-git-dir"]) == b"true\n"
    except GitMissingError:
        return False


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
    found += [top.resolve() for top in registered_worktrees(checkout) if (top / ".git").is_file()]
    if checkout.root not in found:
        found.append(checkout.root)
    return found


def registered_worktrees(checkout: Checkout) -> list[Path]:
    """The tops of the linked working trees that Git has on record, also of those that are gone for now."""
    found = []
    for name in _names(checkout.common_dir / "worktrees"):
        record = checkout.common_dir / "worktrees" / name
        try:
            # Absolute, or (from 2.48 on) relative to the record.
            link = Path(os.fsdecode((record / "gitdir").read_bytes().rstrip(b"\n")))
        except OSError:
            continue
        if link.name == ".git":
            found.append((record / link).parent)
    return found


def activity(checkout: Checkout) -> str | None:
    """What Git is in the middle of in this working tree: "rebase", "merge", "index.lock"…; None when idle.

    Only looks whether a few names exist, all at once.
    """
    names = set(_names(checkout.git_dir))
    return next((work for name, work in _SIGNS_OF_WORK if name in names), None)


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


def exclude_file(checkout: Checkout) -> Path:
    """The local ignore file; all worktrees share it."""
    return checkout.common_dir / "info" / "exclude"


def attributes_file(checkout: Checkout) -> Path:
    """The local attributes file; all worktrees share it, and it beats every `.gitattributes`."""
    return checkout.common_dir / "info" / "attributes"


def _locate(place: Path) -> tuple[Path, Path, Path] | None:
    questions = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"]
    answer = run_git(place, ["rev-parse", *questions])
    if answer.returncode != 0:
        if b"not a git repository" in answer.stderr or b"must be run in a work tree" in answer.stderr:
            return None
        raise failure(place, answer)
    lines = answer.stdout.split(b"\n")[:-1]
    if len(lines) != len(questions):  # a name with a line break in it: ask one by one
        answers = [run_git(place, ["rev-parse", each]) for each in questions]
        lines = [each.stdout.removesuffix(b"\n") for each in answers]
    # The common directory may come relative to `place`; `--path-format` is too new (2.31) to ask for more.
    root, git_dir, common_dir = ((place / os.fsdecode(line)).resolve() for line in lines)
    return root, git_dir, common_dir


def _main_root(common_dir: Path) -> Path | None:
    def setting(*words: str) -> bytes:
        command: list[str | bytes] = [f"--git-dir={common_dir}", "config", "-z", *words]
        return (ask_git(common_dir, command) or b"").removesuffix(b"\0")

    if setting("--type=bool", "--get", "core.bare") == b"true":
        return None
    elsewhere = setting("--get", "core.worktree")  # submodules have it
    if not elsewhere and common_dir.name != ".git":
        return None
    top = (common_dir / os.fsdecode(elsewhere)).resolve() if elsewhere else common_dir.parent
    return top if top.is_dir() else None


def _names(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - names are wanted
    except OSError:
        return []


def _existing_directory(path: Path) -> Path:
    absolute = Path.cwd() / path
    return next((up for up in (absolute, *absolute.parents) if up.is_dir()), Path(absolute.anchor))
