"""Starts the `git` program so that it disturbs nobody, and turns its refusals into errors.

The environment is cleaned of `GIT_DIR` and its like; C locale, no hooks, file monitors, prompts, network or
optional locks, and a time limit.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_bridge.errors import AgentBridgeError, RefusedError

TIMEOUT_S = 20.0

_KEPT_VARIABLES = frozenset(
    {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    }
)
_QUIET_VARIABLES = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_QUIET_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitError(AgentBridgeError):
    """Git answered with something we can't go on with."""

    code = "git"


class GitMissingError(GitError):
    """There is no `git` program to ask."""

    code = "git_missing"


class GitRefusedError(RefusedError):
    """Git won't open the repository, because somebody else owns it (`safe.directory`)."""

    code = "git_refused"


def run_git(
    place: Path, words: Sequence[str | bytes], *, given: bytes = b"", literal: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Runs `git WORDS` in `place` with `given` as its input; the exit code is the caller's to judge.

    `literal`: paths among the words are names, not patterns.
    Raises GitMissingError, GitRefusedError, and GitError when there is no answer within `TIMEOUT_S`.
    """
    settings = (*_QUIET_SETTINGS, "--literal-pathspecs") if literal else _QUIET_SETTINGS
    command = [b"git", b"-C", os.fsencode(place)]
    command += [os.fsencode(word) for word in settings] + [os.fsencode(word) for word in words]
    try:
        answer = subprocess.run(
            command, input=given, capture_output=True, env=clean_environment(), timeout=TIMEOUT_S, check=False
        )
    except (FileNotFoundError, PermissionError) as error:
        raise GitMissingError(
            "The program `git` can't be started.", detail=str(error), remedy="Install Git."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"Git didn't answer within {TIMEOUT_S:.0f} s.", path=place) from error
    if answer.returncode == 0:
        return answer
    if b"xcrun: error" in answer.stderr or b"xcode-select" in answer.stderr:
        raise GitMissingError("The program `git` is not installed.", remedy="Run `xcode-select --install`.")
    if b"dubious ownership" in answer.stderr or b"unsafe repository" in answer.stderr:
        raise GitRefusedError(
            "Git refuses to open this repository, because another user owns it.",
            path=place,
            remedy=f"If you trust it: git config --global --add safe.directory {place}",
        )
    return answer


def ask_git(place: Path, words: Sequence[str | bytes]) -> bytes | None:
    """What Git prints, or None where it says that there is no such thing."""
    answer = run_git(place, words)
    return answer.stdout if answer.returncode == 0 else None


def failure(place: Path, answer: subprocess.CompletedProcess[bytes]) -> GitError:
    """The error for an answer that shouldn't have been."""
    detail = answer.stderr.decode("utf-8", "replace").strip() or f"exit code {answer.returncode}"
    return GitError("Git failed.", path=place, detail=detail)


def clean_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """`env` (or our own) without the variables that point Git at another repository, index or program."""
    given = os.environ if env is None else env
    kept = {name: v for name, v in given.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    return kept | _QUIET_VARIABLES
