"""After `git add -A` no private file is in the index: shown with Git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_bridge import git
from agent_bridge.projection.excludes import Exposed, Exposure, check, exclude_lines

pytestmark = pytest.mark.usefixtures("sealed_home")


def run(where: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=where, capture_output=True, check=True).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "repo"
    (path / ".memory" / "entries").mkdir(parents=True)
    run(path, "init", "-q", "-b", "main")
    return path


def checkout(repo: Path) -> git.Checkout:
    found = git.find_checkout(repo)
    assert found is not None
    return found


def exclude(repo: Path, lines: list[str]) -> None:
    path = git.exclude_file(checkout(repo))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def staged(repo: Path) -> set[str]:
    run(repo, "add", "-A")
    return {name.decode() for name in run(repo, "ls-files", "-z").split(b"\0") if name}


NAMES = ["plain.md", "with blank.md", "!bang.md", "#hash.md", "[a].md", "st*r.md", "q?.md", "back\\slash.md"]
NAMES += ["ümläut.md", " first.md", "x.md .md", "a\tb.md", "-dash.md", "quo'te\".md", "**.md"]


def test_exactly_the_shared_ones_are_added(repo: Path) -> None:
    for name in NAMES:
        (repo / ".memory" / "entries" / name).write_text("shared")
        (repo / ".memory" / "entries" / f"x{name}").write_text("private")
    exclude(repo, exclude_lines(shared=[f"entries/{name}" for name in NAMES]))
    assert staged(repo) == {f".memory/entries/{name}" for name in NAMES}


def test_a_pattern_lets_in_no_neighbour(repo: Path) -> None:
    for name in ("[a].md", "a.md", "st*r.md", "star.md", "q?.md", "qx.md", "b\\a.md", "ba.md"):
        (repo / ".memory" / name).write_text("x")
    exclude(repo, exclude_lines(shared=["[a].md", "st*r.md", "q?.md", "b\\a.md"]))
    assert staged(repo) == {".memory/[a].md", ".memory/st*r.md", ".memory/q?.md", ".memory/b\\a.md"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.sets(
        st.text(st.sampled_from(list("ab*?[]!#\\ \t\n\r-é~^{}")), min_size=1, max_size=6), max_size=8
    )
)
def test_any_names_private_ones_never_shared_ones_exactly(repo: Path, names: set[str]) -> None:
    store = repo / ".memory"
    for old in store.glob("*.md"):
        old.unlink()
    run(repo, "rm", "-rq", "--cached", "--ignore-unmatch", ".")
    for index, name in enumerate(sorted(names)):
        (store / f"{name}.md").write_text("shared" if index % 2 else "private")
    shared = {f"{name}.md" for index, name in enumerate(sorted(names)) if index % 2}
    exclude(repo, exclude_lines(shared=shared))
    expected = {f".memory/{name}" for name in shared if not set(name) & {"\n", "\r"}}
    assert staged(repo) == expected


def test_what_nobody_has_judged_and_what_lies_beside_a_save_stays_out(repo: Path) -> None:
    (repo / ".memory" / "decisions").mkdir()
    for name in (
        "new-by-claude.md",
        "entries/new.md",
        "decisions/x.md",
        "x.md~",
        "x.md.tmp.4711.1",
        ".x.md.swp",
        "#x.md#",
        ".x.md.0a1b2c3d.agent-bridge.tmp",
        "MEMORY.md",
        "index.json",
    ):
        (repo / ".memory" / name).write_text("secret")
    (repo / ".AGENTS.md.0a1b2c3d.agent-bridge.tmp").write_text("secret")
    (repo / ".memory" / ".gitignore").write_text("MEMORY.md\nindex.json\n")
    exclude(repo, exclude_lines())
    assert staged(repo) == {".memory/.gitignore"}


def test_local_store_and_created_files_stay_out_also_in_a_worktree(repo: Path, tmp_path: Path) -> None:
    (repo / "code").write_text("x")
    run(repo, "add", "code")
    run(repo, "commit", "-qm", "first")
    tree = tmp_path.resolve() / "tree"
    run(repo, "worktree", "add", "-q", str(tree))
    exclude(repo, exclude_lines(local=True, created=["AGENTS.md", ".claude/rules/agent-bridge.md"]))
    for top in (repo, tree):
        (top / ".memory").mkdir(exist_ok=True)
        (top / ".claude" / "rules").mkdir(parents=True)
        for name in (".memory/conventions.md", "AGENTS.md", ".claude/rules/agent-bridge.md"):
            (top / name).write_text("x")
        (top / "sub").mkdir()
        (top / "sub" / "AGENTS.md").write_text("the user's")
        assert staged(top) == {"code", "sub/AGENTS.md"}


def test_check_reports_what_an_in_tree_rule_lets_in_and_what_is_tracked(repo: Path) -> None:
    store = repo / ".memory"
    for name in ("private.md", "tracked.md", "fine.md", "MEMORY.md"):
        (store / name).write_text("x")
    run(repo, "add", "-f", ".memory/tracked.md", ".memory/MEMORY.md")
    (store / ".gitignore").write_text("!private.md\n")
    exclude(repo, exclude_lines())
    private = [store / name for name in ("private.md", "tracked.md", "fine.md")]
    assert check(checkout(repo), store, private) == [
        Exposed(store / "MEMORY.md", Exposure.TRACKED),
        Exposed(store / "private.md", Exposure.ADDABLE),
        Exposed(store / "tracked.md", Exposure.TRACKED),
    ]
    assert ".memory/private.md" in staged(repo)  # Git agrees: the report was needed


def test_check_is_silent_when_the_lines_suffice(repo: Path) -> None:
    (repo / ".memory" / "private.md").write_text("x")
    exclude(repo, exclude_lines())
    assert check(checkout(repo), repo / ".memory", [repo / ".memory" / "private.md"]) == []


def test_untracked_again_a_private_fact_leaves_the_index_and_stays_out(repo: Path) -> None:
    fact = repo / ".memory" / "private.md"
    fact.write_text("x")
    run(repo, "add", "-f", "-A")
    run(repo, "commit", "-qm", "too much")
    exclude(repo, exclude_lines())
    git.untrack(checkout(repo), [fact])
    assert staged(repo) == set()
    assert fact.read_text() == "x"
