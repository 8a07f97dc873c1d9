"""What the product relies on in Codex 0.171.0, without the product.

When the pinned version changes, a failure here says which assumption no longer holds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.rig.codex import Codex

FACT = "The build tool is nox, not tox."
ON = "[features]\nmemories = true\n"
FEATURE_OFF = "[features]\nmemories = false\n"
OFF = "[memories]\nuse_memories = false\n"


def test_agents_md_is_in_the_prompt_once_comments_and_all(codex: Codex, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text(f"# Rules\n\n<!-- start -->\n{FACT}\n<!-- end -->\n", "utf-8")

    prompt = codex.prompt(git_repo)

    assert prompt.count(FACT) == 1
    assert f"<!-- start -->\n{FACT}\n<!-- end -->" in prompt.instructions


def test_both_ways_of_looking_agree(codex: Codex, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")

    assert codex.exec(git_repo).prompt.instructions == codex.prompt(git_repo).instructions


def test_files_from_the_root_down_to_the_working_directory(codex: Codex, git_repo: Path) -> None:
    below = git_repo / "sub"
    below.mkdir()
    for place, text in ((codex.home / ".codex", "GLOBAL"), (git_repo, "ROOT"), (below, "BELOW")):
        place.mkdir(exist_ok=True)
        (place / "AGENTS.md").write_text(text + "\n", "utf-8")

    told = codex.prompt(below).instructions

    assert told.index("GLOBAL") < told.index("ROOT") < told.index("BELOW")


@pytest.mark.parametrize("text", ["Mine.\n", ""])
def test_an_override_hides_the_file_beside_it(codex: Codex, git_repo: Path, text: str) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")
    (git_repo / "AGENTS.override.md").write_text(text, "utf-8")

    assert codex.prompt(git_repo).count(FACT) == 0


def test_an_untrusted_project_shows_no_agents_md(codex: Codex, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text(FACT + "\n", "utf-8")
    _configure(codex, f'[projects."{git_repo}"]\ntrust_level = "untrusted"\n')

    assert codex.prompt(git_repo).count(FACT) == 0


def test_claude_md_counts_only_as_a_fallback_name(codex: Codex, git_repo: Path) -> None:
    (git_repo / "CLAUDE.md").write_text(FACT + "\n", "utf-8")
    assert codex.prompt(git_repo).count(FACT) == 0

    _configure(codex, 'project_doc_fallback_filenames = ["CLAUDE.md"]\n')
    assert codex.prompt(git_repo).count(FACT) == 1


def test_the_file_that_crosses_the_budget_is_cut_there(codex: Codex, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text("A" * 200 + FACT + "\n", "utf-8")
    _configure(codex, "project_doc_max_bytes = 210\n")

    prompt = codex.prompt(git_repo)

    assert prompt.count("A" * 200 + FACT[:10]) == 1
    assert prompt.count(FACT[:11]) == 0


@pytest.mark.parametrize("layout", ["memories", "memories_v2"])
@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ("", False),
        (ON, True),
        (ON + "[memories]\ngenerate_memories = false\n", True),
        (ON + OFF, False),
        (FEATURE_OFF + OFF, False),
    ],
)
def test_when_its_own_memories_are_in_the_prompt(
    codex: Codex, git_repo: Path, layout: str, config: str, *, shown: bool
) -> None:
    _remember(codex, layout)
    _configure(codex, config)

    prompt = codex.exec(git_repo).prompt

    assert (prompt.memory_section is not None) is shown
    assert prompt.count(FACT) == (1 if shown else 0)


def test_prompt_input_never_shows_memories(codex: Codex, git_repo: Path) -> None:
    _remember(codex, "memories")
    _configure(codex, ON)

    assert codex.prompt(git_repo).memory_section is None


@pytest.mark.parametrize(
    ("user", "layer", "shown"),
    [
        (FEATURE_OFF, ON, True),
        (FEATURE_OFF + OFF, ON, False),
        (
            FEATURE_OFF + OFF,
            ON + "[memories]\nuse_memories = true\n",
            True,
        ),
    ],
)
@pytest.mark.parametrize("place", ["profile", "project"])
def test_layers_above_the_user_file(
    codex: Codex, git_repo: Path, place: str, user: str, layer: str, *, shown: bool
) -> None:
    _remember(codex, "memories")
    trust = f'[projects."{git_repo}"]\ntrust_level = "trusted"\n'
    _configure(codex, user + trust)
    if place == "profile":
        (codex.home / ".codex/work.config.toml").write_text(layer, "utf-8")
    else:
        (git_repo / ".codex").mkdir()
        (git_repo / ".codex/config.toml").write_text(layer, "utf-8")

    prompt = codex.exec(git_repo, profile="work" if place == "profile" else None).prompt

    assert (prompt.memory_section is not None) is shown


def _configure(codex: Codex, text: str) -> None:
    (codex.home / ".codex").mkdir(exist_ok=True)
    (codex.home / ".codex/config.toml").write_text(text, "utf-8")


def _remember(codex: Codex, layout: str) -> None:
    place = codex.home / ".codex" / layout
    place.mkdir(parents=True)
    (place / "memory_summary.md").write_text(f"v1\n\n- {FACT}\n", "utf-8")
