"""A repository and a home made from a few lines, looked at as the product does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import Site
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.projects import Project, id_for

Files = Mapping[str, str]
"""Text by path: below the project, or below the home with `~/`. A text `-> x` makes a symlink to x, a path
that ends in `/` a directory. `{root}` and `{home}` are filled in."""


@pytest.fixture
def make(sealed_home: Path) -> Callable[[Files], Site]:
    """Make files in a fresh Git repository and observe it."""
    root = sealed_home.parent / "work" / "project"
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)

    def build(found: Files) -> Site:
        for name, text in found.items():
            path = sealed_home / name[2:] if name.startswith("~/") else root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = text.replace("{root}", str(root)).replace("{home}", str(sealed_home))
            if name.endswith("/"):
                path.mkdir()
            elif text.startswith("-> "):
                path.symlink_to(text[3:])
            else:
                path.write_text(text, encoding="utf-8")
        return observe_site(Project(id_for(root), root), root)

    return build


@pytest.fixture
def look_at_user(make: Callable[[Files], Site], sealed_home: Path) -> Callable[[Files], Site]:
    """Make files and observe the user's own places."""

    def build(found: Files) -> Site:
        make(found)
        return observe_user({"HOME": str(sealed_home)})

    return build
