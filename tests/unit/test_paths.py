"""Places: the same answer wherever we are started from, and never somebody else's directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.errors import ConfigError, RefusedError

linux = pytest.mark.skipif(sys.platform != "linux", reason="XDG places are Linux's")

SHELL = {"HOME": "/home/ada", "XDG_SESSION_TYPE": "wayland", "TMPDIR": "/home/ada/tmp"}
SYSTEMD = {
    "HOME": "/home/ada",
    "INVOCATION_ID": "0",
    "NOTIFY_SOCKET": "/run/n",
    "STATE_DIRECTORY": "/elsewhere",
}
CRON = {"HOME": "/home/ada", "SHELL": "/bin/sh"}


@linux
@pytest.mark.parametrize("env", [SHELL, SYSTEMD, CRON], ids=["shell", "systemd", "cron"])
def test_places_depend_on_home_alone(env: dict[str, str]) -> None:
    assert paths.config_file(env) == Path("/home/ada/.config/agent-bridge/config.toml")
    assert paths.global_store(env) == Path("/home/ada/.local/share/agent-bridge/memory")
    assert paths.state_dir(env) == Path("/home/ada/.local/state/agent-bridge")
    assert paths.projects_file(env) == paths.state_dir(env) / "projects.json"
    assert paths.project_state("0123", env) == paths.state_dir(env) / "projects/0123"
    assert paths.user_state(env) == paths.state_dir(env) / "user"
    assert paths.service_lock(env).parent == paths.state_dir(env)
    assert paths.cache_dir(env) == Path("/home/ada/.cache/agent-bridge")
    assert paths.claude_home(env) == Path("/home/ada/.claude")
    assert paths.codex_home(env) == Path("/home/ada/.codex")
    assert paths.opencode_config(env) == Path("/home/ada/.config/opencode")
    assert paths.gemini_home(env) == Path("/home/ada/.gemini")


@linux
def test_runtime_directory_is_the_same_with_and_without_the_session_variable(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_RUN_USER", short_tmp)
    mine = short_tmp / str(os.getuid())
    mine.mkdir(mode=0o700)
    under_systemd = paths.runtime_dir({**SYSTEMD, "XDG_RUNTIME_DIR": str(mine)})
    under_cron = paths.runtime_dir(CRON)
    after_su = paths.runtime_dir({**CRON, "XDG_RUNTIME_DIR": str(short_tmp / "gone")})
    assert under_systemd == under_cron == after_su == mine / "agent-bridge"


@linux
def test_runtime_directory_of_another_user_is_not_used(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_RUN_USER", short_tmp / "none")
    monkeypatch.setattr(paths, "_SHARED_TEMPORARY", short_tmp)
    # The root directory belongs to root; as root, a file of another kind stands in for it.
    theirs = "/" if os.getuid() else "/proc/self/exe"
    assert paths.runtime_dir({**CRON, "XDG_RUNTIME_DIR": theirs}) == short_tmp / f"agent-bridge-{os.getuid()}"


@linux
@pytest.mark.parametrize("kind", ["symlink", "file"])
def test_a_shared_name_that_somebody_has_taken_is_refused(
    kind: str, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_RUN_USER", short_tmp / "none")
    monkeypatch.setattr(paths, "_SHARED_TEMPORARY", short_tmp)
    taken = short_tmp / f"agent-bridge-{os.getuid()}"
    taken.symlink_to("/etc") if kind == "symlink" else taken.write_text("")
    with pytest.raises(RefusedError, match=taken.name):
        paths.runtime_dir(CRON)


@linux
@pytest.mark.parametrize("value", ["relative/dir", "", "./x"])
def test_xdg_values_that_are_not_absolute_are_ignored(value: str) -> None:
    env = {
        **CRON,
        "XDG_CONFIG_HOME": value,
        "XDG_STATE_HOME": value,
        "XDG_DATA_HOME": value,
        "XDG_CACHE_HOME": value,
    }
    assert paths.config_dir(env) == paths.config_dir(CRON)
    assert paths.state_dir(env) == paths.state_dir(CRON)
    assert paths.data_dir(env) == paths.data_dir(CRON)
    assert paths.cache_dir(env) == paths.cache_dir(CRON)


@linux
def test_xdg_values_count_where_they_are_absolute() -> None:
    env = {
        **CRON,
        "XDG_CONFIG_HOME": "/c",
        "XDG_STATE_HOME": "/s",
        "XDG_DATA_HOME": "/d",
        "XDG_CACHE_HOME": "/k",
    }
    assert paths.config_dir(env) == Path("/c/agent-bridge")
    assert paths.state_dir(env) == Path("/s/agent-bridge")
    assert paths.data_dir(env) == Path("/d/agent-bridge")
    assert paths.cache_dir(env) == Path("/k/agent-bridge")
    assert paths.opencode_config(env) == Path("/c/opencode")


@pytest.mark.parametrize("kind", ["CONFIG", "STATE", "DATA", "CACHE", "RUNTIME"])
def test_each_place_can_be_overridden(kind: str) -> None:
    place = getattr(paths, f"{kind.lower()}_dir")
    variable = f"AGENT_BRIDGE_{kind}_DIR"
    assert place({**CRON, variable: "/over/here"}) == Path("/over/here")
    assert place({**CRON, variable: "~/here"}) == Path("/home/ada/here")
    assert place({**CRON, variable: ""}) == place(CRON)
    with pytest.raises(ConfigError, match=f"{variable} is 'over/here'"):
        place({**CRON, variable: "over/here"})


def test_home_comes_from_the_user_database_where_the_variable_is_missing() -> None:
    import pwd

    expected = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert paths.home({}) == paths.home({"HOME": ""}) == paths.home({"HOME": "here"}) == expected


def test_macos_places_are_apart_and_ignore_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    env = {"HOME": "/Users/ada", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r", "XDG_CONFIG_HOME": "/c"}
    places = [paths.config_dir(env), paths.data_dir(env), paths.state_dir(env), paths.cache_dir(env)]
    assert len(set(places)) == 4
    assert all(place.is_relative_to("/Users/ada/Library") for place in places)
    assert not paths.data_dir(env).is_relative_to(paths.state_dir(env)), (
        "purging state mustn't take the store"
    )
    assert paths.runtime_dir(env) == Path("/Users/ada/Library/Caches/agent-bridge/run")


def test_harness_homes_follow_their_variables() -> None:
    env = {**CRON, "CLAUDE_CONFIG_DIR": "/srv/claude", "CODEX_HOME": "/srv/codex"}
    assert paths.claude_home(env) == Path("/srv/claude")
    assert paths.codex_home(env) == Path("/srv/codex")


def test_a_socket_path_that_no_socket_can_have_is_named() -> None:
    fits = "/" + "r" * (paths.SOCKET_PATH_LIMIT - len("/status.sock") - 1)
    assert len(str(paths.status_socket({"AGENT_BRIDGE_RUNTIME_DIR": fits}))) == paths.SOCKET_PATH_LIMIT
    with pytest.raises(ConfigError, match="104 bytes"):
        paths.status_socket({"AGENT_BRIDGE_RUNTIME_DIR": fits + "r"})
    with pytest.raises(ConfigError):  # bytes count, not characters
        paths.status_socket({"AGENT_BRIDGE_RUNTIME_DIR": fits[:-1] + "é"})


def test_private_directory_is_made_and_mended(short_tmp: Path) -> None:
    place = short_tmp / "a/b"
    assert paths.ensure_private_dir(place) == place
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o755)
    paths.ensure_private_dir(place)
    assert place.stat().st_mode & 0o777 == 0o700


def test_private_directory_may_be_a_link_of_the_users_own(short_tmp: Path) -> None:
    (short_tmp / "disk").mkdir()
    (short_tmp / "state").symlink_to("disk")
    assert paths.ensure_private_dir(short_tmp / "state") == short_tmp / "disk"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_private_directory_of_another_user_is_refused(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = short_tmp / f"agent-bridge-{os.getuid()}"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    with pytest.raises(RefusedError):
        paths.ensure_private_dir(place)
    monkeypatch.setattr(paths, "_RUN_USER", short_tmp / "none")
    monkeypatch.setattr(paths, "_SHARED_TEMPORARY", short_tmp)
    with pytest.raises(RefusedError):
        paths.runtime_dir(CRON)
    assert paths.runtime_dir({**CRON, "XDG_RUNTIME_DIR": str(short_tmp)}) == short_tmp / "agent-bridge"


def test_private_directory_is_refused_where_a_file_is(short_tmp: Path) -> None:
    (short_tmp / "x").write_text("")
    with pytest.raises(RefusedError):
        paths.ensure_private_dir(short_tmp / "x")


def test_importing_places_and_reading_files_loads_nothing_heavy() -> None:
    code = """
import sys
from agent_bridge import errors, paths
from agent_bridge.files import read_image
read_image(paths.Path("/etc/passwd"))
paths.state_dir()
heavy = {"pydantic", "structlog", "platformdirs", "filelock", "asyncio", "typer", "ctypes", "dataclasses"}
print(*sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
