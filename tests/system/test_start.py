"""`scripts/start`, as a new user runs it: from this checkout, in an empty home. Leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

START = Path(__file__).resolve().parents[2] / "scripts" / "start"


@dataclass(frozen=True)
class Newcomer:
    """A user with an empty home and an empty temporary directory."""

    home: Path
    temporary: Path

    @property
    def environment(self) -> dict[str, str]:
        """All that the user's shell has set."""
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "TMPDIR": str(self.temporary)}

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the script without a terminal."""
        return subprocess.run(
            [START, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def processes(self) -> list[str]:
        """What still runs with the temporary directory in its environment or its words."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                told = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(self.temporary) in told and int(place.name) != os.getpid():
                found.append(place.name)
        return found


@pytest.fixture
def newcomer(short_tmp: Path) -> Newcomer:
    made = Newcomer(short_tmp / "home", short_tmp / "t")
    made.home.mkdir()
    made.temporary.mkdir()
    return made


def test_the_demonstration_says_where_the_fact_arrived(newcomer: Newcomer) -> None:
    done = newcomer.start()

    assert done.returncode == 0, done.stdout + done.stderr
    for place in ("AGENTS.md", "CLAUDE.md", "MEMORY.md"):
        assert re.search(rf"^ +\d+\.\d ms  {re.escape(place)}", done.stdout, re.MULTILINE), done.stdout
    assert "MISSING" not in done.stderr


def test_the_demonstration_leaves_nothing_behind(newcomer: Newcomer) -> None:
    newcomer.start()

    assert list(newcomer.temporary.iterdir()) == []
    assert list(newcomer.home.iterdir()) == []
    if sys.platform == "linux":
        assert newcomer.processes() == []


def test_a_fresh_checkout_installs_itself_first(newcomer: Newcomer, short_tmp: Path) -> None:
    """Python and Git are all that is there: no .venv, nothing built."""
    checkout = short_tmp / "checkout"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=START.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        if (START.parents[1] / name).is_file():  # deleted ones are listed too
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(START.parents[1] / name, checkout / name)
    # Where packages come from is the machine's matter: all but that is as new.
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    done = subprocess.run(
        [checkout / "scripts/start"],
        env=pip | newcomer.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    if not (checkout / ".venv/bin/agent-bridge").exists() and os.environ.get("CI") != "true":
        pytest.skip(f"pip can't install here: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(once)" in done.stderr
    assert re.search(r"^ +\d+\.\d ms  AGENTS\.md", done.stdout, re.MULTILINE), done.stdout
    installed = subprocess.run(
        [checkout / ".venv/bin/agent-bridge", "--version"], capture_output=True, text=True, check=True
    )
    assert installed.stdout.startswith("agent-bridge ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demonstration_that_is_stopped_cleans_up(newcomer: Newcomer, number: signal.Signals) -> None:
    with subprocess.Popen(
        [START],
        env=newcomer.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in a shell's background starts with SIGINT ignored, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(number)
        process.stdout.read()
        told = process.stderr.read()

    assert process.returncode == 128 + number
    assert told == ""
    assert list(newcomer.temporary.iterdir()) == []


def test_a_project_is_not_touched_without_a_yes(newcomer: Newcomer) -> None:
    project = newcomer.home / "shop"
    project.mkdir()

    done = newcomer.start(str(project))

    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert list(newcomer.home.rglob("*")) == [project]


@pytest.mark.parametrize("words", [["--nonsense"], ["/no/such/directory"], ["one", "two"]], ids=" ".join)
def test_wrong_words(newcomer: Newcomer, words: list[str]) -> None:
    done = newcomer.start(*words)

    assert done.returncode == 2
    assert done.stderr.startswith("scripts/start: ")


def test_a_project_is_set_up_and_served(newcomer: Newcomer) -> None:
    project = newcomer.home / "shop"
    project.mkdir()
    ours, theirs = os.openpty()
    os.write(ours, b"y\n")
    run = newcomer.temporary / "run"
    run.mkdir(mode=0o700)
    environment = newcomer.environment | {"XDG_RUNTIME_DIR": str(run)}
    with subprocess.Popen(
        [START, project],
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stderr is not None
        told = _until(process.stderr, "ready")
        os.write(ours, b"y\n")
        again = subprocess.run(
            [START, project],
            env=environment,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        process.send_signal(signal.SIGINT)
    os.close(ours)
    os.close(theirs)

    assert process.returncode == 0
    assert f"Set up {project}? [y/N]" in told
    assert (project / ".memory").is_dir()
    assert "Ctrl-C" in told
    assert again.returncode == 0
    assert "runs already" in again.stderr


def _until(stream: IO[str], word: str) -> str:
    told = ""
    for line in stream:
        told += line
        if word in line:
            return told
    raise AssertionError(told)
