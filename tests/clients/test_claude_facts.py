"""What the product relies on in Claude Code 2.1.332, without the product.

When the pinned version changes, a failure here says which assumption no longer holds.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from clients.rig.claude import Claude
from clients.rig.script import edit, read, write

FACT = "The build tool is nox, not tox."
LINE = "- [Old](old.md) — old"


def test_claude_md_is_in_the_prompt_once_without_block_comments(claude: Claude, git_repo: Path) -> None:
    (git_repo / "CLAUDE.md").write_text(f"# Rules\n\n<!-- start -->\n{FACT}\n<!-- end -->\n", "utf-8")

    prompt = claude.prompt(git_repo)

    assert prompt.count(FACT) == 1
    assert prompt.contents_of(git_repo / "CLAUDE.md") == f"# Rules\n\n{FACT}"
    assert prompt.count("<!-- start -->") == 0


def test_agents_md_is_read_natively_where_no_claude_md_is(claude: Claude, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")

    prompt = claude.prompt(git_repo)

    assert prompt.contents_of(git_repo / "AGENTS.md") == FACT
    assert prompt.count(FACT) == 1


@pytest.mark.parametrize(
    ("other", "text", "hidden"),
    [
        ("CLAUDE.md", "Mine.\n", True),
        (".claude/CLAUDE.md", "Mine.\n", True),
        ("CLAUDE.local.md", "Mine.\n", True),
        ("CLAUDE.md", "", False),
        (".claude/rules/agent-bridge.md", "Mine.\n", False),
        ("../.claude/CLAUDE.md", "Mine.\n", False),
    ],
)
def test_what_hides_agents_md(claude: Claude, git_repo: Path, other: str, text: str, *, hidden: bool) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")
    (git_repo / other).parent.mkdir(parents=True, exist_ok=True)
    (git_repo / other).write_text(text, "utf-8")

    prompt = claude.prompt(git_repo)

    assert prompt.count(FACT) == (0 if hidden else 1)
    assert prompt.count("Mine.") == (1 if text else 0)


def test_an_import_brings_agents_md_back_in_the_root_only(claude: Claude, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")
    (git_repo / "CLAUDE.md").write_text("@AGENTS.md\n", "utf-8")
    below = git_repo / "sub"
    below.mkdir()

    assert claude.prompt(git_repo).count(FACT) == 1
    assert claude.prompt(below).count(FACT) == 0


def test_a_rules_file_is_read_from_a_sub_directory_too(claude: Claude, git_repo: Path) -> None:
    rules = git_repo / ".claude/rules/agent-bridge.md"
    rules.parent.mkdir(parents=True)
    rules.write_text(FACT + "\n", "utf-8")
    below = git_repo / "sub"
    below.mkdir()

    assert claude.prompt(below).contents_of(rules) == FACT


def test_the_global_file_comes_before_the_project_file(claude: Claude, git_repo: Path) -> None:
    everywhere = claude.home / ".claude/CLAUDE.md"
    everywhere.parent.mkdir()
    everywhere.write_text("Everywhere.\n", "utf-8")
    (git_repo / "CLAUDE.md").write_text("Here.\n", "utf-8")

    assert claude.prompt(git_repo).paths == (everywhere, git_repo / "CLAUDE.md")


def test_auto_memory_directory_opens_the_store_for_writing(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    _point_at(git_repo, store)
    new = "---\nname: build-tool\ndescription: nox\nmetadata:\n  type: project\n---\n\nnox, not tox.\n"

    run = claude.run(
        git_repo,
        [
            write(store / "build-tool.md", new),
            read(store / "MEMORY.md"),
            edit(store / "MEMORY.md", LINE, f"{LINE}\n- [Build](build-tool.md) — nox"),
        ],
    )

    assert run.denied == ()
    assert run.prompt.memory_directory == store
    assert run.prompt.memory_index == LINE
    assert (store / "MEMORY.md").read_text("utf-8").count("build-tool.md") == 1
    head, body = _parsed(store / "build-tool.md")
    assert body == "nox, not tox."
    assert list(head["metadata"]) == ["node_type", "type", "originSessionId", "modified"]
    assert head["metadata"]["node_type"] == "memory"


def test_an_edit_moves_unknown_keys_below_metadata(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    _point_at(git_repo, store)
    fact = store / "old.md"
    fact.write_text("---\nname: old\nprivate: true\npinned: true\ntags: [a, b]\n---\n\nOld text.\n", "utf-8")

    run = claude.run(git_repo, [read(fact), edit(fact, "Old text.", "New text.")])

    assert run.denied == ()
    head, body = _parsed(fact)
    assert body == "New text."
    assert set(head) == {"name", "metadata"}
    assert head["metadata"].items() >= {"private": True, "pinned": True, "tags": ["a", "b"]}.items()


def test_a_linked_memory_directory_alone_is_read_but_never_written(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    native = _native_directory(claude, git_repo)
    native.parent.mkdir(parents=True)
    native.symlink_to(store)

    run = claude.run(git_repo, [write(native / "new.md", "Text.\n"), read(native / "old.md")])

    assert run.prompt.memory_index == LINE
    assert run.denied == ("Write", "Read")
    assert not (store / "new.md").exists()
    assert native.is_symlink()


def test_a_missing_index_is_written_by_claude(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    _point_at(git_repo, store)
    (store / "MEMORY.md").unlink()

    prompt = claude.prompt(git_repo)

    assert prompt.memory_index is not None
    assert "(old.md)" in prompt.memory_index
    assert (store / "MEMORY.md").read_text("utf-8").strip() == prompt.memory_index


def test_an_empty_index_is_left_alone(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    _point_at(git_repo, store)
    (store / "MEMORY.md").write_text("", "utf-8")

    claude.prompt(git_repo)

    assert (store / "MEMORY.md").read_text("utf-8") == ""


def test_memory_that_the_user_switched_off_stays_off(claude: Claude, git_repo: Path) -> None:
    store = _store(git_repo)
    _point_at(git_repo, store, autoMemoryEnabled=False)

    prompt = claude.prompt(git_repo)

    assert prompt.memory_directory is None
    assert prompt.memory_index is None


def _store(root: Path) -> Path:
    """A store with one fact and an index that names it."""
    store = root / ".memory"
    store.mkdir()
    (store / "old.md").write_text("---\nname: old\ndescription: old thing\n---\n\nOld text.\n", "utf-8")
    (store / "MEMORY.md").write_text(LINE + "\n", "utf-8")
    return store


def _point_at(root: Path, store: Path, **settings: object) -> None:
    (root / ".claude").mkdir()
    text = json.dumps({"autoMemoryDirectory": str(store), **settings})
    (root / ".claude/settings.local.json").write_text(text, "utf-8")


def _native_directory(claude: Claude, root: Path) -> Path:
    slug = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(root))
    return claude.home / ".claude/projects" / slug / "memory"


def _parsed(path: Path) -> tuple[dict[str, dict[str, object]], str]:
    _, head, body = path.read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), body.strip()
