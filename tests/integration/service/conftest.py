"""A user in a sealed home, with and without a running service."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .user import Served, User, serving


@pytest.fixture
def user() -> Iterator[User]:
    """A user of Claude Code and Codex who has nothing else yet; no service runs."""
    yield from _made_user()


@pytest.fixture
def served(user: User) -> Iterator[Served]:
    """A user of their own whose service runs, for what changes the service or the home as a whole."""
    with serving(user) as served:
        yield served


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """One user with a running service for all tests of a module: each works in a project of its own."""
    for user in _made_user():
        with serving(user) as served:
            yield served


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    """Names for projects that are new in this module."""
    return (f"project-{number}" for number in itertools.count())


def _made_user() -> Iterator[User]:
    # Short: a Unix socket's path may have 103 bytes at most.
    top = Path(tempfile.mkdtemp(prefix="ab", dir="/tmp")).resolve()
    home = top / "home"
    for directory in (home, home / ".claude", home / ".codex"):
        directory.mkdir()
    yield User(home)
    shutil.rmtree(top, ignore_errors=True)
