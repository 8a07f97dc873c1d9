"""The real service with a little engine: it joins a project's facts into OUT.md. Run as a program.

LITTLE_* variables make an engine slow, failing or waiting for Git, so that each can be seen from outside.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.daemon.service import run
from agent_bridge.errors import AgentBridgeError
from agent_bridge.projects import Project
from agent_bridge.watch.events import Interest
from agent_bridge.watch.watches import Place


@dataclass(frozen=True, slots=True)
class Report:
    wrote: tuple[Path, ...]
    waiting: str | None
    index_due: float | None
    facts: int
    shared: int
    hint: tuple[str, ...]


class Engine:
    """Joins `.memory/**/*.md` into `OUT.md`; waits while `.git/index.lock` is there, fails on `FAIL`."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.out = project.root / "OUT.md"
        self.written = ""

    def reconcile(self, hint: frozenset[Path] = frozenset()) -> Report:
        time.sleep(float(os.environ.get("LITTLE_SECONDS", "0")))
        if (self.project.root / "FAIL.md").exists():
            raise RuntimeError("told to fail")
        if (self.project.root / "HANG.md").exists():
            time.sleep(600)
        facts = sorted(self.project.store.rglob("*.md"))
        waiting = self.busy()
        text = "".join(fact.read_text() + "\n" for fact in facts)
        wrote: tuple[Path, ...] = ()
        if waiting is None and (not self.out.exists() or self.out.read_text() != text):
            temporary = self.out.with_name("OUT.md.tmp")
            temporary.write_text(text)
            temporary.replace(self.out)
            self.written = text
            wrote = (self.out,)
        told = tuple(sorted(str(path) for path in hint))
        return Report(wrote, waiting, None, len(facts), len(facts), told)

    def is_echo(self, path: Path) -> bool:
        return path == self.out and path.read_text() == self.written

    def places(self) -> Iterator[Place]:
        yield Place(self.project.root)
        yield Place(self.project.store, Interest.EVERYTHING, tree=True)

    def busy(self) -> str | None:
        return "index.lock" if (self.project.root / ".git" / "index.lock").exists() else None


class Engines:
    def of_project(self, project: Project, settings: object) -> Engine:
        if (project.root / "UNUSABLE").exists():
            raise AgentBridgeError("This project can't be used", path=project.root)
        return Engine(project)

    def of_user(self, settings: object) -> None:
        return None


def flags(words: Iterable[str]) -> dict[str, object]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


if __name__ == "__main__":
    sys.exit(run(engines=Engines(), **flags(sys.argv[1:])))
