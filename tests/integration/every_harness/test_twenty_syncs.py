"""Syncing again and again: the same bytes everywhere, and nothing in `git status` that no plan announced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection import preview, setup
from agent_bridge.projects import Delivery

from .conftest import (
    LAYOUTS,
    MOMENT,
    MakeRepository,
    differing,
    everything,
    git,
    global_store,
    run,
    set_up,
    tree,
    write,
)

FACTS = {
    ".memory/staging.md": "---\ntype: project\n---\n\nStaging is reset every Monday.\n",
    ".memory/entries/quay.md": "# The quay\n\nThe quay is south.\r\nIt floods.\r\n",
    ".memory/conventions.md": "# Conventions\n\nTests come first.\n",
    ".memory/mine.md": "---\nprivate: true\n---\n\nMy desk is by the window.\n",
}


@pytest.mark.parametrize(
    ("layout", "delivery"),
    [("nothing", "blocks"), ("usual", "hooks"), ("first ones", "blocks"), ("no AGENTS.md", "blocks")],
)
def test_after_the_first_every_byte_stays(
    repository: MakeRepository, settings: Settings, sealed_home: Path, layout: str, delivery: Delivery
) -> None:
    root = repository(LAYOUTS[layout])
    write(root, FACTS)
    project, _ = set_up(root, settings, delivery=delivery, asked="all")
    global_store().add("Commit messages end with a ticket.", now=MOMENT)
    everything(project, settings)
    before = tree(sealed_home)
    carriers = [name for name, (_, _, data) in before.items() if b"agent-bridge:memory:start" in data]
    assert len(carriers) > (5 if delivery == "hooks" else 9)
    for _ in range(20):
        everything(setup.describe(root), settings)
    assert differing(before, tree(sealed_home)) == set()
    assert preview.preview_project(setup.describe(root), settings).empty


@pytest.mark.parametrize("autocrlf", ["true", "false"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_git_sees_what_the_plan_announced_and_nothing_else(
    repository: MakeRepository, settings: Settings, sealed_home: Path, layout: str, autocrlf: str
) -> None:
    origin = repository(LAYOUTS[layout], name="origin")
    root = sealed_home / "work"
    git(sealed_home, "clone", "-q", "-c", f"core.autocrlf={autocrlf}", str(origin), str(root))
    ending = b"\r\n" if autocrlf == "true" else b"\n"
    files = [name for name in LAYOUTS[layout] if name != "AGENTS.md/keep.md"]
    assert all((root / name).read_bytes().endswith(ending) for name in files)
    assert status(root) == {}

    # Set up without a fact there is nothing to see but the memory's own directory.
    project, _ = set_up(root, settings)
    everything(project, settings)
    assert status(root) == {".memory/.gitignore": "??"}

    write(root, FACTS)
    plan = json.loads(run(root, "plan", "--json"))["data"]["steps"]
    blocks = {str(Path(step["path"]).relative_to(root)) for step in plan if step["what"] == "block"}
    tracked = set(git(root, "ls-files").split())
    for _ in range(3):
        everything(setup.describe(root), settings)
    changed = status(root)
    assert {name for name, state in changed.items() if state == " M"} == blocks & tracked
    assert {name for name, state in changed.items() if state != " M"} == {
        name for name in FACTS if "mine" not in name
    } | {".memory/.gitignore"}
    for name in blocks & tracked:
        data = (root / name).read_bytes()
        assert data.count(ending) == data.count(b"\n")
    assert ("AGENTS.md" in blocks) == ("AGENTS.md" in LAYOUTS[layout] or layout == "nothing")

    # Committed and checked out anew, in Git's own line ends, it is as it should be.
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "facts")
    for name in (*(blocks & tracked), *(name for name in FACTS if "mine" not in name)):
        (root / name).unlink()
    git(root, "checkout", "-q", "--", ".")
    assert (root / ".memory/staging.md").read_bytes().endswith(ending)
    everything(setup.describe(root), settings)
    before = tree(root)
    for _ in range(3):
        everything(setup.describe(root), settings)
    assert differing(before, tree(root)) == set()
    assert status(root) == {}


def status(root: Path) -> dict[str, str]:
    """What `git status` tells: name to its two letters."""
    lines = git(root, "status", "--porcelain", "-uall").splitlines()
    return {line[3:].strip('"'): line[:2] for line in lines}
