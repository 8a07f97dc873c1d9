"""Kills: of the service while facts are saved, and of commands in the middle of what they do."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import client
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.projects import load_projects
from system.home import (
    AGENTS,
    CLAUDE,
    PROGRAM,
    Bridge,
    leftovers,
    of,
    save,
    tree,
    until,
    until_quiet,
    until_said,
)
from system.writers import Writers

MORTAL = Path(__file__).with_name("mortal.py")
SAVES, LIVES = 200, 10


@dataclass
class Mortal:
    """Commands that die at a step."""

    process: subprocess.Popen[str]

    def run(self, *words: str, cwd: Path, **how: int) -> dict[str, int]:
        """Run a command; `code` and `steps` (see mortal.py)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": words, "cwd": str(cwd)} | how) + "\n")
        self.process.stdin.flush()
        answer: dict[str, int] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture
def bridge(sealed_home: Path, short_tmp: Path) -> Iterator[Bridge]:
    yield from Bridge.made(sealed_home, short_tmp)


@pytest.fixture
def mortal(bridge: Bridge) -> Iterator[Mortal]:
    with subprocess.Popen(
        [sys.executable, str(MORTAL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    ) as process:
        yield Mortal(process)
        assert process.stdin is not None
        process.stdin.close()


def texts(numbers: range) -> list[str]:
    return [f"Fact {number:03} holds." for number in numbers]


# --- the service


def test_killed_at_random_while_facts_are_saved(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_BRIDGE_BLOCK_BUDGET", str(1 << 16))
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    root = bridge.project()
    os.link(root / "CLAUDE.md", bridge.home / "another-name.md")
    for life in range(LIVES):
        # Every other one is killed while it still starts, over facts that it hasn't seen yet.
        service = bridge.start(ready=life % 2 == 0)
        first = life * SAVES // LIVES
        fatal = chance.randrange(SAVES // LIVES)
        for number in range(first, first + SAVES // LIVES):
            save(root, f"{number:03}", f"Fact {number:03} holds.")
            time.sleep(chance.random() * 0.02)  # not a wait: a person's saves, so that a kill may hit between
            if number - first == fatal:
                service.process.kill()
        service.process.wait()
    service = bridge.start()
    for name in ("AGENTS.md", "CLAUDE.md"):
        said = (root / name).read_text()
        assert [text for text in texts(range(SAVES)) if said.count(text) != 1] == []
    assert (root / "CLAUDE.md").samefile(bridge.home / "another-name.md")
    assert leftovers(bridge.top) == []
    status = client.read_status()
    assert (status["state"], of(status, root)["facts"]["shared"]) == ("ok", SAVES)
    assert service.end() == 0
    assert bridge.run("sync", cwd=root)["data"]["reports"][0]["wrote"] == []


@pytest.mark.parametrize("change", ["grows", "shrinks"])
def test_a_write_in_place_that_a_kill_tore_is_repaired_from_the_kept_bytes(
    bridge: Bridge, change: str
) -> None:
    root = bridge.repository()
    hand_written = b"# For Claude\n\n" + b"Be brief, and say why.\n" * 20
    (root / "CLAUDE.md").write_bytes(hand_written)
    os.link(root / "CLAUDE.md", bridge.home / "another-name.md")
    bridge.run("init", "--yes", cwd=root)
    save(root, "first", "Fact one holds.")
    save(root, "second", "Fact two holds, and at some length.")
    bridge.run("sync", cwd=root)
    before = (root / "CLAUDE.md").read_bytes()
    if change == "grows":
        save(root, "third", "Fact three holds. " * 10)
        torn_at = len(before) + 40  # what makes the file longer is written first
    else:
        (root / ".memory/entries/first.md").unlink()
        torn_at = before.index(b"Fact one") + len(b"Fact one")
    # The service itself, which writes in its first pass, is ended by the kernel within the write.
    torn = subprocess.run(
        [sys.executable, str(MORTAL)],
        input=json.dumps({"words": ["service", "run"], "cwd": "/", "torn_at": torn_at}) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(torn.stdout)["code"] == -signal.SIGXFSZ
    half = (root / "CLAUDE.md").read_bytes()
    kept = list(paths.state_dir().rglob("*.journal"))
    assert (len(kept), half != before) == (1, True)
    assert half.startswith(before) if change == "grows" else len(half) == len(before)

    bridge.start()
    status = client.read_status()
    assert any("interrupted write is undone" in one["text"] for one in of(status, root)["notices"])
    said = (root / "CLAUDE.md").read_text()
    gone, there = ("Fact one", "Fact two") if change == "shrinks" else ("nothing", "Fact three holds.")
    assert (said.count(gone), there in said) == (0, True)
    assert said.startswith(hand_written.decode())
    assert (root / "CLAUDE.md").samefile(bridge.home / "another-name.md")
    assert leftovers(bridge.top) == []


# --- a stranger with the service's old pid


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[str]]:
    """A process that writes down each signal that reaches it."""
    script = (
        "import signal, sys\n"
        "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):\n"
        "    signal.signal(number, lambda number, _: print(number, flush=True))\n"
        "print('here', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        yield process
        assert process.poll() is None
        told, _ = process.communicate("")
        assert told == ""


@pytest.mark.parametrize(
    ("start", "stop"), [(("up",), ("down",)), (("service", "start"), ("service", "stop"))]
)
def test_a_stranger_with_the_recorded_pid_is_left_alone(
    bridge: Bridge, stranger: subprocess.Popen[str], start: tuple[str, ...], stop: tuple[str, ...]
) -> None:
    record = paths.service_lock().with_suffix(".json")
    first = bridge.start()
    first.process.kill()
    first.process.wait()
    left = json.loads(record.read_text())
    assert left["pid"] == first.process.pid
    record.write_text(json.dumps(left | {"pid": stranger.pid}))

    assert bridge.run("status", codes=(3,))["data"]["state"] == "not running"
    assert bridge.run(*stop)["data"]["result"] == "not running"
    pid = bridge.run(*start)["data"]["pid"]
    try:
        assert pid not in (stranger.pid, first.process.pid)
        assert client.read_status()["pid"] == json.loads(record.read_text())["pid"] == pid
        assert bridge.run(*start)["data"] | {"log": ""} == {
            "result": "already running",
            "pid": pid,
            "log": "",
        }
        # A record that names somebody else beside a running service: nobody is stopped, and that is said.
        told = record.read_text()
        record.write_text(json.dumps({"pid": stranger.pid}))
        assert "nothing was stopped" in json.dumps(bridge.run(*stop, codes=(1,))["errors"])
        assert client.read_status()["pid"] == pid
        record.write_text(told)
    finally:
        assert bridge.run(*stop)["data"]["result"] == "stopped"
    assert not record.exists()


# --- commands beside the service


def test_there_are_never_two_writers(bridge: Bridge) -> None:
    root = bridge.project()
    state = next((paths.state_dir() / "projects").iterdir())
    written = {
        root: frozenset({"AGENTS.md", "CLAUDE.md"}),
        root / ".memory": frozenset({"MEMORY.md", "index.json"}),
        root / ".git/info": frozenset({"exclude"}),
        state: frozenset({"ledger.json"}),
    }
    service = bridge.start("--quiet-ms", "0")
    with Writers(state, written) as writers:
        for turn in range(3):
            save(root, f"turn-{turn}", f"Turn {turn} holds.")
            commands = [
                subprocess.Popen([*PROGRAM, *words], cwd=root, stdout=subprocess.DEVNULL)
                for words in (("sync",), ("init", "--yes"), ("sync", "--to", "codex"))
            ]
            number = 0
            while any(command.poll() is None for command in commands):
                # A load for the service: the commands' passes and its own want the same lock.
                save(root, "load", f"Load {turn}-{number} holds.")
                until_said(root / "AGENTS.md", f"Load {turn}-{number} holds.")
                number += 1
            assert [command.wait() for command in commands] == [0, 0, 0]
        until_quiet(root)
        bridge.run("eject", "--yes", cwd=root)
        # The service has waited for the lock meanwhile or does so now: it must write nothing any more.
        save(root, "late", "Too late.")
        until(lambda: not client.read_status()["projects"], client.read_status)
        until(lambda: client.read_status()["queue"] == 0, client.read_status)
    assert writers.faults == []
    assert writers.holders > 10
    assert writers.writes > 20
    assert (root / "AGENTS.md").read_bytes() == AGENTS
    assert (root / "CLAUDE.md").read_bytes() == CLAUDE
    assert service.end() == 0
    assert leftovers(bridge.top) == []


# --- commands that die halfway

OURS = (".local", ".cache")
SAMPLES = int(os.environ.get("KILL_SAMPLES", "3"))
"""Steps of a command at which it is killed; there are some two hundred."""


@dataclass
class Halfway:
    """A project whose agents have memories already, to be set up and taken out again and again."""

    bridge: Bridge
    mortal: Mortal
    root: Path
    pristine: Path

    def again(self) -> None:
        """Everything as it was in the beginning."""
        shutil.rmtree(self.bridge.home)
        shutil.copytree(self.pristine, self.bridge.home, symlinks=True)

    def init(self, **how: int) -> dict[str, int]:
        return self.mortal.run("init", "--yes", cwd=self.root, **how)

    def eject(self, **how: int) -> dict[str, int]:
        return self.mortal.run("eject", "--yes", cwd=self.root, **how)

    def seen(self, *without: str) -> dict[str, tuple[str, int, bytes]]:
        """Everything of the user's; our own state holds times and random names."""
        return tree(self.bridge.home, *OURS, *without)


@pytest.fixture(params=["memories", "link", "nothing"])
def halfway(bridge: Bridge, mortal: Mortal, request: pytest.FixtureRequest) -> Halfway:
    root = bridge.repository()
    memories = bridge.home / ".claude/projects" / slug(str(root)) / "memory"
    if request.param != "nothing":
        place = memories if request.param == "memories" else bridge.home / "elsewhere"
        place.mkdir(parents=True)
        (place / "MEMORY.md").write_text("- [Build](build.md) — how to build\n")
        (place / "build.md").write_text("---\nname: build\ndescription: how to build\n---\n\nRun make.\n")
    if request.param == "link":
        memories.parent.mkdir(parents=True)
        memories.symlink_to(bridge.home / "elsewhere")
    (bridge.home / ".claude/settings.json").write_text('{"model": "opus"}\n')
    (bridge.home / ".codex/config.toml").write_text("# mine\n[features]\nmemories = true\n")
    pristine = bridge.top / "pristine"
    shutil.copytree(bridge.home, pristine, symlinks=True)
    return Halfway(bridge, mortal, root, pristine)


def some_steps(steps: int) -> list[int]:
    """Some of the steps from 1 to `steps`, others in each run; pytest shows them where a test fails."""
    chosen = sorted(random.sample(range(1, steps + 1), min(SAMPLES, steps)))
    print("killed before steps", chosen, "of", steps)
    return chosen


def test_a_killed_init_is_completed_by_the_next_and_undone_exactly(halfway: Halfway) -> None:
    before = halfway.seen("project/.memory")
    whole = halfway.init()
    assert whole["code"] == 0
    wanted = halfway.seen()
    wrong: dict[int, list[str]] = {}
    for step in some_steps(whole["steps"]):
        halfway.again()
        assert halfway.init(die_at=step)["code"] == -signal.SIGKILL
        assert halfway.init()["code"] == 0
        found = differences(wanted, halfway.seen()) + leftovers(halfway.bridge.home)
        assert halfway.eject()["code"] == 0
        left = differences(before, halfway.seen("project/.memory")) + leftovers(halfway.bridge.home)
        if found or left:
            wrong[step] = [*found, "after eject:", *left]
    assert wrong == {}


def test_a_killed_eject_is_completed_by_the_next(halfway: Halfway) -> None:
    before = halfway.seen("project/.memory")
    assert halfway.init()["code"] == 0
    shutil.rmtree(halfway.pristine)
    shutil.copytree(halfway.bridge.home, halfway.pristine, symlinks=True)
    whole = halfway.eject()
    assert whole["code"] == 0
    assert differences(before, halfway.seen("project/.memory")) == []
    wrong: dict[int, list[str]] = {}
    for step in some_steps(whole["steps"]):
        halfway.again()
        assert halfway.eject(die_at=step)["code"] == -signal.SIGKILL
        # Killed when all was done, it is no project any more; that is what the next one says.
        ejected = not load_projects()
        assert (halfway.eject()["code"] != 0) == ejected
        left = differences(before, halfway.seen("project/.memory")) + leftovers(halfway.bridge.home)
        # With nothing to do any more, the note of who held the free lock may stay.
        left = [name for name in left if not (ejected and name.endswith("lock.holder"))]
        if left:
            wrong[step] = left
    assert wrong == {}


Tree = dict[str, tuple[str, int, bytes]]


def differences(wanted: Tree, found: Tree) -> list[str]:
    """Names that came, went or hold something else."""
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
