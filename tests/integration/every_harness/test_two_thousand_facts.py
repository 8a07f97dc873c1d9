"""Two thousand facts in each scope: every projection keeps its limit and says what it left out."""

from __future__ import annotations

import re

import pytest

from agent_bridge import paths
from agent_bridge.cli import opencode_context
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses, managed_block
from agent_bridge.memory.search import Search
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projection.hook_context import place
from agent_bridge.projects import Delivery

from .conftest import LAYOUTS, MakeRepository, global_store, set_up

COUNT = 2000
LEFT_OUT = re.compile(
    r"Left out here[^\n]*?(\d[\d,]*) facts?, for lack of space\. `agent-bridge search[^\n]*"
)

CHARACTERS = {".windsurf/rules/agent-bridge.md": 12_000, ".agents/rules/agent-bridge.md": 12_000}
"""Limits of single programs, as their documentation has them; AGENTS.md is read by all of them."""


def fact(number: int, where: str) -> str:
    return (
        f"# Rack {number} in {where}\n\nIts cable {where}-{number:04} is {number * 13} metres long – "
        "from the Käfer to the 配線 🚢.\n"
    )


@pytest.mark.parametrize(
    ("layout", "delivery"), [("usual", "blocks"), ("no AGENTS.md", "blocks"), ("usual", "hooks")]
)
def test_every_projection_keeps_its_limit_and_says_what_it_left_out(
    repository: MakeRepository, settings: Settings, layout: str, delivery: Delivery
) -> None:
    root = repository(LAYOUTS[layout])
    project, _ = set_up(root, settings, delivery=delivery, asked="all")
    users = global_store()
    for store, where in ((project.store, "here"), (users.root, "everywhere")):
        for number in range(COUNT):
            (store / f"rack-{number:04}.md").write_text(fact(number, where), "utf-8")

    engine, user = Engine(project, settings), global_engine(settings)
    reports = [engine.reconcile(), user.reconcile()]

    seen = set()
    for one, report in zip((engine, user), reports, strict=True):
        assert report.facts == COUNT
        for target in one.survey().layout.targets:
            text = target.path.read_text("utf-8")
            if target.text:
                continue
            seen.add(target.path.name)
            assert_within(text, target.budget, len(report.left_out[str(target.path)]))
            shown = text.count(" metres long")
            assert shown + len(report.left_out[str(target.path)]) == COUNT
            assert shown > 40
            for name, most in CHARACTERS.items():
                if target.path == root / name:
                    assert len(text) <= most
    assert len(seen) > (7 if layout == "usual" else 9)

    # Claude Code's index.
    index = (project.store / "MEMORY.md").read_text("utf-8")
    assert (len(index) <= 25_000, len(index.splitlines()) <= 200) == (True, True)
    lines = len(re.findall(r"^- \[", index, re.MULTILINE))
    assert 100 < lines < 200
    assert f"{COUNT - lines:,}" in index or str(COUNT - lines) in index

    # What hooks tell.
    rooms = {harness.name: harness.hook_room for harness in all_harnesses() if harness.hook_room}
    for name, room in rooms.items():
        told = place(project.state, name)
        assert told.exists() == (delivery == "hooks")
        if told.exists():
            text = told.read_text("utf-8")
            assert room.holds(text)
            assert LEFT_OUT.search(text)
            assert 2_000 < len(text.encode()) <= settings.block_budget

    # What OpenCode's plugin tells is about what its files leave out.
    [context] = opencode_context.told(root).view
    assert isinstance(context, str)
    assert 8_000 < len(context.encode()) <= 16_384 + 8_192 + 1_000
    assert "Left out here" in context

    # What no file shows is found by searching.
    hits = Search(paths.cache_dir() / "search" / "x.sqlite").query(engine.store.scan(), ["here-0000"], 5)
    assert [hit.fact.path for hit in hits] == ["rack-0000.md"]
    rest = report_ids(reports[0].left_out)
    assert all(engine.store.find(name).body for name in sorted(rest)[:3])


def assert_within(text: str, budget: int, left_out: int) -> None:
    """A file's block keeps its budget and ends by saying how much it left out."""
    span = managed_block.find_block(text.encode())
    assert span is not None
    assert span.end - span.start <= budget
    told = LEFT_OUT.search(span.body)
    assert told is not None
    assert int(told[1].replace(",", "")) == left_out
    assert "\n### " not in span.body[told.end() :]


def report_ids(left_out: dict[str, tuple[str, ...]]) -> set[str]:
    return set.intersection(*(set(ids) for ids in left_out.values()))


@pytest.mark.parametrize("size", [30_000, 31_900, 32_700])
def test_a_large_agents_md_keeps_its_text_and_the_facts_get_the_rest(
    repository: MakeRepository, settings: Settings, size: int
) -> None:
    theirs = ("x" * 99 + "\n") * (size // 100)
    root = repository({"AGENTS.md": theirs})
    project, engine = set_up(root, settings)
    for number in range(200):
        (project.store / f"rack-{number:04}.md").write_text(fact(number, "here"), "utf-8")
    report = engine.reconcile()
    text = (root / "AGENTS.md").read_text("utf-8")
    assert text.startswith(theirs)
    assert len(text.encode()) <= 32_768
    if 32_768 - size < 2_048:  # too little room: nothing is written, and that is told
        assert text == theirs
        assert "project_doc_max_bytes" in " ".join(notice.text for notice in report.notices)
        assert any(len(ids) == 200 for ids in report.left_out.values())
    else:
        assert "Left out here" in text
    setup.eject(project, settings)
    assert (root / "AGENTS.md").read_text("utf-8") == theirs
