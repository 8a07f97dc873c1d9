"""The hooks of Claude Code and Codex as values: their command, their place, and Codex's trust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import claude_hooks, codex_hooks, hook_command
from agent_bridge.harnesses.base import HookRoom, KeyEdit, Site
from agent_bridge.projects import Project

HOME = Path("/home/u")
ROOT = HOME / "p"
COMMAND = hook_command.session_start("/usr/bin/python3", "codex")
HOOKS = HOME / ".codex/hooks.json"
CONFIG = HOME / ".codex/config.toml"


def site(files: Mapping[Path, str] | None = None) -> Site:
    config = {str(path): text.encode() for path, text in (files or {}).items()}
    project = Project("0" * 16, ROOT, delivery="hooks")
    return Site(project, ROOT, env={"HOME": str(HOME)}, config=config)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).map("/".__add__))
def test_a_command_is_known_again_whatever_the_path(program: str) -> None:
    command = hook_command.session_start(program, "claude-code")
    assert hook_command.program_of(command) == program
    assert hook_command.program_in({"hooks": [{"command": command}]}) == program


@pytest.mark.parametrize("other", [None, 7, "", "echo", "/bin/sh -c 'x", f"{COMMAND} more", f"env {COMMAND}"])
def test_other_commands_are_not_ours(other: object) -> None:
    assert hook_command.program_of(other) == ""
    assert hook_command.program_in({"hooks": [{"command": other}, other]}) == ""
    assert hook_command.program_in(other) == ""


def test_the_hash_is_codexs_own() -> None:
    # Both as `hooks/list` of Codex 0.171.0 gives them.
    handler = {"type": "command", "command": "/bin/sh -c 'echo hi é' \"x\"", "timeout": 5}
    element = {
        "matcher": "startup|resume|clear|compact",
        "hooks": [{**handler, "additionalContextLimit": 6000}],
    }
    assert codex_hooks.trusted_hash(element) == (
        "sha256:c430f399d0aa070dd82cd8b91fef9bd9bc69d944345a9e3d558c7977fa3db648"
    )


def where(edits: tuple[KeyEdit, ...]) -> list[tuple[Path, str]]:
    return [(edit.path, edit.key[2] if edit.key[1] == "state" else edit.format) for edit in edits]


def test_codexs_hook_goes_into_hooks_json_and_is_trusted_at_its_place() -> None:
    hook, trust = codex_hooks.edits(site(), COMMAND)
    assert (hook.path, hook.format, hook.key, hook.element) == (HOOKS, "json", codex_hooks.KEY, True)
    assert trust.key == ("hooks", "state", f"{HOOKS}:session_start:0:0", "trusted_hash")
    assert trust.value == codex_hooks.trusted_hash(hook.value)  # type: ignore[arg-type]

    others = json.dumps({"hooks": {"SessionStart": [{"hooks": []}, {"hooks": []}]}})
    assert where(codex_hooks.edits(site({HOOKS: others}), COMMAND))[1] == (
        CONFIG,
        f"{HOOKS}:session_start:2:0",
    )
    with_ours = json.dumps({"hooks": {"SessionStart": [hook.value, {"hooks": []}]}})
    assert where(codex_hooks.edits(site({HOOKS: with_ours}), COMMAND))[1][1] == f"{HOOKS}:session_start:0:0"


def test_codexs_hook_goes_where_the_users_hooks_are() -> None:
    toml = "[[hooks.Stop]]\nhooks = []\n[[hooks.SessionStart]]\nhooks = []\n"
    edits = codex_hooks.edits(site({CONFIG: toml}), COMMAND)
    assert where(edits) == [(CONFIG, "toml"), (CONFIG, f"{CONFIG}:session_start:1:0")]
    both = {CONFIG: toml, HOOKS: '{"hooks": {"Stop": []}}'}
    assert where(codex_hooks.edits(site(both), COMMAND))[0] == (HOOKS, "json")
    only_state = {CONFIG: '[hooks.state."x"]\ntrusted_hash = "y"\n'}
    assert where(codex_hooks.edits(site(only_state), COMMAND))[0] == (HOOKS, "json")


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({CONFIG: f'[projects."{ROOT}"]\ntrust_level = "untrusted"\n'}, "codex-untrusted"),
        ({HOOKS: "{"}, "codex-hooks-file"),
        ({HOOKS: '{"hooks": []}'}, "codex-hooks-file"),
        ({HOOKS: '{"hooks": {"SessionStart": {}}}'}, "codex-hooks-file"),
        ({CONFIG: "x"}, "codex-hooks-file"),
    ],
)
def test_where_codex_can_have_no_hook(files: Mapping[Path, str], code: str) -> None:
    assert codex_hooks.edits(site(files), COMMAND) == ()
    assert [notice.code for notice in codex_hooks.notices(site(files))] == [code]
    assert codex_hooks.edits(site(), COMMAND) != ()
    assert codex_hooks.notices(site()) == ()


def test_hooks_that_are_switched_off_are_told() -> None:
    assert [one.code for one in codex_hooks.notices(site({CONFIG: "features.hooks = false\n"}))] == [
        "codex-hooks-off"
    ]
    local = ROOT / ".claude/settings.local.json"
    assert [one.code for one in claude_hooks.notices(site({local: '{"disableAllHooks": true}'}))] == [
        "claude-hooks-off"
    ]
    assert claude_hooks.notices(site({local: '{"disableAllHooks": false}'})) == ()


def test_claudes_hook_lies_in_the_users_settings_for_the_project() -> None:
    (edit,) = claude_hooks.edits(site(), COMMAND)
    assert (edit.path, edit.local, edit.element) == (ROOT / ".claude/settings.local.json", True, True)
    assert isinstance(edit.value, dict)
    assert "resume" not in edit.value["matcher"], "what a hook said stays in a resumed session"


@pytest.mark.parametrize(
    ("room", "text", "holds"),
    [
        (HookRoom(utf8=4), "éé", True),
        (HookRoom(utf8=4), "ééé", False),
        (HookRoom(utf16=4), "😀😀", True),
        (HookRoom(utf16=4), "😀😀x", False),
        (HookRoom(), "x" * 100000, True),
    ],
)
def test_how_room_is_counted(room: HookRoom, text: str, *, holds: bool) -> None:
    assert room.holds(text) is holds
