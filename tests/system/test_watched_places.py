"""Watched places that go, come back and change under the running service; limits, floods, and status."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_bridge.daemon import client
from integration.daemon.conftest import need_unshare
from system.home import AGENTS, Bridge, git, of, save, until, until_quiet, until_said, until_silent

__all__ = ["need_unshare"]

RECONCILE = ("--reconcile-interval-s", "2", "--root-check-s", "0.2")


@pytest.fixture
def bridge(sealed_home: Path, short_tmp: Path) -> Iterator[Bridge]:
    yield from Bridge.made(sealed_home, short_tmp)


def right(bridge: Bridge, root: Path, *texts: str) -> None:
    """What must hold in the end: each text once, nothing else to do, and the service well."""
    until_said(root / "AGENTS.md", *texts)
    until_said(root / "CLAUDE.md", *texts)
    status = until_quiet(root)
    assert status["watch"]["missed"] == 0
    assert bridge.run("sync", cwd=root)["data"]["reports"][0]["wrote"] == []


def until_told(root: Path, text: str) -> None:
    """Wait until the status says why a project fails."""
    until(lambda: text in (of(client.read_status(), root)["error"] or ""), client.read_status)


# --- a store that is replaced


def removed_store(root: Path) -> bool:
    """Remove it, again where the service has just written its index into what was being removed."""
    shutil.rmtree(root / ".memory", ignore_errors=True)
    return not (root / ".memory").exists()


def recreated(root: Path) -> None:
    until(lambda: removed_store(root), lambda: "the memory can't be removed")
    (root / ".memory/entries").mkdir(parents=True, exist_ok=True)


def another_in_its_place(root: Path) -> None:
    (root / ".memory").rename(root / "away")
    (root / ".memory/entries").mkdir(parents=True)


def entries_replaced(root: Path) -> None:
    shutil.rmtree(root / ".memory/entries")
    (root / ".memory/entries").mkdir()


def notices(root: Path) -> set[str]:
    """Codes of what the status tells about a project."""
    return {notice["code"] for notice in of(client.read_status(), root)["notices"]}


def test_a_store_that_is_gone_is_told_until_it_is_there_again(bridge: Bridge) -> None:
    root = bridge.project()
    save(root, "one", "Fact one holds.")
    bridge.start(*RECONCILE)
    until_said(root / "AGENTS.md", "Fact one holds.")
    until(lambda: removed_store(root) and "store-missing" in notices(root), client.read_status)
    until_silent(root / "AGENTS.md", "Fact one holds.")

    def told() -> bool:
        status = of(client.read_status(), root)
        watches = {watch["path"]: watch["state"] for watch in status["watches"]}
        return (status["facts"]["shared"], watches[str(root / ".memory")]) == (0, "missing")

    until(told, client.read_status)
    (root / ".memory/entries").mkdir(parents=True)
    until(lambda: "store-missing" not in notices(root), client.read_status)
    save(root, "two", "Fact two holds.")
    right(bridge, root, "Fact two holds.")


@pytest.mark.parametrize("swap", [recreated, another_in_its_place, entries_replaced])
def test_a_store_that_is_replaced_is_followed(bridge: Bridge, swap: Callable[[Path], None]) -> None:
    root = bridge.project()
    save(root, "one", "Fact one holds.")
    bridge.start(*RECONCILE)
    until_said(root / "AGENTS.md", "Fact one holds.")
    swap(root)
    until_silent(root / "AGENTS.md", "Fact one holds.")
    save(root, "two", "Fact two holds.")
    right(bridge, root, "Fact two holds.")


def test_a_store_moved_away_and_back_is_followed(bridge: Bridge) -> None:
    root = bridge.project()
    save(root, "one", "Fact one holds.")
    bridge.start(*RECONCILE)
    (root / ".memory").rename(root / "away")
    until_silent(root / "AGENTS.md", "Fact one holds.")
    until(lambda: "store-missing" in notices(root), client.read_status)
    (root / "away").rename(root / ".memory")
    until_said(root / "AGENTS.md", "Fact one holds.")
    save(root, "two", "Fact two holds.")
    right(bridge, root, "Fact one holds.", "Fact two holds.")


def test_a_store_swapped_for_a_link_is_told_and_another_directory_followed(bridge: Bridge) -> None:
    root = bridge.project()
    save(root, "one", "Fact one holds.")
    bridge.start(*RECONCILE)
    for name in ("first", "second"):
        (root / name / "entries").mkdir(parents=True)
        (root / name / f"entries/{name}.md").write_text(f"The {name} isn't the project's.\n")
    (root / ".memory").rename(root / "away")
    for target in ("first", "second"):
        (root / "aside").symlink_to(root / target)
        (root / "aside").replace(root / ".memory")
        until_told(root, f"It leads to {root / target}")
        assert client.read_status()["state"] == "degraded"
    assert "isn't the project's" not in (root / "AGENTS.md").read_text()
    (root / ".memory").unlink()
    (root / "away").rename(root / ".memory")
    save(root, "two", "Fact two holds.")
    right(bridge, root, "Fact one holds.", "Fact two holds.")
    assert client.read_status()["state"] == "ok"


def test_a_branch_switch_of_five_hundred_facts(bridge: Bridge) -> None:
    root = bridge.project()
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "Set up")
    git(root, "switch", "-q", "-c", "many")
    for number in range(500):
        text = f"---\npinned: {number == 499}\n---\n\nFact {number:03}.\n"
        (root / f".memory/entries/{number:03}.md").write_text(text)
    git(root, "add", "-f", ".memory/entries")
    git(root, "commit", "-q", "-m", "Many facts")
    bridge.start(*RECONCILE)
    for branch, count in (("main", 0), ("many", 500), ("main", 0), ("many", 500)):
        # The block makes AGENTS.md differ from HEAD; whoever switches puts such changes aside.
        git(root, "checkout", "-q", "-f", branch)
        until(
            lambda count=count: of(client.read_status(), root)["facts"]["shared"] == count,  # type: ignore[misc]
            client.read_status,
        )
    until_said(root / "AGENTS.md", "Fact 499.")
    status = until_quiet(root)
    assert status["watch"]["missed"] == 0
    assert bridge.run("sync", cwd=root)["data"]["reports"][0]["wrote"] == []


def test_a_file_system_mounted_over_the_store(bridge: Bridge, need_unshare: None) -> None:
    root = bridge.project()
    save(root, "one", "Fact one holds.")
    other = bridge.home / "other"
    (other / "entries").mkdir(parents=True)
    (other / "entries/two.md").write_text("Fact two holds.\n")
    service = bridge.start(*RECONCILE, prefix=("unshare", "-Urm"))
    inside = ("nsenter", "--target", str(service.process.pid), "--user", "--mount", "--preserve-credentials")
    mounted = subprocess.run(
        [*inside, "mount", "--bind", str(other), str(root / ".memory")], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"the kernel refuses a mount: {mounted.stderr.decode().strip()}")
    until_said(root / "AGENTS.md", "Fact two holds.")
    until_silent(root / "AGENTS.md", "Fact one holds.")
    (other / "entries/three.md").write_text("Fact three holds.\n")
    until_said(root / "AGENTS.md", "Fact two holds.", "Fact three holds.")
    subprocess.run([*inside, "umount", "--lazy", str(root / ".memory")], check=True)
    until_said(root / "AGENTS.md", "Fact one holds.")
    save(root, "four", "Fact four holds.")
    right(bridge, root, "Fact one holds.", "Fact four holds.")


# --- a project that is gone for a while


def removed(root: Path) -> None:
    root.rename(root.with_name("away"))


def emptied(root: Path) -> None:
    """As an unmounted disk leaves its mount point."""
    root.rename(root.with_name("away"))
    root.mkdir()


@pytest.mark.parametrize("leave", [removed, emptied])
def test_a_project_that_is_gone_is_told_and_heals(bridge: Bridge, leave: Callable[[Path], None]) -> None:
    root, other = bridge.project(), bridge.project("other")
    save(root, "one", "Fact one holds.")
    bridge.start(*RECONCILE)
    leave(root)
    until(lambda: of(client.read_status(), root)["state"] == "failed", client.read_status)
    status = client.read_status()
    assert status["state"] == "degraded"
    assert "gone or empty" in of(status, root)["error"]
    assert of(status, other)["state"] == "ok"
    save(other, "other", "Others go on.")
    until_said(other / "AGENTS.md", "Others go on.")
    passes = client.read_status()["jobs"][0]["runs"]
    until(lambda: client.read_status()["jobs"][0]["runs"] > passes + 1, client.read_status)
    assert not root.exists() or list(root.iterdir()) == []
    if root.exists():
        root.rmdir()
    root.with_name("away").rename(root)
    until(lambda: client.read_status()["state"] == "ok", client.read_status)
    save(root, "two", "Fact two holds.")
    right(bridge, root, "Fact one holds.", "Fact two holds.")


# --- limits and floods


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("max_inotify_watches", 2, "polled instead"), ("max_inotify_instances", 0, "no file watcher")],
)
def test_exhausted_limits_are_told_and_polled_around(
    bridge: Bridge, need_unshare: None, limit: str, value: int, reason: str
) -> None:
    root = bridge.project()
    lowered = ("unshare", "-Ur", "sh", "-c", f'echo {value} > /proc/sys/user/{limit} && exec "$@"', "sh")
    service = bridge.start(*RECONCILE, prefix=lowered, ready=False)
    until(lambda: service.process.poll() is not None or client.service_is_running(), lambda: "no start")
    if service.process.poll() is not None:
        pytest.skip(f"the kernel refuses to lower {limit}: {service.log.read_text()}")
    service.wait_told("READY=1")
    status = client.read_status()
    assert status["state"] == "degraded"
    assert reason in " ".join(status["reasons"])
    assert status["watch"]["polled"] > 0
    save(root, "one", "Fact one holds.")
    until_said(root / "AGENTS.md", "Fact one holds.")
    shown = bridge.run("status", codes=(1,))["data"]
    assert "polled" in {watch["state"] for watch in of(shown, root)["watches"]}


def test_stopped_while_five_thousand_files_change(bridge: Bridge) -> None:
    root = bridge.project()
    save(root, "gone", "This goes.")
    service = bridge.start()
    service.send(signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(client.NotAnsweringError, match="running, not answering"):
        client.read_status()
    assert time.monotonic() - started < 2.5
    for number in range(5000):
        # Renamed into place: five events each, more than the kernel's queue takes.
        save(root, f"{number:04}", f"Fact {number:04} holds.")
    (root / ".memory/entries/gone.md").unlink()
    (root / ".memory/entries/last.md").write_text("---\npinned: true\n---\n\nThe last one is pinned.\n")
    service.send(signal.SIGCONT)

    def counted() -> bool:
        return bool(of(client.read_status(10), root)["facts"]["shared"] == 5001)

    until(counted, lambda: service.log.read_text()[-3000:], 30)
    status = until_quiet(root)
    assert status["state"] == "degraded"
    assert status["watch"]["overflows"] >= 1
    assert any("overflow" in reason for reason in status["reasons"])
    until_said(root / "AGENTS.md", "The last one is pinned.")
    assert "This goes." not in (root / "AGENTS.md").read_text()
    assert bridge.run("sync", cwd=root)["data"]["reports"][0]["wrote"] == []


# --- long passes


def test_a_long_pass_beats_and_ends_where_it_is_told_to(bridge: Bridge) -> None:
    root = bridge.project()
    service = bridge.start(*RECONCILE, env={"WATCHDOG_USEC": "200000"})
    service.told.clear()
    for number in range(3000):
        (root / f".memory/entries/{number:04}.md").write_text(f"Fact {number:04} holds.\n")
    (root / ".memory/entries").rename(root / ".memory/again")
    # One pass reads all of them; it takes several watchdog intervals, and beats come from within it.
    beats = 0
    while of(client.read_status(10), root)["facts"]["shared"] < 3000:
        service.manager.settimeout(20)
        beats += b"WATCHDOG=1" in service.manager.recv(4096)
    assert beats >= 3

    (root / ".memory/again").rename(root / ".memory/entries")
    assert service.end() == 0
    assert AGENTS.decode().splitlines()[0] in (root / "AGENTS.md").read_text()
