"""The service's verbs on a machine where nothing would start it at login."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(sys.prefix) / "bin/agent-bridge"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a Mac always has launchd")


@pytest.fixture
def bare(sealed_home: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A PATH on which there is Git and no systemctl."""
    (short_tmp / "bin").mkdir()
    git = shutil.which("git")
    assert git is not None
    (short_tmp / "bin/git").symlink_to(git)
    monkeypatch.setenv("PATH", str(short_tmp / "bin"))
    yield
    _run("down")


def _run(*words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [str(PROGRAM), *words, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return done.returncode, document


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_installing_says_what_to_do_instead(verb: str, sealed_home: Path) -> None:
    code, said = _run("service", verb)
    (error,) = said["errors"]
    assert (code, error["code"], said["command"]) == (1, "no_manager", f"service {verb}")
    assert "agent-bridge up" in error["remedy"]
    assert list(sealed_home.iterdir()) == []


@pytest.mark.usefixtures("bare")
def test_starting_and_stopping_go_without() -> None:
    assert _run("service", "start")[1]["data"]["result"] == "started"
    first = _run("status")[1]["data"]["pid"]
    assert _run("service", "restart")[1]["data"]["result"] == "started"
    assert _run("status")[1]["data"]["pid"] != first
    assert any("ready" in line for line in _run("service", "logs")[1]["data"]["lines"])
    assert _run("service", "stop")[1]["data"]["result"] == "stopped"
    assert _run("service", "status")[0] == 3
