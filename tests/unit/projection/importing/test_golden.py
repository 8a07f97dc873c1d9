"""What comes out of each kind of source in tests/corpus: known by its shape, text and keys carried over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.memory.fact import parse_fact
from agent_bridge.projection.importing.items import Item, Kind, Left
from agent_bridge.projection.importing.sources import Source, recognise

CORPUS = Path(__file__).parents[3] / "corpus"


def _read(name: str) -> tuple[Kind, dict[str, Item], dict[str, str]]:
    source = recognise(CORPUS / name)
    found = list(source.read(source.tree()))
    items = {one.origin: one for one in found if isinstance(one, Item)}
    left = {one.origin: one.why for one in found if isinstance(one, Left)}
    assert not [one for one in found if isinstance(one, Left) and one.refused]
    return source.kind, items, left


def test_memory_bridge() -> None:
    kind, items, left = _read("memory_bridge")
    entry = "entries/20260301-0001-the-service-has-no-nat-and-uses-a-public-address"
    broken = "entries/20260301-0003-the-queue-drops-messages-over-one-megabyte"
    gone = "20260301-0004-gone-from-the-disk-but-not-from-the-index"
    assert kind is Kind.MEMORY_BRIDGE
    assert left == {"index.json": "it is an index", "context.md": "the document is empty"}
    kept = items[f"{entry}.md"].data
    assert kept is not None
    assert kept == (CORPUS / f"memory_bridge/.memory/{entry}.md").read_bytes().replace(
        b"source: cli", b"source: import:memory-bridge"
    )
    fact = parse_fact(f"{entry}.md", kept)
    assert (fact.tags, fact.created_at) == (("infra", "network"), "2026-03-01T08:15:30.120Z")
    odd = items[f"{broken}.md"].data
    assert odd is not None
    assert parse_fact(f"{broken}.md", odd).tags == ("queue: limits", "a[b")
    assert items[f"{broken}.md"].text == "The queue drops messages over one megabyte."
    assert (items[f"index.json#{gone}"].fact_id, items[f"index.json#{gone}"].text) == (
        gone,
        "Gone from the disk but not from the index.",
    )
    assert (items["conventions.md"].title, items["conventions.md"].type) == ("Conventions", "feedback")
    assert items["conventions.md"].text.endswith("Branches carry the ticket.")
    assert items["decisions/0001-one-queue.md"].text.startswith("# Use one queue")


def test_claude() -> None:
    kind, items, left = _read("claude_memory")
    assert kind is Kind.CLAUDE
    assert left == {"MEMORY.md": "it is the index of the others"}
    for name in ("ports.md", "mondays.md"):
        assert items[name].data == (CORPUS / "claude_memory" / name).read_bytes()
    bare = items["bare.md"].data
    assert bare is not None
    assert parse_fact("bare.md", bare).source == "import:claude"


def test_basic_memory() -> None:
    kind, items, left = _read("basic_memory")
    assert (kind, left) == (Kind.BASIC_MEMORY, {})
    note = items["notes/Coffee.md"]
    assert (note.title, note.type, note.tags) == (
        "Roasting",
        "reference",
        ("coffee", "craft", "roast", "weight"),
    )
    assert (note.created_at, note.updated_at) == ("2025-11-03T10:00:00.000Z", "2026-01-20T18:30:00.000Z")
    assert "- [method] Slow roasts keep the acidity #roast (first trials)" in note.text
    assert "- requires [[Scales]]" in note.text
    assert (items["notes/Scales.md"].type, items["notes/Scales.md"].tags) == ("decision", ("tools", "weight"))
    assert items["people/Ada.md"].created_at


def test_rulesync() -> None:
    kind, items, left = _read("rulesync")
    assert kind is Kind.RULESYNC
    assert set(left) == {"commands/review.md", "mcp.json", "rules/.curated/types.md"}
    assert items["rules/overview.md"].text == "# Overview\n\nThis project is a tide table."
    assert items["rules/overview.md"].description == "What everybody should know"
    assert items["rules/types.md"].text == (
        "Never write `any`.\n\nApplies to files: `src/**/*.ts`, `*.tsx`\nWritten for: cursor, claudecode"
    )
    assert {name: item.private for name, item in items.items()} == {
        "rules/overview.md": False,
        "rules/types.md": False,
        "rules/mine.md": True,
        "rules/.curated/commits.md": False,
    }


def test_rulesync_of_old(tmp_path: Path) -> None:
    (tmp_path / ".rulesync").mkdir()
    (tmp_path / ".rulesync/overview.md").write_text("---\nroot: true\ntargets: ['*']\n---\n\nBe brief.\n")
    source = recognise(tmp_path)
    assert source.kind is Kind.RULESYNC
    assert [one.text for one in source.read(source.tree()) if isinstance(one, Item)] == ["Be brief."]


def test_ruler() -> None:
    kind, items, left = _read("ruler")
    assert kind is Kind.RULER
    assert set(left) == {".ruler/ruler.toml", ".ruler/skills/SKILL.md"}
    assert {name: item.text for name, item in items.items()} == {
        ".ruler/AGENTS.md": "# House rules\n\nEvery function has a test.",
        ".ruler/database.md": "Migrations are written by hand.",
        "packages/api/.ruler/AGENTS.md": (
            "Handlers return problem details.\n\nApplies below: `packages/api/`"
        ),
    }


def test_a_ruler_directory_itself() -> None:
    source = recognise(CORPUS / "ruler/packages/api/.ruler")
    assert source.kind is Kind.RULER
    assert [one.text for one in source.read(source.tree()) if isinstance(one, Item)] == [
        "Handlers return problem details."
    ]


def test_long_rules_become_a_fact_a_section(tmp_path: Path) -> None:
    (tmp_path / ".ruler").mkdir()
    code = "```\n## no heading\n```"
    parts = ["# House\n\nAbove.", f"## One\n\n{code}\n\n{'x ' * 3000}x", "## Two\n\nLast."]
    (tmp_path / ".ruler/AGENTS.md").write_text("\n\n".join(parts))
    source = recognise(tmp_path)
    items = [one for one in source.read(source.tree()) if isinstance(one, Item)]
    assert [(item.origin, item.title) for item in items] == [
        (".ruler/AGENTS.md", "House"),
        (".ruler/AGENTS.md#One", "House: One"),
        (".ruler/AGENTS.md#Two", "House: Two"),
    ]
    assert "\n\n".join(item.text for item in items) == "\n\n".join(part.strip() for part in parts)


def test_an_old_index_with_text_and_nothing_else_is_one_fact(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Memory\n\nThe harbour is north.\n")
    source = recognise(tmp_path)
    assert source.kind is Kind.CLAUDE
    assert [one.text for one in source.read(source.tree()) if isinstance(one, Item)] == [
        "# Memory\n\nThe harbour is north."
    ]


def _markdown(tmp_path: Path) -> Source:
    (tmp_path / "a.md").write_text("---\ntitle: A\ntype: feedback\ntags: [x]\nprivate: true\n---\n\nText.\n")
    return recognise(tmp_path, Kind.MARKDOWN)


def _one_file(tmp_path: Path) -> Source:
    _markdown(tmp_path)
    (tmp_path / "b.md").write_text("Not this one.\n")
    return recognise(tmp_path / "a.md", Kind.MARKDOWN)


@pytest.mark.parametrize("make", [_markdown, _one_file])
def test_markdown_of_any_origin(tmp_path: Path, make: Callable[[Path], Source]) -> None:
    source = make(tmp_path)
    (item,) = source.read(source.tree())
    assert isinstance(item, Item)
    assert (item.title, item.text, item.type, item.tags, item.private) == (
        "A",
        "Text.",
        "feedback",
        ("x",),
        True,
    )


def test_an_entry_that_cant_be_read_is_taken_from_the_index(tmp_path: Path) -> None:
    place = tmp_path / ".memory/entries"
    place.mkdir(parents=True)
    (place / "20260101-0001-x.md").write_text('---\nid: "x\ntags: []\n---\n\nThe text as it is.\n')
    row = {"id": "20260101-0001-x", "path": "entries/20260101-0001-x.md", "summary": "Of old.", "tags": ["t"]}
    (tmp_path / ".memory/index.json").write_text(json.dumps({"version": 1, "entries": [row]}))
    source = recognise(tmp_path)
    (item,) = [one for one in source.read(source.tree()) if isinstance(one, Item)]
    assert (item.text, item.tags, item.fact_id) == ("The text as it is.", ("t",), "20260101-0001-x")
