"""Git beside the running service: merging, switching, stashing, rebasing with facts that aren't committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.harnesses.managed_block import block_text, hash_valid, items

from .user import AGENTS, Served, User, serving, write, write_fact

LINES = AGENTS + "".join(f"\n- rule {number}\n" for number in range(20))


@pytest.fixture
def root(shared: Served, names: Iterator[str]) -> Path:
    """A set-up project with one committed fact."""
    root = shared.project(next(names), files={"AGENTS.md": LINES, "other.txt": "one\n"})
    write_fact(root, "first.md", "The first fact.")
    shared.until_in(root / "AGENTS.md", "The first fact.")
    shared.commit(root, "First fact")
    return root


def _settled(served: Served, root: Path, *texts: str, gone: tuple[str, ...] = ()) -> None:
    """The block is the render of the store: these facts once each, none else, and its hash fits."""
    agents = root / "AGENTS.md"
    served.until_in(agents, *texts)
    for text in gone:
        served.until_not_in(agents, text)

    def equal() -> bool:
        body = block_text(agents.read_bytes())
        shown = [item for item in items(body or "") if item.fact_id is not None]
        return body is not None and hash_valid(body) and len(shown) == len(texts)

    served.until(equal, lambda: agents.read_text())
    assert b"<<<<<<<" not in agents.read_bytes()
    served.until(lambda: served.state(root)["waiting"] is None, lambda: served.state(root))
    before = agents.read_bytes()
    served.user.run("sync", cwd=root)
    assert agents.read_bytes() == before
    held = [path for path in (root / ".memory").rglob("*.md") if path.name != "MEMORY.md"]
    assert len(held) == len(texts)
    assert not [path for path in held if "<<<<<<<" in path.read_text()]


def _branch_with_a_fact(served: Served, root: Path, branch: str, name: str, text: str) -> None:
    git = served.user.git
    git(root, "checkout", "-q", "-b", branch, "main")
    _settled(served, root, "The first fact.")
    write_fact(root, name, text)
    served.until_in(root / "AGENTS.md", text)
    served.commit(root, text)


def test_two_branches_that_each_added_facts_merge(shared: Served, root: Path) -> None:
    git = shared.user.git
    _branch_with_a_fact(shared, root, "left", "left.md", "A fact of the left.")
    _branch_with_a_fact(shared, root, "right", "right.md", "A fact of the right.")
    write(root / "AGENTS.md", (root / "AGENTS.md").read_text().replace("- rule 3\n", "- rule three\n"))
    shared.commit(root, "Rule three")
    git(root, "merge", "-q", "-m", "Both", "left")
    assert git(root, "ls-files", "--unmerged") == ""
    _settled(shared, root, "The first fact.", "A fact of the left.", "A fact of the right.")
    assert "- rule three" in (root / "AGENTS.md").read_text()
    assert shared.state(root)["candidates"] == 0


def test_a_deleted_fact_does_not_come_back(shared: Served, root: Path) -> None:
    git = shared.user.git
    _branch_with_a_fact(shared, root, "left", "left.md", "A fact of the left.")
    git(root, "checkout", "-q", "main")
    _settled(shared, root, "The first fact.")
    (root / ".memory/first.md").unlink()
    shared.until_not_in(root / "AGENTS.md", "The first fact.")
    shared.commit(root, "Without the first")
    git(root, "merge", "-q", "-m", "Both", "left")
    _settled(shared, root, "A fact of the left.", gone=("The first fact.",))
    shared.commit(root, "What the merge left to render")
    git(root, "checkout", "-q", "left")
    git(root, "merge", "-q", "main")
    _settled(shared, root, "A fact of the left.", gone=("The first fact.",))
    assert shared.state(root)["candidates"] == 0


def test_checkout_with_an_uncommitted_fact(shared: Served, root: Path) -> None:
    git = shared.user.git
    git(root, "branch", "side")
    write_fact(root, "new.md", "Not committed yet.")
    shared.until_in(root / "AGENTS.md", "Not committed yet.")
    git(root, "checkout", "-q", "side")
    _settled(shared, root, "The first fact.", "Not committed yet.")
    git(root, "checkout", "-q", "main")
    _settled(shared, root, "The first fact.", "Not committed yet.")


def _colleague(user: User, root: Path, names: Iterator[str]) -> Path:
    """A clone by somebody without the product; the project pulls from it."""
    clone = user.home / next(names)
    user.git(user.home, "clone", "-q", str(root), str(clone))
    user.git(root, "remote", "add", "origin", str(clone))
    user.git(root, "fetch", "-q")
    user.git(root, "branch", "-q", "--set-upstream-to=origin/main", "main")
    return clone


@pytest.mark.parametrize("how", [(), ("--rebase", "--autostash"), ("--no-rebase", "--autostash")])
def test_pull_with_an_uncommitted_fact(
    shared: Served, root: Path, names: Iterator[str], how: tuple[str, ...]
) -> None:
    user = shared.user
    clone = _colleague(user, root, names)
    write(clone / "other.txt", "two\n")
    user.commit(clone, "Two")
    write_fact(root, "new.md", "Not committed yet.")
    shared.until_in(root / "AGENTS.md", "Not committed yet.")
    if how:
        write(root / "mine.txt", "mine\n")
        user.git(root, "add", "mine.txt")
        user.git(root, "commit", "-q", "-m", "Mine")
    user.git(root, "pull", "-q", *how)
    assert (root / "other.txt").read_text() == "two\n"
    assert user.git(root, "stash", "list") == ""
    _settled(shared, root, "The first fact.", "Not committed yet.")


def test_pull_with_autostash_of_a_change_to_the_same_file(
    shared: Served, root: Path, names: Iterator[str]
) -> None:
    user = shared.user
    clone = _colleague(user, root, names)
    text = (clone / "AGENTS.md").read_text().replace("- rule 2\n", "- rule two\n")
    write(clone / "AGENTS.md", text)
    user.commit(clone, "Rule two")
    write_fact(root, "new.md", "Not committed yet.")
    shared.until_in(root / "AGENTS.md", "Not committed yet.")
    user.git(root, "pull", "-q", "--rebase", "--autostash")
    assert user.git(root, "stash", "list") == ""
    _settled(shared, root, "The first fact.", "Not committed yet.")
    assert "- rule two" in (root / "AGENTS.md").read_text()


def test_stash_and_pop(shared: Served, root: Path) -> None:
    git = shared.user.git
    write_fact(root, "new.md", "Not committed yet.")
    shared.until_in(root / "AGENTS.md", "Not committed yet.")
    git(root, "stash", "-q")
    shared.until(lambda: shared.state(root)["waiting"] is not None, lambda: shared.state(root))
    assert "Not committed yet." not in (root / "AGENTS.md").read_text()
    git(root, "stash", "pop", "-q")
    assert git(root, "stash", "list") == ""
    _settled(shared, root, "The first fact.", "Not committed yet.")


def test_rebase_with_autostash(shared: Served, root: Path) -> None:
    git = shared.user.git
    _branch_with_a_fact(shared, root, "side", "side.md", "A fact of the side.")
    git(root, "checkout", "-q", "main")
    _settled(shared, root, "The first fact.")
    write(root / "AGENTS.md", (root / "AGENTS.md").read_text().replace("- rule 2\n", "- rule two\n"))
    shared.commit(root, "Rule two")
    git(root, "checkout", "-q", "side")
    _settled(shared, root, "The first fact.", "A fact of the side.")
    write_fact(root, "new.md", "Not committed yet.")
    shared.until_in(root / "AGENTS.md", "Not committed yet.")
    git(root, "rebase", "-q", "--autostash", "main")
    assert git(root, "stash", "list") == ""
    _settled(shared, root, "The first fact.", "A fact of the side.", "Not committed yet.")
    assert "- rule two" in (root / "AGENTS.md").read_text()


def test_a_colleagues_line_inside_the_block_becomes_a_candidate(
    shared: Served, root: Path, names: Iterator[str]
) -> None:
    user = shared.user
    clone = _colleague(user, root, names)
    text = (clone / "AGENTS.md").read_text()
    line = "### The first fact. [first]\n"
    assert text.count(line) == 1
    write(clone / "AGENTS.md", text.replace(line, f"{line}\nCall Ann before a deploy.\n"))
    user.commit(clone, "Ann")
    user.git(root, "pull", "-q")
    shared.until(lambda: shared.state(root)["candidates"] == 1, lambda: shared.state(root))
    _settled(shared, root, "The first fact.", gone=("Call Ann before a deploy.",))
    found = user.run("review", cwd=root)["data"]["candidates"]
    assert [one["text"] for one in found] == ["Call Ann before a deploy."]


def test_nothing_is_written_while_a_rebase_is_stopped(shared: Served, root: Path) -> None:
    git = shared.user.git
    git(root, "commit", "-q", "--allow-empty", "-m", "Last")
    stop = {"GIT_SEQUENCE_EDITOR": "sed -i s/^pick/edit/"}
    git(root, "rebase", "-q", "-i", "--keep-empty", "HEAD~1", env=stop)
    assert (root / ".git/rebase-merge").is_dir()
    before = (root / "AGENTS.md").read_bytes()
    with shared.change(root):
        write_fact(root, "new.md", "Saved amid a rebase.")
    shared.until(lambda: "rebase" in str(shared.state(root)["waiting"]), lambda: shared.state(root))
    shared.user.run("sync", cwd=root, exit_codes=(0, 4))
    assert (root / "AGENTS.md").read_bytes() == before
    git(root, "rebase", "--continue", env={"GIT_EDITOR": "true"})
    _settled(shared, root, "The first fact.", "Saved amid a rebase.")


AT_WORK = {
    "bisect": (["bisect", "start"], ["bisect", "reset"]),
    "cherry-pick": (["cherry-pick", "left"], ["cherry-pick", "--abort"]),
    "revert": (["revert", "--no-edit", "HEAD~1"], ["revert", "--abort"]),
    "rebase": (["am", "../left.patch"], ["am", "--abort"]),  # `am` and `rebase` leave the same sign
}


@pytest.mark.parametrize("work", AT_WORK)
def test_nothing_is_written_while_a_command_has_stopped(shared: Served, root: Path, work: str) -> None:
    git = shared.user.git
    for branch, texts in (("left", ["left\n"]), ("main", ["right\n", "right, again\n"])):
        git(root, "checkout", "-q", *([] if branch == "main" else ["-b"]), branch)
        for text in texts:
            write(root / "other.txt", text)
            shared.commit(root, text)
    write(root.parent / "left.patch", git(root, "format-patch", "--stdout", "-1", "left"))
    begin, end = AT_WORK[work]
    before = (root / "AGENTS.md").read_bytes()
    git(root, *begin, ok=False)
    with shared.change(root):
        write_fact(root, "new.md", "Saved amid its work.")
    shared.until(lambda: work in str(shared.state(root)["waiting"]), lambda: shared.state(root))
    shared.user.run("sync", cwd=root, exit_codes=(4,))
    assert (root / "AGENTS.md").read_bytes() == before
    git(root, *end)
    _settled(shared, root, "The first fact.", "Saved amid its work.")


def test_nothing_is_written_while_the_index_is_locked(shared: Served, root: Path) -> None:
    lock = root / ".git/index.lock"
    before = (root / "AGENTS.md").read_bytes()
    lock.touch()
    with shared.change(root):
        write_fact(root, "new.md", "Saved amid a command.")
    shared.until(lambda: "index.lock" in str(shared.state(root)["waiting"]), lambda: shared.state(root))
    assert (root / "AGENTS.md").read_bytes() == before
    lock.unlink()
    _settled(shared, root, "The first fact.", "Saved amid a command.")


def test_nothing_is_written_into_a_merge_with_conflicts(shared: Served, root: Path) -> None:
    git = shared.user.git
    for branch, text in (("left", "- left 5\n"), ("right", "- right 5\n")):
        git(root, "checkout", "-q", "-b", branch, "main")
        write(root / "AGENTS.md", (root / "AGENTS.md").read_text().replace("- rule 5\n", text))
        shared.commit(root, text)
    git(root, "merge", "-q", "left", ok=False)
    conflicted = (root / "AGENTS.md").read_text()
    assert conflicted.count("<<<<<<<") == 1
    with shared.change(root):
        write_fact(root, "new.md", "Saved amid a merge.")
    assert (root / "AGENTS.md").read_text() == conflicted
    head, _, rest = conflicted.partition("<<<<<<<")
    write(root / "AGENTS.md", head + "- both 5\n" + rest.partition(">>>>>>> left\n")[2])
    shared.commit(root, "Merged")
    _settled(shared, root, "The first fact.", "Saved amid a merge.")
    assert "- both 5" in (root / "AGENTS.md").read_text()


def test_without_the_drivers_program_git_marks_conflicts_as_ever(user: User) -> None:
    root = user.repository("project", {"AGENTS.md": LINES})
    user.init(root)
    driver = user.git(root, "config", "merge.agent-bridge.driver")
    assert "agent-bridge" in driver
    gone = user.home / "gone/agent-bridge"
    program = driver.split(";")[0].removeprefix("p=")
    user.git(root, "config", "merge.agent-bridge.driver", driver.strip().replace(program, str(gone)))
    with serving(user) as served:
        write_fact(root, "first.md", "The first fact.")
        served.until_in(root / "AGENTS.md", "The first fact.")
        served.commit(root)
        for branch in ("left", "right"):
            user.git(root, "checkout", "-q", "-b", branch, "main")
            served.until_not_in(root / "AGENTS.md", "A fact of the left.")
            write_fact(root, f"{branch}.md", f"A fact of the {branch}.")
            served.until_in(root / "AGENTS.md", f"A fact of the {branch}.")
            served.commit(root, branch)
        printed = user.git(root, "merge", "left", ok=False)
        assert "CONFLICT" in printed
        text = (root / "AGENTS.md").read_text()
        for mark in ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> "):
            assert mark in text
        # Conflicts wholly inside the block are rendered away once the merge is concluded.
        user.git(root, "add", "AGENTS.md")
        user.git(root, "commit", "-q", "-m", "Merged")
        _settled(served, root, "The first fact.", "A fact of the left.", "A fact of the right.")
