"""Texts and names in every script and spelling: whole in every file that carries them, and valid UTF-8."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import unicodedata
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses, managed_block
from agent_bridge.harnesses.block_body import hash_valid
from agent_bridge.memory.search import Search
from agent_bridge.projection import preview, review, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.hook_context import present
from agent_bridge.projects import Delivery

from .conftest import LAYOUTS, MOMENT, USUAL, MakeRepository, everything, git, global_store, set_up, write

NFC, NFD = (unicodedata.normalize(form, "Käfer mögen Å und é") for form in ("NFC", "NFD"))
TEXTS = {
    "emoji": "Ship 🚢 with family 👩‍👩‍👧‍👦, flags 🇺🇳, a tone 👍🏽 and a heart ❤️.",
    "cjk": "测试环境每周一重置。ステージングは月曜日に初期化。스테이징은 월요일에.",
    "right to left": "שרת הבדיקות מתאפס בכל יום שני. خادم التجريب يُعاد ضبطه كل اثنين.",
    "combining": "Z̴a̵l̶g̷o ạ̈ q̣̇ and " + NFD,
    "composed": NFC + " twice",
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠜎 \U0010fffd",
    "separators": "a\u2028b\u2029c\u0085d e\xa0f\u3000g\u200bh",
}
NAMES = {
    "emoji": "🚢 ship.md",
    "cjk": "entries/测试.md",
    "right to left": "שרת.md",
    "combining": unicodedata.normalize("NFD", "Käfer") + ".md",
    "composed": unicodedata.normalize("NFC", "Käfer") + ".md",
    "astral": "decisions/𝔘𠜎.md",
    "separators": "a\xa0c \u3000d.md",
}


@pytest.mark.parametrize("delivery", ["blocks", "hooks"])
@pytest.mark.parametrize("layout", ["usual", "no AGENTS.md"])
def test_every_carrier_has_each_text_as_it_was_saved(
    repository: MakeRepository, settings: Settings, layout: str, delivery: Delivery
) -> None:
    root = repository(LAYOUTS[layout])
    project, engine = set_up(root, settings, delivery=delivery, asked="all")
    for name, text in TEXTS.items():
        ending = "\r\n" if name in ("cjk", "emoji") else "\n"
        body = f"# About {name}{ending}{ending}{text}{ending}Second line of {name}.{ending}"
        write(project.store, {NAMES[name]: body})
        global_store().add(f"For all: {text}", now=MOMENT)
    everything(project, settings)
    engine = Engine(project, settings)
    snapshot = engine.store.scan()
    assert snapshot.problems == ()
    assert {fact.path for fact in snapshot.facts} == set(NAMES.values())
    assert all("\r" not in fact.body for fact in snapshot.facts)

    targets = [target for target in engine.survey().layout.targets if not target.text]
    carriers = [*(target.path for target in targets), *present(project.state)]
    assert len(carriers) > 4
    for path in carriers:
        assert_holds(path.read_bytes(), TEXTS.values())
    for target in targets:
        assert hash_valid(managed_block.block_text(target.path.read_bytes()) or "")
    for user in (
        ".claude/CLAUDE.md",
        ".codex/AGENTS.md",
        ".gemini/GEMINI.md",
        ".kiro/steering/agent-bridge.md",
    ):
        assert_holds((paths.home() / user).read_bytes(), TEXTS.values())
    index = (project.store / "MEMORY.md").read_text("utf-8")
    assert all(f"About {name}" in index for name in TEXTS)
    search = Search(paths.cache_dir() / "search" / "x.sqlite")
    for word in ("测试环境每周一重置", "שרת", "mögen", unicodedata.normalize("NFD", "mögen"), "Ship"):
        assert search.query(snapshot, [word], 9), word

    # What a file's user or Git does to its line ends is no change of the facts.
    before = {target.path: target.path.read_bytes() for target in targets}
    for path, data in before.items():
        path.write_bytes(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    everything(setup.describe(root), settings)
    assert [*review.candidates_directory(project.state).glob("*")] == []
    for target in targets:
        assert hash_valid(managed_block.block_text(target.path.read_bytes()) or "")
        assert b"\r\n" in target.path.read_bytes()
    assert_valid(root, paths.state_dir(), paths.home() / ".claude", paths.home() / ".codex")


def assert_holds(data: bytes, texts: object) -> None:
    told = data.decode("utf-8")
    for text in TEXTS.values():
        # Invisible characters that can hide or forge something are shown or left out, words never.
        words = [word for word in re.split(r"[\s\u200b\u2028\u2029\u0085]+", text) if word]
        assert [word for word in words if word not in told] == []
    assert not re.search("[\ud800-\udfff]", told)


def assert_valid(*tops: Path) -> None:
    """Nothing below holds half a surrogate pair, as bytes or as what JSON makes one of, in text of ours."""
    for top in tops:
        for path in top.rglob("*"):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
                data = path.read_bytes()
                if path.suffix in (".sqlite", ".db") or b"\0" in data:
                    continue
                assert b"\xed\xa0" not in data, path
                assert b"\xed\xb0" not in data, path
                data.decode("utf-8")


HALF = "\ud83d"


def test_halves_of_characters_in_memories_of_other_programs(
    repository: MakeRepository, settings: Settings, sealed_home: Path
) -> None:
    root = repository(LAYOUTS["usual"])
    project, _ = set_up(root, settings)
    notes = sealed_home / ".gemini/tmp/desk/memory"
    notes.mkdir(parents=True)
    registry = {"projects": {str(root): "desk", f"{root}{HALF}": "half", str(root / "sub"): f"a{HALF}"}}
    (sealed_home / ".gemini/projects.json").write_text(json.dumps(registry))
    (notes / "MEMORY.md").write_bytes(
        b"- Gemini's first note \xed\xa0\xbd is cut.\n- Latin caf\xe9 stands in the second one.\n"
        b"- Third \xff\xfe here.\n"
    )
    (notes / os.fsdecode(b"caf\xe9.md")).write_bytes(
        b"## Fourth\n\nThe fourth note lies in a file of another age.\n"
    )
    codex = sealed_home / ".codex/memories"
    (codex / "extensions/ad_hoc/notes").mkdir(parents=True)
    (codex / "MEMORY.md").write_bytes(
        f"# Task Group: harbour\n\nscope: harbour\napplies_to: cwd={root}\n\n".encode()
        + b"## User preferences\n\n- The fifth fact is cut \xed\xa0\xbd in the middle of a ship.\n"
    )
    database = sqlite3.connect(sealed_home / ".codex/memories_1.sqlite")
    database.execute("create table stage1_outputs (thread_id text, raw_memory text, rollout_summary text)")
    database.execute("insert into stage1_outputs values ('x', ?, cast(x'eda0bd' as text))", ("- seventh",))
    database.commit()
    database.close()
    (root / ".memory/yaml.md").write_text(
        '---\nname: "half \\ud83d of one"\ndescription: "\\udc80 too"\n---\n\nSixth.\n'
    )
    (root / ".memory" / os.fsdecode(b"latin \xe9.md")).write_text("The seventh has a name of another age.\n")
    for _ in range(2):
        everything(project, settings)
    snapshot = Engine(project, settings).store.scan()
    bodies = "\n".join(fact.body for fact in snapshot.facts)
    for word in ("first note", "Latin caf", "Third", "fourth note", "fifth fact"):
        assert word in bodies, word
    assert "fifth fact" in (root / "AGENTS.md").read_text("utf-8")
    # A fact that no one could name or whose keys are no YAML stands in no file, and is reported.
    assert {problem.path for problem in snapshot.problems} == {"yaml.md", "latin \\udce9.md"}
    assert not re.search("[\ud800-\udfff]", str(snapshot.problems))
    assert_valid(root, paths.state_dir(), paths.global_store())
    told = git(root, "-c", "core.quotePath=false", "add", "-An")
    assert "fourth note" not in told
    done = setup.eject(project, settings)
    assert done.refused == []


@pytest.mark.parametrize(
    "name", ["half \ud83d.md", "\ude00", "caf\udce9.md", "nul \0", "a" * 300 + ".md", "/\ud83d/x"]
)
def test_names_that_no_file_can_have_in_settings_of_other_programs(
    repository: MakeRepository, settings: Settings, sealed_home: Path, name: str
) -> None:
    """A repository brings settings, and whoever wrote it decides what stands there."""
    said = json.dumps
    project_files: dict[str, str | bytes] = {
        ".gemini/settings.json": said({"context": {"fileName": [name, "AGENTS.md"]}}),
        "opencode.json": said({"instructions": [name, "docs/*.md"]}),
        ".claude/settings.json": said({"autoMemoryDirectory": f"/tmp/{name}", "claudeMdExcludes": [name]}),
    }
    root = repository(USUAL | project_files)
    homes = {
        ".gemini/settings.json": said({"context": {"fileName": name}}),
        ".gemini/trustedFolders.json": said({f"/{name}": "DO_NOT_TRUST"}),
        ".qwen/settings.json": said({"context": {"fileName": name}, "contextFileName": name}),
        ".config/opencode/opencode.json": said({"instructions": [name]}),
        ".claude/settings.json": said({"autoMemoryDirectory": f"/tmp/{name}"}),
        ".codex/hooks.json": said(
            {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": name}]}]}}
        ),
    }
    write(sealed_home, homes)
    for delivery in ("blocks", "hooks"):
        project, engine = set_up(
            root, settings, delivery="hooks" if delivery == "hooks" else "blocks", asked="all"
        )
        if not engine.store.scan().facts:
            engine.store.add("The harbour is north.", now=MOMENT)
        everything(project, settings)
        [site] = Engine(project, settings).survey().sites
        for harness in all_harnesses():
            harness.reads(site, root)
            harness.hand_written(site)
        preview.preview_project(project, settings)
    assert setup.eject(setup.describe(root), settings).refused == []


def test_a_text_with_half_a_character_from_the_command_line_or_a_plugin(
    repository: MakeRepository, settings: Settings
) -> None:
    root = repository(LAYOUTS["usual"])
    project, engine = set_up(root, settings)
    engine.store.add(f"A ship {HALF} cut in two.", tags=(f"t{HALF}",), title=f"Ship {HALF}", now=MOMENT)
    engine.store.add("Bytes of another age: " + os.fsdecode(b"caf\xe9"), now=MOMENT)
    review.keep_candidate(
        project.state, f"A quay {HALF} cut in two.", origin=f"/x/{HALF}", why=f"like {HALF}", now=MOMENT
    )
    everything(project, settings)
    assert len(engine.store.scan().facts) == 2
    assert (root / "AGENTS.md").read_text("utf-8").count("cut in two") >= 1
    assert_valid(root, paths.state_dir())


@pytest.mark.parametrize("name", [b"caf\xe9", b"\xff\xfe"])
def test_a_project_whose_path_is_no_utf8(repository: MakeRepository, settings: Settings, name: bytes) -> None:
    root = repository(LAYOUTS["usual"], name=os.fsdecode(name))
    project, engine = set_up(root, settings, asked="all")
    engine.store.add("The harbour is north.", now=MOMENT)
    everything(project, settings)
    assert "harbour" in (root / "AGENTS.md").read_text("utf-8")
    assert (root / ".gemini/memory-bridge.md").read_text("utf-8").count("harbour") >= 1
    assert_valid(root)
    done = setup.eject(setup.describe(root), settings)
    assert done.refused == []
    assert "harbour" not in (root / "AGENTS.md").read_text("utf-8")
