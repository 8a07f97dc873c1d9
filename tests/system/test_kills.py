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
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.daemon import client
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.projects import load_projects

from system.home import Bridge, leftovers, of, save, tree, until, until_quiet, until_said

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
