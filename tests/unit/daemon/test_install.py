"""What all service managers share: the program's path, the environment it is given, the shipped files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_bridge.daemon.install import (
    ManagerError,
    NoManagerError,
    carried,
    entry_point,
    find_manager,
    run_command,
    shipped,
)
from agent_bridge.errors import NotFoundError


@pytest.mark.parametrize(
    ("env", "known", "expected"),
    [
        ({}, {}, {}),
        ({"CODEX_HOME": "/c"}, {}, {"CODEX_HOME": "/c"}),
        ({"CODEX_HOME": "/c"}, {"CODEX_HOME": "/c"}, {}),
        ({"CODEX_HOME": "/c"}, {"CODEX_HOME": "/d"}, {"CODEX_HOME": "/c"}),
        ({"CODEX_HOME": ""}, {"CODEX_HOME": "/d"}, {}),
        ({"CLAUDE_CONFIG_DIR": "/x"}, {}, {"CLAUDE_CONFIG_DIR": "/x"}),
        ({"AGENT_BRIDGE_QUIET_MS": "9"}, {}, {"AGENT_BRIDGE_QUIET_MS": "9"}),
        (
            {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"},
            {"XDG_CONFIG_HOME": "/c"},
            {"XDG_STATE_HOME": "/s"},
        ),
        # Of the session, and the manager's own business.
        ({"XDG_RUNTIME_DIR": "/r", "XDG_SESSION_ID": "4", "XDG_CURRENT_DESKTOP": "X"}, {}, {}),
        # A session of a client, a secret, the rest.
        ({"CLAUDECODE": "1", "CLAUDE_CODE_OAUTH_TOKEN": "t", "CODEX_API_KEY": "k", "LANG": "C"}, {}, {}),
    ],
)
def test_what_is_carried_along(env: dict[str, str], known: dict[str, str], expected: dict[str, str]) -> None:
    assert carried(env, {"PATH": "/usr/bin:/bin"} | known) == expected


def test_what_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ManagerError, match="CODEX_HOME"):
        carried({"CODEX_HOME": "/home/\udce4"}, {})
    with pytest.raises(ManagerError, match="CODEX_HOME"):
        carried({"CODEX_HOME": "/home/\x07"}, {})


def test_git_is_made_findable(tmp_path: Path) -> None:
    _executable(tmp_path / "git bin" / "git")
    env = {"PATH": str(tmp_path / "git bin")}
    assert carried(env, {"PATH": "/nowhere"}) == {"PATH": f"/nowhere:{tmp_path}/git bin"}
    assert carried(env, env) == {}
    assert carried({"PATH": "/nowhere"}, {"PATH": "/nowhere"}) == {}


def test_the_entry_point_is_the_program_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _executable(tmp_path / "venv/bin/agent-bridge")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/oab").symlink_to(tmp_path / "venv/bin/agent-bridge")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for called in ("oab", "bin/oab", "./bin/../bin/oab", str(tmp_path / "bin/oab")):
        monkeypatch.setattr(sys, "argv", [called, "service", "install"])
        assert entry_point() == tmp_path / "bin/oab"


def test_without_a_program_of_that_name_the_one_beside_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for called in (str(tmp_path / "entry.py"), "-c", "", str(tmp_path / "agent-bridge")):
        monkeypatch.setattr(sys, "argv", [called])
        with pytest.raises(NotFoundError, match="isn't installed"):
            entry_point()
    _executable(tmp_path / "agent-bridge")
    monkeypatch.setattr(sys, "argv", ["/somewhere/entry.py"])
    assert entry_point() == tmp_path / "agent-bridge"


@pytest.mark.skipif(sys.platform != "linux", reason="launchd is always there")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "`systemctl` isn't on PATH"),
        ("echo offline; exit 1", "offline"),
        ("echo 'Failed to connect to bus: No medium found' >&2; exit 1", "No medium found"),
    ],
)
def test_without_a_manager_it_says_what_to_do_instead(
    answer: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if answer is not None:
        _executable(tmp_path / "systemctl", f"#!/bin/sh\n{answer}\n")
    with pytest.raises(NoManagerError) as refused:
        find_manager()
    assert reason in refused.value.detail
    assert "agent-bridge up" in refused.value.remedy


def test_a_manager_that_cant_be_started_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ManagerError, match="no-such-program"):
        run_command([str(tmp_path / "no-such-program"), "print"])


@pytest.mark.parametrize("name", ["agent-bridge.service", "dev.agent-bridge.plist"])
def test_the_shipped_files_are_found(name: str) -> None:
    assert b"agent-bridge" in shipped(name)


def _executable(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
