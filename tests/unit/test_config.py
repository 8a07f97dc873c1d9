"""Settings: who wins, and that a bad value is found from the message alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_bridge.config import KEYS, Settings, _line_of, load_settings, meanings
from agent_bridge.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "AGENT_BRIDGE_CONFIG_DIR": str(tmp_path)}


def test_without_anything_the_defaults_hold(env: dict[str, str]) -> None:
    settings = load_settings(env=env)
    assert settings == Settings()
    assert (settings.block_budget, settings.quiet_ms, settings.worktrees) == (16384, 20, "shared")
    assert settings.warnings == ()


def test_file_then_environment_then_flag(file: Path, env: dict[str, str]) -> None:
    file.write_text("quiet_ms = 1\nburst_ms = 1\nsimilarity = 0.25\n")
    env |= {"AGENT_BRIDGE_BURST_MS": "2", "AGENT_BRIDGE_SIMILARITY": "0.5", "AGENT_BRIDGE_POLLING": "true"}
    settings = load_settings(env=env, similarity=0.75, log_level=None)
    assert (settings.quiet_ms, settings.burst_ms, settings.similarity) == (1, 2, 0.75)
    assert (settings.polling, settings.log_level) == (True, "info")


def test_the_process_environment_counts(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sealed_home / ".config/agent-bridge").mkdir(parents=True)
    (sealed_home / ".config/agent-bridge/config.toml").write_text("quiet_ms = 7")
    monkeypatch.setenv("AGENT_BRIDGE_BURST_MS", "8")
    assert (load_settings().quiet_ms, load_settings().burst_ms) == (7, 8)


@pytest.mark.parametrize(
    ("text", "env_extra", "flags", "told"),
    [
        ('# comment\n\nquiet_ms = "soon"\n', {}, {}, ["quiet_ms", "'soon'", "config.toml, line 3"]),
        (
            "worktrees = 'both'",
            {},
            {},
            ["worktrees", "'both'", "line 1", "'shared' or 'separate'"],
        ),
        (
            "x = '''\nsimilarity = 9\n'''\nsimilarity = 2\n",
            {},
            {},
            ["similarity", "2", "line 4"],
        ),
        ("\ufeffgit_poll_s = nan", {}, {}, ["git_poll_s", "nan", "config.toml, line 1"]),
        ("[polling]\nx = 1", {}, {}, ["polling", "config.toml, line 1"]),
        (
            "",
            {"AGENT_BRIDGE_QUIET_MS": "-1"},
            {},
            ["quiet_ms", "'-1'", "variable AGENT_BRIDGE_QUIET_MS"],
        ),
        ("quiet_ms = 'x'", {}, {"quiet_ms": "y"}, ["quiet_ms", "'y'", "flag --quiet-ms"]),
        ("a = \n", {}, {}, ["isn't valid TOML", "config.toml", "line 1"]),
    ],
)
def test_a_bad_value_is_found_from_the_message(
    text: str,
    env_extra: dict[str, str],
    flags: dict[str, object],
    told: list[str],
    file: Path,
    env: dict[str, str],
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(env=env | env_extra, **flags)
    assert [part for part in told if part not in str(caught.value)] == []
    assert caught.value.exit_code == 2


def test_all_bad_values_are_named_at_once(file: Path, env: dict[str, str]) -> None:
    file.write_text("quiet_ms = -1\nsimilarity = 3\n")
    with pytest.raises(ConfigError, match="2 settings") as caught:
        load_settings(env=env)
    assert "line 1" in caught.value.detail
    assert "line 2" in caught.value.detail


def test_unknown_keys_are_told_and_not_fatal(file: Path, env: dict[str, str]) -> None:
    file.write_text("quiet_ms = 3\nbust_ms = 4\n[channel]\nport = 1\n")
    settings = load_settings(env=env)
    assert settings.quiet_ms == 3
    first, second = settings.warnings
    assert "'bust_ms'" in first
    assert "config.toml, line 2" in first
    assert "Did you mean 'burst_ms'?" in first
    assert "'channel'" in second


@pytest.mark.parametrize("kind", ["directory", "not text"])
def test_a_file_that_cannot_be_read_is_named(kind: str, file: Path, env: dict[str, str]) -> None:
    file.mkdir() if kind == "directory" else file.write_bytes(b"# ok\n# \xff\n")
    with pytest.raises(ConfigError, match=r"config\.toml") as caught:
        load_settings(env=env)
    assert kind == "directory" or "line 2" in str(caught.value)


def test_settings_cannot_be_changed(env: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        load_settings(env=env).quiet_ms = 3


def test_a_wrong_flag_is_a_mistake_of_ours(env: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="no_such"):
        load_settings(env=env, no_such=1)


def test_every_setting_is_described() -> None:
    assert [key for key in KEYS if not meanings().get(key)] == []


@given(before=st.integers(0, 5), after=st.integers(0, 5), key=st.sampled_from(KEYS))
def test_the_line_of_a_key_is_where_it_stands(before: int, after: int, key: str) -> None:
    others = [f"other_{number} = '''\n{key} = {number}'''" for number in range(before)]
    text = "\n".join([*others, f'"{key}" = 1', *(f"z{number} = 1" for number in range(after))])
    assert _line_of(text, key) == 2 * before + 1
    assert _line_of(text, "absent") == 0
