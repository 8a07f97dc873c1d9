"""Memories that Claude Code and Codex kept by themselves: taken over by `init`, given back by `eject`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from .user import AGENTS, Entry, User, serving, tree, write, write_fact

THREAD_A, THREAD_B = (f"0199aaaa-0000-7000-8000-00000000000{digit}" for digit in "ab")

CLAUDE_FACTS = ("Tabs are four columns wide.", "Releases happen on Thursdays.", "Mallory reviews the parser.")
INLINE = "Never push on a Friday; that is all there is to know."
CODEX_A = ("The build needs cmake.", "Snapshots live in fixtures.", "Port 8081 serves the mock.")
CODEX_B = ("Kernel modules are signed.", "Nightly jobs run in Oslo.", "Vendored zlib stays pinned.")
CODEX_USER = ("Answer in short sentences.", "Prefer ripgrep over grep.")

CODEX_CONFIG = """\
# my own settings
model = "gpt-5"   # the good one

[features]
memories = true  # on purpose

[tui]
theme = 'dark'
"""


@pytest.fixture
def roots(user: User) -> tuple[Path, Path]:
    """Repositories A and B, and a home full of memories of both."""
    one, two = user.repository("a"), user.repository("b", {"AGENTS.md": AGENTS, "src/deep/x.py": "x\n"})
    _fill_claude(user.claude_memory(one))
    _fill_codex(user.home / ".codex", one, two)
    return one, two


def _fill_claude(memory: Path) -> None:
    head = (
        "---\nname: {name}\ndescription: on {name}\nmetadata:\n  node_type: memory\n  type: {type}\n---\n\n"
    )
    write(memory / "style.md", head.format(name="style", type="feedback") + CLAUDE_FACTS[0] + "\n")
    write(
        memory / "job/flow/release.md", head.format(name="release", type="project") + CLAUDE_FACTS[1] + "\n"
    )
    write(memory / "job/people.md", CLAUDE_FACTS[2] + "\r\n")
    write(memory / "job/diagram.png", b"\x89PNG\r\n\x1a\n\0\0")
    write(memory / ".hidden/state.json", "{}")
    (memory / "empty").mkdir()
    (memory / "again.md").symlink_to("style.md")
    write(
        memory / "MEMORY.md",
        f"# My notes\n\n{INLINE}\n\n- [style](style.md) — on style\n",
    )
    (memory / "style.md").chmod(0o640)
    (memory / "job/people.md").chmod(0o444)
    (memory / "job/flow").chmod(0o711)
    (memory / "job/diagram.png").chmod(0o755)
    memory.chmod(0o700)


def _fill_codex(codex: Path, one: Path, two: Path) -> None:
    write(codex / "config.toml", CODEX_CONFIG)
    (codex / "config.toml").chmod(0o600)
    groups = "".join(
        f"# Task Group: {root.name}\napplies_to: cwd={root}; anything\n## Reusable knowledge\n- {text}\n\n"
        for root, text in ((one, CODEX_A[0]), (two, CODEX_B[0]))
    )
    write(codex / "memories/MEMORY.md", groups)
    write(codex / "memories/memory_summary.md", f"v1\n## User preferences\n- {CODEX_USER[0]}\n")
    for number, (root, text) in enumerate(((one, CODEX_A[1]), (two / "src/deep", CODEX_B[1]))):
        note = codex / f"memories/extensions/ad_hoc/notes/2026-01-0{number + 1}T03-04-05-x.md"
        write(note, f"cwd: {root}\n\n{text}\n")
    for thread, root, text in ((THREAD_A, one, CODEX_A[2]), (THREAD_B, two, CODEX_B[2])):
        write(
            codex / f"memories_v2/rollout_summaries/{thread}.md", f"thread_id: {thread}\n\n## Found\n{text}\n"
        )
        meta = {"type": "session_meta", "payload": {"id": thread, "cwd": str(root)}}
        rollout = codex / f"sessions/2026/01/02/rollout-2026-01-02T03-04-05-{thread}.jsonl"
        write(rollout, json.dumps(meta) + "\n")
    write(codex / "memories_v2/extensions/ad_hoc/notes/n.md", f"{CODEX_USER[1]}\n")


def _texts(directory: Path) -> str:
    files = (path for path in directory.rglob("*.md") if path.is_file() and path.name != "MEMORY.md")
    return "\n".join(path.read_text() for path in files)


def _global(user: User) -> str:
    return _texts(user.home / ".local/share/agent-bridge/memory")


def _prompt_files(user: User, root: Path) -> str:
    places = [root / name for name in ("AGENTS.md", "CLAUDE.md", ".memory/MEMORY.md")]
    places += [user.home / name for name in (".codex/AGENTS.md", ".claude/CLAUDE.md")]
    return "\n".join(place.read_text() for place in places if place.exists())


def _holds(text: str, wanted: Iterable[str]) -> list[bool]:
    return [one in text for one in wanted]


def _theirs(user: User) -> dict[str, Entry]:
    """The home, repositories included, without `.memory/` and our own state."""
    ours = (
        ".local/state/agent-bridge",
        ".local/share/agent-bridge",
        ".cache/agent-bridge",
        ".config/agent-bridge",
    )
    stores = (".memory", *(f"{name}/.memory" for name in ("a", "b")))
    parents = {".local", ".local/state", ".local/share", ".cache", ".config"}
    return {
        name: entry
        for name, entry in tree(user.home).items()
        if name not in parents and not name.startswith(ours) and not name.startswith(stores)
    }


def _difference(before: dict[str, Entry], after: dict[str, Entry]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_each_memory_goes_where_it_belongs(user: User, roots: tuple[Path, Path]) -> None:
    one, two = roots
    done = user.init(one)["data"]
    assert done["imported"]["held"] == len(CODEX_B)
    store = _texts(one / ".memory")
    assert all(_holds(store, (*CLAUDE_FACTS, *CODEX_A)))
    assert not any(_holds(store, (*CODEX_B, *CODEX_USER)))
    assert all(_holds(_global(user), CODEX_USER))
    assert not any(_holds(_global(user), (*CODEX_A, *CODEX_B)))
    prompt = _prompt_files(user, one)
    assert all(_holds(prompt, (*CLAUDE_FACTS, *CODEX_A, *CODEX_USER)))
    assert not any(_holds(prompt, CODEX_B))
    assert INLINE in (one / ".memory/MEMORY.md").read_text()
    assert (one / ".memory/style.md").is_file()
    user.init(two)
    store = _texts(two / ".memory")
    assert all(_holds(store, CODEX_B))
    assert not any(_holds(store, (*CODEX_A, *CODEX_USER, *CLAUDE_FACTS)))
    assert not any(_holds(_prompt_files(user, one), CODEX_B))
    assert all(_holds(_prompt_files(user, two), CODEX_B))


def test_a_second_init_takes_nothing_over_again(user: User, roots: tuple[Path, Path]) -> None:
    one, _ = roots
    user.init(one)
    for fact in user.run("list", cwd=one)["data"]["facts"]:
        user.run("rm", "--yes", fact["id"], cwd=one)
    user.init(one)
    assert user.run("list", cwd=one)["data"]["facts"] == []


@pytest.mark.parametrize("with_service", [False, True])
def test_with_nothing_learnt_every_byte_comes_back(
    user: User, roots: tuple[Path, Path], *, with_service: bool
) -> None:
    before = _theirs(user)
    if with_service:
        with serving(user) as served:
            user.init(roots[0])
            served.until_known(roots[0])
            assert _theirs(user) != before
            user.run("eject", "--yes", cwd=roots[0])
            served.until(lambda: not served.status()["projects"], served.status)
    else:
        user.init(roots[0])
        assert _theirs(user) != before
        user.run("eject", "--yes", cwd=roots[0])
    assert _difference(before, _theirs(user)) == set()
    assert all(_holds(_texts(roots[0] / ".memory"), CLAUDE_FACTS))


def test_facts_learnt_since_are_all_that_differs(user: User, roots: tuple[Path, Path]) -> None:
    one, _ = roots
    before = _theirs(user)
    user.init(one)
    learnt = user.add(one, "The staging box is called Heron.")["path"]
    with serving(user) as served:
        written = write_fact(
            one, "by-claude.md", "Lint runs before tests.", name="lint", description="lint first"
        )
        served.until_in(one / "AGENTS.md", "Lint runs before tests.", "The staging box is called Heron.")
    user.run("eject", "--yes", cwd=one)
    after = _theirs(user)
    memory = user.claude_memory(one).relative_to(user.home).as_posix()
    new = {f"{memory}/{learnt}", f"{memory}/{written.name}", f"{memory}/MEMORY.md"}
    made = {f"{memory}/{parent}" for parent in Path(learnt).parents if str(parent) != "."}
    assert _difference(before, after) == new | made
    assert b"The staging box is called Heron." in after[f"{memory}/{learnt}"][2]
    index_before, index_after = (found[f"{memory}/MEMORY.md"][2].decode() for found in (before, after))
    assert index_after.startswith(index_before)
    lines = index_after.removeprefix(index_before).splitlines()
    assert sorted(line.partition("](")[2].partition(")")[0] for line in lines) == sorted(
        [learnt, written.name]
    )


def test_an_edited_memory_comes_back_as_edited(user: User, roots: tuple[Path, Path]) -> None:
    one, _ = roots
    before = _theirs(user)
    user.init(one)
    for name in ("style.md", "job/people.md"):
        path = one / ".memory" / name
        path.write_bytes(path.read_bytes() + b"Since May.\n")
    user.run("eject", "--yes", cwd=one)
    memory = user.claude_memory(one).relative_to(user.home).as_posix()
    after = _theirs(user)
    changed = {f"{memory}/style.md", f"{memory}/job/people.md"}
    assert _difference(before, after) == changed
    for name in changed:
        assert after[name][1] == before[name][1]
        assert after[name][2].endswith(b"Since May.\n")


def test_an_index_with_text_only(user: User) -> None:
    """No memory files at all: what Claude knows stands in MEMORY.md itself."""
    root = user.repository("a")
    memory = user.claude_memory(root)
    write(memory / "MEMORY.md", f"{INLINE}\n")
    before = _theirs(user)
    user.init(root)
    assert INLINE in (memory / "MEMORY.md").read_text()
    user.run("eject", "--yes", cwd=root)
    assert _difference(before, _theirs(user)) == set()


def test_what_serves_all_projects_goes_with_the_last_one(user: User, roots: tuple[Path, Path]) -> None:
    one, two = roots
    before = _theirs(user)
    user.init(one)
    user.init(two)
    user.run("eject", "--yes", cwd=one)
    assert _difference(before, _theirs(user)) >= {".codex/config.toml", ".codex/AGENTS.md"}
    memory = user.claude_memory(one).relative_to(user.home).as_posix()
    assert not [name for name in _difference(before, _theirs(user)) if name.startswith(("a/", memory))]
    assert all(_holds((two / "AGENTS.md").read_text(), CODEX_B))
    user.run("eject", "--yes", cwd=two)
    assert _difference(before, _theirs(user)) == set()


def test_all_projects_at_once(user: User, roots: tuple[Path, Path]) -> None:
    before = _theirs(user)
    for root in roots:
        user.init(root)
    user.run("eject", "--all", "--yes", cwd=user.home)
    assert _difference(before, _theirs(user)) == set()
    assert user.run("status", cwd=user.home, exit_codes=(3,))["data"]["projects"] == []


def test_a_project_whose_directory_is_gone_can_be_left(user: User, roots: tuple[Path, Path]) -> None:
    one, two = roots
    before = _theirs(user)
    user.init(one)
    user.init(two)
    shutil.rmtree(two)
    user.run("eject", "--all", "--yes", cwd=user.home)
    left = _difference(before, _theirs(user))
    assert not [name for name in left if name != "b" and not name.startswith("b/")]
    assert not two.exists()


def test_purge_removes_our_own_state_and_no_memory(user: User, roots: tuple[Path, Path]) -> None:
    one, two = roots
    before = _theirs(user)
    user.init(one)
    user.init(two)
    stores = [tree(root / ".memory") for root in roots]
    user.run("eject", "--yes", "--purge", cwd=one)
    state = user.home / ".local/state/agent-bridge"
    assert len(list((state / "projects").iterdir())) == 1
    user.run("eject", "--yes", "--purge", cwd=two)
    assert {path.suffix for path in state.rglob("*") if path.is_file()} <= {".lock"}
    assert not (user.home / ".cache/agent-bridge").exists()
    assert _difference(before, _theirs(user)) == set()
    for root, store in zip(roots, stores, strict=True):
        left = tree(root / ".memory")
        assert {name: left.get(name) for name in store if name != ".gitignore"} == {
            name: entry for name, entry in store.items() if name != ".gitignore"
        }
    assert all(_holds(_global(user), CODEX_USER))
