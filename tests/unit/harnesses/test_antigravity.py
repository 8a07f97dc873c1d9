"""What Antigravity gets, by its documentation; the files in tests/corpus/antigravity stand for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.antigravity import HEADER, OWN, RULE_LIMIT, Antigravity
from agent_bridge.harnesses.base import Scope, Site
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.memory.fact import parse_fact
from agent_bridge.projection.plan import Evidence, Wanted, decide
from agent_bridge.projection.targets import lay_out
from agent_bridge.projects import Project

CORPUS = Path(__file__).parents[2] / "corpus/antigravity"
ANTIGRAVITY = Antigravity()
BRIDGE = ".gemini/memory-bridge.md"


@pytest.fixture
def home(sealed_home: Path) -> Path:
    """The home of a user of Antigravity."""
    shutil.copytree(CORPUS / "home", sealed_home, dirs_exist_ok=True)
    return sealed_home


@pytest.fixture
def root(home: Path) -> Path:
    """A project of his."""
    return Path(shutil.copytree(CORPUS / "project", Path(os.path.realpath(home)) / "project"))


def _look(root: Path, *requested: str) -> Site:
    return observe_site(Project("p", root, requested=requested), root)


def _carriers(site: Site) -> list[tuple[str, str, tuple[str, ...]]]:
    found = ANTIGRAVITY.carriers(site, Scope.PROJECT)
    return [(one.path.relative_to(site.checkout).as_posix(), one.kind, one.readers) for one in found]


def _codes(site: Site) -> set[str]:
    return {notice.code for notice in ANTIGRAVITY.notices(site)}


def test_agents_md_is_enough(root: Path) -> None:
    site = _look(root)
    assert _carriers(site) == [("AGENTS.md", "block", ("antigravity",))]
    assert _codes(site) == set()


def test_a_rules_file_where_agents_md_cannot_be(root: Path) -> None:
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").mkdir()
    site = _look(root)
    [carrier] = ANTIGRAVITY.carriers(site, Scope.PROJECT)
    assert (carrier.path, carrier.kind, carrier.header, carrier.local) == (root / OWN, "own", HEADER, True)
    assert _codes(site) == set()


def test_what_is_asked_for_is_written_too_and_the_double_is_told(root: Path) -> None:
    site = _look(root, "antigravity")
    assert _carriers(site) == [
        ("AGENTS.md", "block", ("antigravity",)),
        (OWN, "own", ("antigravity",)),
        (BRIDGE, "own", ()),
    ]
    assert _codes(site) == {"antigravity-twice"}
    [told] = ANTIGRAVITY.notices(site)
    assert told.level == "info"
    assert "`agent-bridge sync --not-to antigravity`" in told.text


@pytest.mark.parametrize(
    ("name", "why"), [(".agents", "is no directory"), (".agents/rules", "outside of the repository")]
)
def test_a_folder_that_cannot_be_used_is_told(root: Path, home: Path, name: str, why: str) -> None:
    shutil.rmtree(root / name)
    if "no directory" in why:
        (root / name).write_text("a file")
    else:
        (home / "elsewhere").mkdir()
        (root / name).symlink_to(home / "elsewhere")
    site = _look(root, "antigravity")

    assert OWN not in [name for name, _, _ in _carriers(site)]
    assert [one.text for one in ANTIGRAVITY.notices(site) if why in one.text] != []


def test_a_fact_in_gemini_md_and_agents_md_is_told(root: Path) -> None:
    (root / "CLAUDE.md").symlink_to("GEMINI.md")
    assert _codes(_look(root)) == {"antigravity-twice"}
    (root / "GEMINI.md").unlink()
    (root / "GEMINI.md").symlink_to("AGENTS.md")
    assert _codes(_look(root)) == set()


def test_the_file_that_it_shares_with_gemini_cli(home: Path) -> None:
    site = observe_user({"HOME": str(home)})
    [carrier] = ANTIGRAVITY.carriers(site, Scope.GLOBAL)
    assert (carrier.path, carrier.kind, carrier.create) == (home / ".gemini/GEMINI.md", "block", True)


@pytest.mark.parametrize("word", ["ä", "語", "😀", "x"])
def test_a_rules_file_never_has_more_characters_than_it_takes(root: Path, word: str) -> None:
    site = _look(root, "antigravity")
    carrier = next(one for one in ANTIGRAVITY.carriers(site, Scope.PROJECT) if one.header)
    [target] = lay_out([(site, carrier)], budget=1 << 20, private_store=False).targets
    texts = [f"# Fact {number}\n\n{word * 300} {number}\n" for number in range(100)]
    facts = tuple(parse_fact(f"f{number}.md", text.encode()) for number, text in enumerate(texts))

    decision = decide(target, None, Wanted((), facts, {}), Evidence())

    text = (decision.after or b"").decode()
    assert text.startswith(HEADER)
    assert managed_block.is_ours(text.encode())
    assert len(decision.included) > 5
    assert decision.left_out != ()
    assert len(text) <= RULE_LIMIT
    if word == "x":
        assert len(text) > RULE_LIMIT - 1000


def test_what_it_reads(root: Path, home: Path) -> None:
    (root / ".agents/rules/long.md").write_text(HEADER + "x" * RULE_LIMIT)
    (root / ".agents/rules/same.md").symlink_to("naming.md")

    read = ANTIGRAVITY.reads(_look(root), root)

    assert [one.path.name for one in read if not one.hidden] == [
        "GEMINI.md",
        "GEMINI.md",
        "AGENTS.md",
        "long.md",
        "naming.md",
    ]
    assert read[0].path == home / ".gemini/GEMINI.md"
    hidden = {one.path.name: one.hidden for one in read if one.hidden}
    assert set(hidden) == {"plain.md", "python.md", "releases.md", "same.md"}
    assert "always_on" in hidden["plain.md"]
    cut = {one.path.name: (one.shown, one.cut != "") for one in read}
    assert cut["long.md"] == (RULE_LIMIT, True)
    assert cut["naming.md"][1] is False


def test_what_is_written_by_hand(root: Path) -> None:
    (root / OWN).write_text("- generated\n")

    found = ANTIGRAVITY.hand_written(_look(root))

    assert {(item.text, item.directory) for item in found} == {
        ("Answer in English.", None),
        ("Names are nouns.", root),
        ("Tag first.", root),
        ("Types everywhere.", root),
    }


def test_it_is_used_where_a_home_or_a_program_is(sealed_home: Path) -> None:
    env = {"HOME": str(sealed_home), "PATH": str(sealed_home)}
    (sealed_home / ".gemini").mkdir()
    assert not ANTIGRAVITY.detect(env)  # that may be Gemini CLI's
    program = sealed_home / "agy"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert ANTIGRAVITY.detect(env)
    program.unlink()
    (sealed_home / ".gemini/antigravity-cli").mkdir()
    assert ANTIGRAVITY.detect(env)


def test_its_places_are_watched(root: Path) -> None:
    site = _look(root)
    assert set(ANTIGRAVITY.watch_places(site)) >= {
        root,
        root / ".agents",
        root / ".agents/rules",
        root / ".gemini",
    }
