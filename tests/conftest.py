"""Fixtures for every ring: a sealed home, so that no test can touch the user's own files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# An example takes as long as the machine is busy: a time limit would fail by chance, not by fault.
settings.register_profile("agent-bridge", deadline=None)
settings.load_profile("agent-bridge")

_CLEARED = ("AGENT_BRIDGE_", "CLAUDE", "CODEX", "GIT_", "XDG_", "OPENCODE", "GEMINI")


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A short temporary directory: a Unix socket's path may have 103 bytes at most."""
    path = Path(tempfile.mkdtemp(prefix="ab", dir="/tmp")).resolve()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def sealed_home(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HOME with its XDG directories, and an environment without any harness's variables."""
    for name in list(os.environ):
        if name.startswith(_CLEARED):
            monkeypatch.delenv(name)
    home = short_tmp / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name, place in {
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_STATE_HOME": home / ".local/state",
        "XDG_DATA_HOME": home / ".local/share",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": short_tmp / "run",
    }.items():
        monkeypatch.setenv(name, str(place))
    (short_tmp / "run").mkdir(mode=0o700)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name, value in {
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.invalid",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.invalid",
    }.items():
        monkeypatch.setenv(name, value)
    return home
