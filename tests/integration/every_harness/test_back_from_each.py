"""The way back from each of the five: exact is skipped, similar waits, new comes in with its source, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection import requests, review
from agent_bridge.projection.reverse import bring_back, look

from .conftest import MOMENT, USUAL, MakeRepository, everything, set_up, tree

KNOWN = "The harbour is in the north of the town."
SIMILAR = "The harbour is in the south of the town."
NEW = "Ships wait outside the bar until the pilot comes."


@pytest.mark.parametrize(
    ("name", "source", "file"),
    [
        ("claude", "claude-code", "CLAUDE.md"),
        ("codex", "codex", "AGENTS.md"),
        ("opencode", "opencode", "AGENTS.md"),
        ("gemini", "gemini", "GEMINI.md"),
        ("antigravity", "antigravity", ".agents/rules/mine.md"),
    ],
)
def test_each_text_comes_back_once(
    repository: MakeRepository, settings: Settings, short_tmp: Path, name: str, source: str, file: str
) -> None:
    texts = f"\n## Memory\n\n- {KNOWN}\n- {SIMILAR}\n- {NEW}\n"
    root = repository(USUAL | {file: USUAL.get(file, "") + texts})
    project, engine = set_up(root, settings)
    known = engine.store.add(KNOWN, now=MOMENT).fact
    everything(project, settings)
    harnesses = requests.named(name)
    before = tree(short_tmp)

    seen = {one.item.text: one.outcome.value for one in look(project, harnesses, settings)}

    assert {text: seen.get(text) for text in (KNOWN, SIMILAR, NEW)} == {
        KNOWN: "skipped",
        SIMILAR: "conflict",
        NEW: "new",
    }
    assert tree(short_tmp) == before
    bring_back(project, harnesses, settings, now=MOMENT)
    facts = {fact.body.strip(): fact for fact in engine.store.scan().facts}
    assert (facts[NEW].source, SIMILAR in facts) == (source, False)
    waiting = {one.text: one.similar for one in review.load_candidates(project.state)}
    assert waiting[SIMILAR] == known.id
    after = tree(short_tmp)
    again = bring_back(project, harnesses, settings, now=MOMENT)
    assert "new" not in {one.outcome.value for one in again}
    assert tree(short_tmp) == after
    everything(project, settings)
    assert NEW in (root / "CLAUDE.md").read_text("utf-8")
