"""Codex's own memories are out of the prompt after `init`, in every case that can be won."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clients.rig.codex import Codex
from clients.rig.product import Product

REMEMBERED = "The staging database is reset every Sunday."
ON = "[features]\nmemories = true\n"
USER_FILE = f"""# my own settings
model_reasoning_effort = "low" # quick answers

{ON}# keep this
[tui]
notifications = true
"""


@pytest.mark.parametrize("layout", ["memories", "memories_v2"])
@pytest.mark.parametrize("place", ["user", "profile", "project"])
def test_no_memory_section_after_init(
    codex: Codex, product: Product, git_repo: Path, layout: str, place: str
) -> None:
    _remember(codex, layout)
    profile = _switch_on(codex, git_repo, place, ON)
    assert codex.exec(git_repo, profile=profile).prompt.memory_section is not None

    product.init(git_repo)

    assert codex.exec(git_repo, profile=profile).prompt.memory_section is None


@pytest.mark.parametrize("place", ["profile", "project"])
def test_a_layer_that_asks_for_memories_itself_is_reported(
    codex: Codex, product: Product, git_repo: Path, place: str
) -> None:
    _remember(codex, "memories")
    profile = _switch_on(codex, git_repo, place, ON + "[memories]\nuse_memories = true\n")

    product.init(git_repo)

    assert codex.exec(git_repo, profile=profile).prompt.memory_section is not None
    with product.service() as service:
        told = _told(service.status())
    name = "work.config.toml" if place == "profile" else str(git_repo / ".codex/config.toml")
    assert name in told


def test_the_rest_of_config_toml_keeps_its_bytes(codex: Codex, product: Product, git_repo: Path) -> None:
    _remember(codex, "memories")
    config = codex.home / ".codex/config.toml"
    config.write_text(USER_FILE, "utf-8")

    product.init(git_repo)

    changed = config.read_text("utf-8")
    parsed = tomllib.loads(changed)
    assert parsed["features"]["memories"] is False
    assert parsed["memories"] == {"use_memories": False, "generate_memories": False}
    kept = [line for line in USER_FILE.splitlines() if line != "memories = true"]
    remaining = iter(changed.splitlines())
    assert all(line in remaining for line in kept), changed


def test_a_key_that_went_missing_is_put_back_once(codex: Codex, product: Product, git_repo: Path) -> None:
    config = _switched_off(codex, product, git_repo)
    line = "use_memories = false\n"

    with product.service() as service:
        _without(config, line)
        service.until_in(config, line)
        with service.change(git_repo):
            _without(config, line)
            (git_repo / ".memory/nudge.md").write_text("A fact, so that a pass is sure to follow.\n", "utf-8")

    assert line not in config.read_text("utf-8")


def test_another_value_is_the_users_word(codex: Codex, product: Product, git_repo: Path) -> None:
    config = _switched_off(codex, product, git_repo)
    text = config.read_text("utf-8").replace("use_memories = false", "use_memories = true")
    config.write_text(text, "utf-8")

    with product.service() as service:
        told = _told(service.status())

    assert config.read_text("utf-8") == text
    assert "use_memories" in told


def _told(status: Mapping[str, Any]) -> str:
    scopes = [*status["projects"], status["global"]]
    return "\n".join(notice["text"] for scope in scopes for notice in scope["notices"])


def _switched_off(codex: Codex, product: Product, root: Path) -> Path:
    _remember(codex, "memories")
    config = codex.home / ".codex/config.toml"
    config.write_text(ON, "utf-8")
    product.init(root)
    assert "use_memories = false\n" in config.read_text("utf-8")
    return config


def _without(config: Path, line: str) -> None:
    config.write_text(config.read_text("utf-8").replace(line, ""), "utf-8")


def _switch_on(codex: Codex, root: Path, place: str, text: str) -> str | None:
    """Write `text` where it stands for `place`; the profile to choose, if any."""
    home = codex.home / ".codex"
    if place == "user":
        (home / "config.toml").write_text(text, "utf-8")
        return None
    (home / "config.toml").write_text(f'[projects."{root}"]\ntrust_level = "trusted"\n', "utf-8")
    if place == "profile":
        (home / "work.config.toml").write_text(text, "utf-8")
        return "work"
    (root / ".codex").mkdir()
    (root / ".codex/config.toml").write_text(text, "utf-8")
    return None


def _remember(codex: Codex, layout: str) -> None:
    place = codex.home / ".codex" / layout
    place.mkdir(parents=True)
    (place / "memory_summary.md").write_text(f"v1\n\n- {REMEMBERED}\n", "utf-8")
