"""What harnesses run when a session starts in HOOK mode: print the memory of the project that it is in.

`agent-bridge hook session-start --harness NAME` reads the harness's JSON from standard input, finds the
project from its `cwd` and prints what the engine has prepared (`projection.hook_context`), in the shape that
Claude Code 2.1.332 and Codex 0.171.0 take. It is done within a second whatever happens, its exit code is 0,
and it says nothing to the user: what went wrong stands in a small file of which `status` tells. For speed it
imports next to nothing.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from agent_bridge import paths

TROUBLE = "hook-trouble.json"
"""In the state directory: `{"at", "harness", "why"}` of the last hook that failed, until one succeeds."""

_PATIENCE_S = 0.6
"""From here to the end at the latest; Python has been starting before."""
_INPUT_S = 0.2
_INPUT_BYTES = 64 * 1024
_LIST_BYTES = 8 * 1024 * 1024
_CONTEXT_BYTES = 1024 * 1024
_POINTER_BYTES = 4096
_PATH_LENGTH = 4096
_HEX = frozenset("0123456789abcdef")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_SHORT = {"claude": "claude-code"}


class _HookError(Exception):
    """Why there is nothing to print though there should be."""


def session_start(words: Sequence[str]) -> NoReturn:
    """Print the context for a new session, and end the process with exit code 0."""
    named = words[1] if len(words) == 2 and words[0] == "--harness" else ""
    harness = _SHORT.get(named, named)
    signal.signal(signal.SIGALRM, lambda *_: _give_up(harness))
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    try:
        text = _context(harness, _asked())
        if text:
            _say(text)
        if text is not None:
            _forget_trouble()
    except _HookError as trouble:
        _note(harness, str(trouble))
    except Exception as error:  # noqa: BLE001 - a session must start; what went wrong is told by status
        _note(harness, f"{type(error).__name__}: {error}")
    os._exit(0)  # not through the interpreter's end: a closed pipe would speak up there


def _context(harness: str, asked: Mapping[str, Any]) -> str | None:
    """What to tell the model, "" where nothing is remembered; None where no hook of ours is wanted."""
    if asked.get("source") == "resume":
        return None  # what was said when the session began is still in it
    project = _project_of(_directory(asked))
    if project is None or project.get("delivery") != "hooks":
        return None
    if not harness or set(harness) - _NAME:
        raise _HookError(f"there is no harness {harness!r}")
    name = str(project.get("id", ""))
    if len(name) != 16 or set(name) - _HEX:
        raise _HookError(f"{paths.projects_file()} has a project with the id {name!r}")
    place = paths.project_state(name) / "hook" / f"{harness}.md"
    try:
        data = _read(place, _CONTEXT_BYTES, os.O_NOFOLLOW)
    except FileNotFoundError:
        raise _HookError(
            f"nothing is prepared for {harness!r} in {project.get('root')}; `agent-bridge sync` prepares it"
        ) from None
    return data.decode()


def _asked() -> Mapping[str, Any]:
    """The harness's JSON object; {} where there is none that could be read in time."""
    if sys.stdin is None or os.isatty(0):
        return {}
    data = b""
    deadline = time.monotonic() + _INPUT_S
    with suppress(OSError):
        while len(data) < _INPUT_BYTES:
            ready, _, _ = select.select([0], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(0, _INPUT_BYTES - len(data)) if ready else b""
            if not piece:
                break
            data += piece
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _directory(asked: Mapping[str, Any]) -> str:
    """Where the session works: what the harness says, else where it has started us; "" if that is gone."""
    said = asked.get("cwd")
    usable = isinstance(said, str) and said.startswith("/") and "\0" not in said and len(said) <= _PATH_LENGTH
    try:
        return os.path.realpath(said if usable and isinstance(said, str) else Path.cwd())
    except (OSError, ValueError):
        return ""


def _project_of(directory: str) -> Mapping[str, Any] | None:
    """The listed project that a directory lies in, by the rules of `projects.find_project`, without Git.

    A checkout belongs to the project of its own root, a worktree else to its main checkout's; a directory
    outside of Git belongs to the innermost project above it.
    """
    known = _listed()
    if not directory or not known:
        return None
    here = Path(directory)
    for place in (here, *here.parents):
        if str(place) in known:
            return known[str(place)]
        git = place / ".git"
        if git.is_file():
            return known.get(_main_checkout(git))
        if git.is_dir():
            return None
    return None


def _listed() -> dict[str, Mapping[str, Any]]:
    """The listed projects by their roots."""
    file = paths.projects_file()
    try:
        document = json.loads(_read(file, _LIST_BYTES))
        return {project["root"]: project for project in document["projects"]}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _HookError(f"{file} can't be read: {type(error).__name__}: {error}") from error


def _main_checkout(pointer: Path) -> str:
    """The root of the main checkout that a worktree's `.git` file leads to, "" where it leads to none."""
    try:
        told = _read(pointer, _POINTER_BYTES).decode().removeprefix("gitdir:").strip()
        directory = Path(os.path.realpath(pointer.parent / told))
        common = Path(
            os.path.realpath(directory / _read(directory / "commondir", _POINTER_BYTES).decode().strip())
        )
    except (OSError, ValueError):
        return ""
    return str(common.parent) if common.name == ".git" else ""


def _read(path: Path, limit: int, flags: int = 0) -> bytes:
    """A regular file's bytes. Raises OSError, and _HookError for anything else and what is too big."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise _HookError(f"{path} is no file that could be read")
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(limit)
    finally:
        os.close(handle)


def _say(text: str) -> None:
    """Print the answer in one piece; nobody listening is no trouble."""
    told = {"hookEventName": "SessionStart", "additionalContext": text}
    data = (json.dumps({"hookSpecificOutput": told}) + "\n").encode("ascii")
    if sys.stdout is None:
        return
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def _give_up(harness: str) -> NoReturn:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # should even the note take too long, the kernel ends us
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    _note(harness, f"it took longer than {_PATIENCE_S} seconds")
    os._exit(0)


def _note(harness: str, why: str) -> None:
    """Write down what went wrong."""
    with suppress(Exception):
        place = paths.state_dir() / TROUBLE
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        text = json.dumps({"at": at, "harness": harness[:100], "why": why[:1000]})
        beside = place.with_name(f".{TROUBLE}.{os.getpid()}.tmp")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
        beside.replace(place)


def _forget_trouble() -> None:
    with suppress(OSError):
        (paths.state_dir() / TROUBLE).unlink()
