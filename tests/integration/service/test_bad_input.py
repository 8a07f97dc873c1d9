"""Files that can't be facts: the service stays up, the others are projected, `status` names each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .user import PROGRAM, Served, User, serving, write, write_fact


def _alias_bomb() -> bytes:
    rungs = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rungs += [f"{name}: &{name} [{', '.join(['*' + before] * 9)}]" for before, name in pairwise("abcdefghi")]
    return ("---\n" + "\n".join(rungs) + "\n---\n\nbomb\n").encode()


BAD = {
    "latin1.md": b"caf\xe9 costs three\n",
    "utf16.md": "Sixteen bits.\n".encode("utf-16"),
    "large.md": b"large " * (10 * 1024 * 1024 // 6),
    "broken.md": b"---\nname: [unclosed\ntags: {a\n---\n\nbroken yaml\n",
    "bomb.md": _alias_bomb(),
    "deep.md": b"---\nkey: " + b"[" * 5000 + b"]" * 5000 + b"\n---\n\ndeep\n",
}


@pytest.fixture(scope="module")
def root(shared: Served) -> Path:
    """One project for all: bad files stay where they are and pile up."""
    return shared.project("project")


def _problems(served: Served, root: Path) -> dict[str, str]:
    problems = served.state(root)["problems"]
    return {Path(problem["path"]).name: problem["reason"] for problem in problems}


def _until_named(served: Served, root: Path, *names: str) -> None:
    served.until(lambda: set(names) <= set(_problems(served, root)), lambda: served.state(root)["problems"])


def _still_projects(served: Served, root: Path, text: str) -> None:
    write_fact(root, "good.md", text)
    served.until_in(root / "AGENTS.md", text)
    served.until_in(root / "CLAUDE.md", text)


@pytest.mark.parametrize("name", sorted(BAD))
def test_content(shared: Served, root: Path, name: str) -> None:
    write(root / ".memory" / name, BAD[name])
    _until_named(shared, root, name)
    _still_projects(shared, root, f"The good one beside {name}.")
    assert name in _problems(shared, root)


def test_a_fifo(shared: Served, root: Path) -> None:
    os.mkfifo(root / ".memory/fifo.md")
    _until_named(shared, root, "fifo.md")
    _still_projects(shared, root, "The good one beside a FIFO.")


def test_a_link_to_a_file_outside(shared: Served, root: Path) -> None:
    outside = write(shared.user.home / "outside.md", "Nobody's memory.\n")
    (root / ".memory/link.md").symlink_to(outside)
    (root / ".memory/hosts.md").symlink_to("/etc/hosts")
    _until_named(shared, root, "link.md", "hosts.md")
    _still_projects(shared, root, "The good one beside links.")
    for path in ("AGENTS.md", "CLAUDE.md", ".memory/MEMORY.md"):
        assert "Nobody's memory." not in (root / path).read_text()


def test_a_directory_with_a_facts_name(shared: Served, root: Path) -> None:
    (root / ".memory/x.md").mkdir()
    _until_named(shared, root, "x.md")
    _still_projects(shared, root, "The good one beside a directory.")
    write_fact(root, "x.md/inside.md", "The one inside.")
    shared.until_in(root / "AGENTS.md", "The one inside.")


def test_no_permission_to_read(user: User) -> None:
    """As an ordinary user: for root there is no such file."""
    root = user.repository("project")
    closed = write_fact(root, "closed.md", "Closed to everyone.")
    closed.chmod(0)
    (root / ".memory/shut").mkdir(mode=0)
    environment = user.product.environment()
    program = [*_without_rights(), PROGRAM]

    def run(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [*program, *words, "--json"], cwd=root, env=environment, capture_output=True, check=False
        )
        assert done.stdout, done.stderr
        envelope: dict[str, Any] = json.loads(done.stdout)
        return envelope

    run("init", "--yes")
    with subprocess.Popen([*program, "service", "run"], cwd="/", env=environment) as process:
        try:
            deadline = time.monotonic() + 30
            problems: set[str] = set()
            while not {"closed.md", "shut"} <= problems:
                assert time.monotonic() < deadline, problems
                assert process.poll() is None
                projects = run("status")["data"]["projects"]
                problems = {one["path"] for project in projects for one in project.get("problems", ())}
            run("add", "The good one.")
            while "The good one." not in (root / "AGENTS.md").read_text():
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            process.terminate()
            process.wait(10)
    assert "Closed to everyone." not in (root / "AGENTS.md").read_text()


def _without_rights() -> list[str]:
    """What a command is started with so that file modes count, as they do for an ordinary user."""
    if os.getuid() != 0:
        return []
    setpriv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    tried = subprocess.run([*setpriv, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"root can't be made an ordinary user here: {tried.stderr.strip()}")
    return setpriv


def test_all_at_once_at_start_and_each_goes_with_its_file(user: User) -> None:
    root = user.repository("project")
    user.init(root)
    for name, data in BAD.items():
        write(root / ".memory" / name, data)
    os.mkfifo(root / ".memory/fifo.md")
    (root / ".memory/x.md").mkdir()
    (root / ".memory/link.md").symlink_to("/etc/hosts")
    write_fact(root, "good.md", "The good one.")
    with serving(user) as served:
        names = {*BAD, "fifo.md", "x.md", "link.md"}
        assert set(_problems(served, root)) == names
        served.until_in(root / "AGENTS.md", "The good one.")
        for path in (root / ".memory").glob("*.md"):
            if path.name in names and not path.is_dir():
                path.unlink()
        (root / ".memory/x.md").rmdir()
        served.until(lambda: not _problems(served, root), lambda: _problems(served, root))
