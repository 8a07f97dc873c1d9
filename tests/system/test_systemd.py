"""The service under a real systemd user manager: line by line what the unit promises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from system.lab import ROOT, Lab
from system.seat import UNIT, Seat

pytestmark = pytest.mark.serial

SHIPPED = ROOT / "systemd" / UNIT
# Holds a lock as we do, says so, and lets go when its input ends.
HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def dropin(seat: Seat) -> Iterator[str]:
    """The name of a drop-in that is taken away again."""
    yield "50-test"
    seat.set_dropin("50-test", None)


def test_install_starts_it_and_says_how_it_lives(installed: Seat) -> None:
    again = json.loads(installed.bridge("service", "install", "--json").stdout)
    pid = int(installed.shown("MainPID"))
    assert again["data"] == {"manager": "systemd", "file": str(installed.units / UNIT), "pid": pid}
    assert installed.status()["pid"] == pid
    assert installed.systemctl("is-enabled", UNIT) == "enabled"
    assert (installed.shown("ActiveState"), installed.shown("Type")) == ("active", "notify")
    assert f'"{installed.program}" service run' in installed.read(installed.units / UNIT)
    assert "Watching" in installed.systemctl("status", UNIT)
    assert re.search("Lingering is (on|off):", again["messages"][-1]["text"])


def test_lingering_is_told(lab: Lab) -> None:
    assert "Lingering is off" in lab.bridge("service", "install").stderr
    lab.as_root("touch", f"/var/lib/systemd/linger/{lab.user}")
    assert "Lingering is on" in lab.bridge("service", "install").stderr
    lab.as_root("rm", f"/var/lib/systemd/linger/{lab.user}")


def test_what_decides_about_places_is_carried_along(seat: Seat) -> None:
    odd = {
        "CLAUDE_CONFIG_DIR": f"{seat.home}/a \"quoted\" $HOME %h back\\slash 'dir'",
        "CODEX_HOME": f"{seat.home}/codex",
        "XDG_STATE_HOME": f"{seat.home}/elsewhere/state",
        "AGENT_BRIDGE_QUIET_MS": "31",
    }
    told = seat.bridge("service", "install", env=odd | {"OTHER": "stays here", "CLAUDECODE": "1"}).stderr
    assert ", ".join(sorted(odd)) in told
    given = seat.read(Path(f"/proc/{seat.shown('MainPID')}/environ")).split("\0")
    assert {line for line in given if line.partition("=")[0] in odd} == {f"{k}={v}" for k, v in odd.items()}
    assert not [line for line in given if line.startswith(("OTHER=", "CLAUDECODE="))]
    assert seat.status()["state"] == "ok"
    assert seat.run("test", "-e", f"{seat.home}/elsewhere/state/agent-bridge/service.lock")
    seat.bridge("service", "uninstall", env=odd)


def test_both_units_pass_systemds_own_check(installed: Seat, lab: Lab) -> None:
    _link_program(lab)
    for unit in (SHIPPED, installed.units / UNIT):
        checked = installed.run("systemd-analyze", "--user", "verify", str(unit), check=False)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.usefixtures("uninstalled")
def test_the_shipped_unit_works_as_it_stands(lab: Lab) -> None:
    _link_program(lab)
    lab.systemctl("enable", "--now", str(SHIPPED))
    assert lab.status()["pid"] == int(lab.shown("MainPID"))
    lab.systemctl("reload", UNIT)
    lab.wait("the reload", lambda: "reloading" in _events(lab))
    # Installing over it leaves the file in the checkout alone.
    lab.bridge("service", "install")
    assert lab.run("test", "-L", str(lab.units / UNIT), check=False).returncode == 1
    assert lab.read(SHIPPED) == SHIPPED.read_text()


@pytest.mark.usefixtures("installed")
def test_enabled_it_starts_with_the_manager(lab: Lab) -> None:
    before = lab.status()["pid"]
    lab.restart_manager()
    lab.wait("the service", lambda: lab.status().get("state") == "ok")
    assert lab.shown("ActiveState") == "active"
    assert lab.status()["pid"] != before


def test_ready_only_after_the_first_pass_however_long_it_takes(
    installed: Seat, project: Path, dropin: str
) -> None:
    installed.bridge("service", "stop")
    installed.write(project / ".memory/a.md", "Saved while nobody watched.\n")
    installed.set_dropin(dropin, "[Service]\nTimeoutStartSec=2s\n")
    lock = _state_of(installed, project) / "lock"
    with installed.begin(str(installed.program.parent / "python"), "-c", HOLD, str(lock)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        installed.systemctl("start", "--no-block", UNIT)
        installed.wait("that it starts", lambda: installed.status().get("state") == "starting")
        pid = installed.shown("MainPID")
        # Longer than the time-out, which would end it by now, had it not been extended.
        installed.wait("patience", lambda: len(_waits(installed, pid)) >= 2)
        assert (installed.shown("ActiveState"), installed.shown("MainPID")) == ("activating", pid)
        assert installed.status()["state"] == "starting"
        assert not installed.read(project / "AGENTS.md")
        holder.communicate("")
    # Returns when the start job is done, which it is with READY=1.
    installed.systemctl("start", UNIT)
    assert "Saved while nobody watched." in installed.read(project / "AGENTS.md")
    assert installed.status()["state"] == "ok"
    assert (installed.shown("MainPID"), installed.shown("NRestarts")) == (pid, "0")


def test_a_hung_loop_is_killed_and_started_again(installed: Seat, dropin: str) -> None:
    installed.set_dropin(dropin, "[Service]\nWatchdogSec=2s\n")
    installed.bridge("service", "restart")
    pid = installed.shown("MainPID")
    # One that works is left alone for longer than that: its loop comes round once a second now.
    installed.run("sleep", "2.5")
    assert installed.shown("MainPID") == pid
    installed.kill("STOP", pid)
    installed.wait("another process", lambda: installed.shown("MainPID") not in ("0", pid))
    installed.wait("an answer", lambda: installed.status().get("state") == "ok")
    assert installed.shown("NRestarts") == "1"
    told = installed.run("journalctl", "--user", "--lines", "50", "--output", "cat").stdout
    assert "Watchdog timeout" in told


def test_killed_it_comes_back_and_catches_up(installed: Seat, project: Path) -> None:
    pid = installed.shown("MainPID")
    installed.run(
        "sh",
        "-c",
        'kill -9 "$1"; echo "Saved amid the fall." >"$2"',
        "sh",
        pid,
        str(project / ".memory/a.md"),
    )
    installed.wait("the fact", lambda: "Saved amid the fall." in installed.read(project / "AGENTS.md"))
    installed.wait("that it is well", lambda: installed.status().get("state") == "ok")
    assert (installed.shown("NRestarts"), installed.shown("ActiveState")) == ("1", "active")


def test_reload_reads_settings_and_projects_again(installed: Seat) -> None:
    config = installed.home / ".config/agent-bridge/config.toml"
    pid = installed.shown("MainPID")
    assert _interval(installed) == 60.0
    installed.write(config, "reconcile_interval_s = 45.0\n")
    installed.systemctl("reload", UNIT)
    installed.wait("the new interval", lambda: _interval(installed) == 45.0)
    root = installed.make_project("reloaded")
    installed.systemctl("reload", UNIT)
    installed.wait(
        "the project", lambda: str(root) in [it["root"] for it in installed.status().get("projects", ())]
    )
    installed.write(config, 'reconcile_interval_s = "soon"\n')
    installed.systemctl("reload", UNIT)
    installed.wait("the complaint", lambda: "reconcile_interval_s" in str(installed.status().get("reasons")))
    assert installed.shown("MainPID") == pid
    installed.run("rm", str(config))


def test_a_setting_that_cant_be_used_is_not_tried_again_and_again(seat: Seat) -> None:
    config = seat.home / ".config/agent-bridge/config.toml"
    seat.write(config, 'quiet_ms = "soon"\n')
    refused = seat.bridge("service", "install", check=False)
    assert refused.returncode == 1
    assert "quiet_ms" in refused.stderr
    assert (seat.shown("ActiveState"), seat.shown("NRestarts")) == ("failed", "0")
    seat.run("rm", str(config))
    seat.bridge("service", "start")
    assert seat.status()["state"] == "ok"


def test_the_journal_has_structured_lines(installed: Seat) -> None:
    pid = installed.shown("MainPID")
    installed.wait("the line", lambda: installed.journal(f"_PID={pid}"))
    entry = next(it for it in installed.journal(f"_PID={pid}") if '"ready"' in it["MESSAGE"])
    assert json.loads(entry["MESSAGE"]).items() >= {"event": "ready", "level": "info"}.items()
    assert (entry["PRIORITY"], entry["_SYSTEMD_USER_UNIT"]) == ("6", UNIT)
    assert entry["MESSAGE"] in installed.bridge("logs", "-n", "20").stdout
    assert (
        entry["MESSAGE"] in json.loads(installed.bridge("service", "logs", "--json").stdout)["data"]["lines"]
    )


def test_files_in_repositories_are_everybodys_and_state_is_the_users(installed: Seat, project: Path) -> None:
    installed.write(project / ".memory/a.md", "Anyone may read this.\n")
    installed.wait("the fact", lambda: "Anyone may read" in installed.read(project / "AGENTS.md"))
    state = installed.home / ".local/state/agent-bridge"
    modes = installed.run("find", str(state), "-type", "f", "-printf", "%m %P\n").stdout.splitlines()
    assert modes
    assert [line for line in modes if not line.startswith("600 ")] == []
    assert _mode(installed, project / "AGENTS.md") == "644"
    assert _mode(installed, project / ".memory/MEMORY.md") == "644"
    assert _mode(installed, state) == "700"


def test_the_restrictions_are_in_force(installed: Seat) -> None:
    held = installed.read(Path(f"/proc/{installed.shown('MainPID')}/status"))
    assert re.search(r"^NoNewPrivs:\s1$", held, re.MULTILINE)
    assert re.search(r"^Seccomp:\s2$", held, re.MULTILINE)
    assert installed.shown("RestrictAddressFamilies") == "AF_INET AF_INET6 AF_UNIX"
    assert installed.shown("UMask") == "0022"


def test_one_that_up_started_is_taken_over(uninstalled: Seat) -> None:
    assert "The service runs" in uninstalled.bridge("up").stdout
    before = uninstalled.status()["pid"]
    uninstalled.bridge("service", "install")
    assert before != uninstalled.status()["pid"] == int(uninstalled.shown("MainPID"))


def test_stop_start_restart_go_through_the_manager(installed: Seat) -> None:
    first = installed.shown("MainPID")
    installed.bridge("service", "stop")
    assert (installed.shown("ActiveState"), installed.shown("Result")) == ("inactive", "success")
    assert installed.bridge("service", "status", check=False).returncode == 3
    installed.bridge("service", "start")
    second = installed.shown("MainPID")
    installed.bridge("service", "restart")
    assert len({"0", first, second, installed.shown("MainPID")}) == 4
    assert installed.bridge("service", "status").returncode == 0
    # `down` ends it for now: exit code 0 is no failure, so the manager leaves it.
    installed.bridge("down")
    installed.wait("the end", lambda: installed.shown("ActiveState") == "inactive")


def test_uninstall_leaves_nothing(uninstalled: Seat) -> None:
    before = _remains(uninstalled)
    uninstalled.bridge("service", "install")
    assert _remains(uninstalled) != before
    uninstalled.bridge("service", "uninstall")
    assert _remains(uninstalled) == before
    assert uninstalled.systemctl("list-units", "--all", "--no-legend", "agent-bridge*") == ""
    assert uninstalled.bridge("status", check=False).returncode == 3
    assert "wasn't installed" in uninstalled.bridge("service", "uninstall").stdout


def _link_program(lab: Lab) -> None:
    lab.run("mkdir", "-p", f"{lab.home}/.local/bin")
    lab.run("ln", "-sf", str(lab.program), f"{lab.home}/.local/bin/agent-bridge")


def _remains(seat: Seat) -> str:
    """What lies with the manager and in the run-time directory."""
    runtime = seat.run("sh", "-c", 'find "$XDG_RUNTIME_DIR/agent-bridge" -type s', check=False).stdout
    return seat.run("find", str(seat.units), "!", "-type", "d", check=False).stdout + runtime


def _events(seat: Seat) -> str:
    return " ".join(entry["MESSAGE"] for entry in seat.journal())


def _waits(seat: Seat, pid: str) -> list[str]:
    entries = seat.journal(f"_PID={pid}")
    return [entry["MESSAGE"] for entry in entries if "is locked" in entry["MESSAGE"]]


def _interval(seat: Seat) -> object:
    jobs = seat.status().get("jobs", ())
    return next((job["interval_s"] for job in jobs if job["name"] == "reconcile"), None)


def _state_of(seat: Seat, project: Path) -> Path:
    listed = json.loads(seat.read(seat.home / ".local/state/agent-bridge/projects.json"))["projects"]
    found: str = next(entry["id"] for entry in listed if entry["root"] == str(project))
    return seat.home / ".local/state/agent-bridge/projects" / found


def _mode(seat: Seat, path: Path) -> str:
    return seat.run("stat", "-c", "%a", str(path)).stdout.strip()
