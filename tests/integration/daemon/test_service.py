"""The running service, seen from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import client
from agent_bridge.errors import NotRunningError
from agent_bridge.projects import Project, remove_project
from integration.daemon.conftest import Service, Starter, wait_for_text

Maker = Callable[..., Project]


def save(project: Project, name: str, text: str) -> None:
    (project.store / "entries" / name).write_text(text)


def project_of(status: dict[str, object], project: Project) -> dict[str, object]:
    return next(item for item in status["projects"] if item["id"] == project.id)  # type: ignore[attr-defined]


def test_what_was_saved_while_it_was_down_is_there_when_it_is_ready(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    save(project, "a.md", "one")
    service = start_service()
    assert (project.root / "OUT.md").read_text() == "one\n"
    assert any("EXTEND_TIMEOUT_USEC=" in told for told in service.told)
    status = client.read_status()
    assert status["state"] == "ok"
    assert status["reasons"] == []
    assert status["schema"] == 1
    assert status["pid"] == service.process.pid
    assert project_of(status, project)["generation"] == 1
    watches = status["projects"][0]["watches"]
    assert {watch["state"] for watch in watches} == {"watching"}
    assert len({watch["path"] for watch in watches}) == len(watches)
    assert status["jobs"][0]["name"] == "reconcile"


def test_a_save_arrives_at_once_and_is_counted(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    service = start_service()
    before = project_of(client.read_status(), project)["generation"]
    save(project, "a.md", "one")
    assert wait_for_text(project.root / "OUT.md", "one\n") < 1.0
    status = service.wait_status(lambda status: project_of(status, project)["generation"] != before)
    assert project_of(status, project)["last_projection"]["paths"] == [str(project.root / "OUT.md")]  # type: ignore[index]
    assert {"service-lock", "registry-address", "mcp-socket"} <= {job["name"] for job in status["jobs"]}


def test_its_own_writing_starts_no_further_pass(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    other = make_project("other")
    service = start_service()
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")
    service.wait_status(lambda status: status["queue"] == 0)
    generation = project_of(client.read_status(), project)["generation"]
    save(other, "b.md", "two")
    wait_for_text(other.root / "OUT.md", "two\n")
    service.wait_status(lambda status: status["queue"] == 0)
    assert project_of(client.read_status(), project)["generation"] == generation


def test_a_change_made_by_hand_to_what_it_wrote_is_seen(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    start_service()
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")
    (project.root / "OUT.md").write_text("meddled")
    wait_for_text(project.root / "OUT.md", "one\n")


def test_a_burst_arrives_whole(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    start_service()
    for number in range(200):
        save(project, f"{number:03}.md", str(number))
    wait_for_text(project.root / "OUT.md", "".join(f"{number}\n" for number in range(200)))


def test_a_new_project_is_taken_in_and_a_removed_one_left_alone(
    start_service: Starter, make_project: Maker
) -> None:
    service = start_service()
    project = make_project("later")
    service.wait_status(lambda status: status["projects"])
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")
    remove_project(project.id)
    service.wait_status(lambda status: not status["projects"])
    save(project, "b.md", "two")
    kept = make_project("kept")
    save(kept, "c.md", "three")
    wait_for_text(kept.root / "OUT.md", "three\n")
    assert (project.root / "OUT.md").read_text() == "one\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_within_a_second_and_leaves_nothing(
    start_service: Starter, make_project: Maker, number: signal.Signals
) -> None:
    make_project()
    service = start_service()
    started = time.monotonic()
    service.send(number)
    assert service.process.wait(5) == 0
    assert time.monotonic() - started < 1.0
    service.wait_told("STOPPING=1")
    assert not paths.status_socket().exists()
    assert not client.service_is_running()
    with pytest.raises(NotRunningError):
        client.read_status()


def test_told_to_stop_while_it_starts_it_stops_well(start_service: Starter, make_project: Maker) -> None:
    for number in range(10):
        make_project(f"p{number}")
    service = start_service(ready=False, env={"LITTLE_SECONDS": "0.3"})
    service.wait_told("EXTEND_TIMEOUT_USEC")
    assert client.read_status()["state"] == "starting"
    started = time.monotonic()
    assert service.end() == 0
    assert time.monotonic() - started < 2.0, "its start would take 3 s"
    assert not any("READY=1" in told for told in service.told)


def test_a_second_one_ends_and_disturbs_nothing(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    first = start_service()
    second = start_service(ready=False)
    assert second.process.wait(10) != 0
    assert "running already" in second.log.read_text()
    assert client.read_status()["pid"] == first.process.pid
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")


def test_after_a_kill_the_next_one_takes_over(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    first = start_service()
    first.process.kill()
    first.process.wait()
    assert paths.status_socket().exists()
    with pytest.raises(NotRunningError):
        client.read_status()
    save(project, "a.md", "one")
    start_service()
    assert (project.root / "OUT.md").read_text() == "one\n"
    assert client.read_status()["state"] == "ok"


def test_a_living_stranger_with_the_recorded_pid_changes_nothing(
    start_service: Starter, make_project: Maker
) -> None:
    make_project()
    record = paths.service_lock().with_suffix(".json")
    record.write_text(json.dumps({"pid": os.getpid()}))
    paths.service_lock().touch()
    service = start_service()
    assert json.loads(record.read_text())["pid"] == service.process.pid


def test_stopped_by_a_signal_it_shows_as_not_answering_and_then_catches_up(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    service = start_service("reconcile_interval_s=2")
    service.send(signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(client.NotAnsweringError, match="running, not answering"):
        client.read_status()
    assert time.monotonic() - started < 2.5
    assert client.serving_pid() == service.process.pid
    for number in range(7000):
        save(project, f"{number:04}.md", str(number))
    service.send(signal.SIGCONT)
    wait_for_text(project.root / "OUT.md", "".join(f"{number}\n" for number in range(7000)), 30)
    status = service.wait_status(lambda status: status["queue"] == 0)
    assert status["watch"]["overflows"] >= 1
    service.wait_status(lambda status: status["state"] == "ok", 20)


def test_an_overflow_is_told_until_the_next_full_check(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    service = start_service()
    service.send(signal.SIGSTOP)
    for number in range(7000):
        save(project, f"{number:04}.md", str(number))
    service.send(signal.SIGCONT)
    status = service.wait_status(lambda status: status["watch"]["overflows"] >= 1, 30)
    assert status["state"] == "degraded"
    assert any("overflow" in reason for reason in status["reasons"])


def test_one_failing_project_is_told_and_stops_no_other(start_service: Starter, make_project: Maker) -> None:
    bad, good = make_project("bad"), make_project("good")
    (bad.root / "FAIL.md").touch()
    service = start_service()
    status = client.read_status()
    assert status["state"] == "degraded"
    assert project_of(status, bad)["state"] == "failed"
    assert "told to fail" in str(project_of(status, bad)["error"])
    assert "Traceback" not in json.dumps(status)
    assert "Traceback" in service.log.read_text()
    save(good, "a.md", "one")
    wait_for_text(good.root / "OUT.md", "one\n")
    (bad.root / "FAIL.md").unlink()
    service.wait_status(lambda status: status["state"] == "ok")


def test_a_project_that_cannot_start_is_told(start_service: Starter, make_project: Maker) -> None:
    bad, good = make_project("bad"), make_project("good")
    (bad.root / "UNUSABLE").touch()
    start_service()
    status = client.read_status()
    assert "can't be used" in str(project_of(status, bad)["error"])
    save(good, "a.md", "one")
    wait_for_text(good.root / "OUT.md", "one\n")


def test_while_git_is_at_work_it_waits_and_then_catches_up(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    (project.root / ".git").mkdir()
    lock = project.root / ".git" / "index.lock"
    service = start_service()
    wait_for_text(project.root / "OUT.md", "")
    lock.touch()
    save(project, "a.md", "one")
    service.wait_status(lambda status: project_of(status, project)["waiting"] == "index.lock")
    assert (project.root / "OUT.md").read_text() == ""
    lock.unlink()
    assert wait_for_text(project.root / "OUT.md", "one\n") < 2.0
    service.wait_status(lambda status: project_of(status, project)["waiting"] is None)


def recreated(store: Path) -> None:
    shutil.rmtree(store)
    (store / "entries").mkdir(parents=True)


def moved_away(store: Path) -> None:
    store.rename(store.with_name("away"))
    (store / "entries").mkdir(parents=True)


def swapped(store: Path) -> None:
    store.rename(store.with_name("away"))
    (store.with_name("other") / "entries").mkdir(parents=True)
    store.symlink_to(store.with_name("other"))


@pytest.mark.parametrize("swap", [recreated, moved_away, swapped])
def test_a_store_that_is_replaced_is_followed(
    start_service: Starter, make_project: Maker, swap: Callable[[Path], None]
) -> None:
    project = make_project()
    save(project, "a.md", "one")
    start_service()
    swap(project.store)
    wait_for_text(project.root / "OUT.md", "")
    save(project, "b.md", "two")
    wait_for_text(project.root / "OUT.md", "two\n")


def test_a_store_moved_away_and_back_is_followed(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    save(project, "a.md", "one")
    start_service()
    project.store.rename(project.root / "away")
    wait_for_text(project.root / "OUT.md", "")
    (project.root / "away").rename(project.store)
    wait_for_text(project.root / "OUT.md", "one\n")
    save(project, "b.md", "two")
    wait_for_text(project.root / "OUT.md", "one\ntwo\n")


def test_a_change_that_no_event_tells_is_found_by_the_full_check(
    start_service: Starter, make_project: Maker, sealed_home: Path
) -> None:
    project = make_project()
    outside = sealed_home / "outside"
    outside.write_text("one")
    os.link(outside, project.store / "linked.md")
    service = start_service("reconcile_interval_s=1")
    outside.write_text("two")
    wait_for_text(project.root / "OUT.md", "two\n")
    status = service.wait_status(lambda status: status["last_full_check"])
    assert status["watch"]["missed"] == 0


def test_sighup_reads_settings_again_and_survives_bad_ones(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    service = start_service()
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text('polling = true\nlog_level = "warning"\nno_such_key = 1\n')
    service.send(signal.SIGHUP)
    service.wait_status(lambda status: status["watch"]["backend"] == "polling")
    assert "no_such_key" in service.log.read_text()
    before = service.log.read_text()
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")
    assert service.log.read_text() == before, "an info line in spite of the new level"
    paths.config_file().write_text("polling = 7 7\n")
    service.send(signal.SIGHUP)
    status = service.wait_status(lambda status: status["state"] == "degraded")
    assert "config.toml" in status["reasons"][0]
    save(project, "a.md", "two")
    wait_for_text(project.root / "OUT.md", "two\n")


def limited(name: str, value: int) -> tuple[str, ...]:
    """Run what follows with a lowered inotify limit, in a user namespace of its own."""
    return ("unshare", "-Ur", "sh", "-c", f'echo {value} > /proc/sys/user/{name}; exec "$@"', "sh")


@pytest.mark.usefixtures("need_unshare")
@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("max_inotify_watches", 2, "polled"), ("max_inotify_instances", 0, "no file watcher")],
)
def test_exhausted_limits_are_told_and_polled_around(
    start_service: Starter, make_project: Maker, limit: str, value: int, reason: str
) -> None:
    project = make_project()
    start_service(prefix=limited(limit, value))
    status = client.read_status()
    assert status["state"] == "degraded"
    assert reason in " ".join(status["reasons"])
    assert status["watch"]["polled"] > 0
    save(project, "a.md", "one")
    wait_for_text(project.root / "OUT.md", "one\n")


def test_the_manager_is_told_that_the_loop_lives_until_it_hangs(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    service = start_service(env={"WATCHDOG_USEC": "1000000"})
    service.wait_told("WATCHDOG=1")
    (project.root / "HANG.md").touch()
    service.told.clear()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        service.manager.settimeout(1.5)
        try:
            service.manager.recv(4096)
        except TimeoutError:
            break
    else:
        pytest.fail("a hung loop went on telling that it lives")
    assert client.read_status()["loop"]["beat_age_s"] > 1


def test_the_socket_is_the_users_alone(start_service: Starter) -> None:
    start_service()
    assert stat.S_IMODE(paths.status_socket().lstat().st_mode) == 0o600
    assert stat.S_IMODE(paths.status_socket().parent.lstat().st_mode) == 0o700


def test_curl_can_ask(start_service: Starter, make_project: Maker) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    make_project()
    start_service()
    done = subprocess.run(
        ["curl", "-sf", "--unix-socket", str(paths.status_socket()), "http://localhost/v1/health"],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"state": "ok", "reasons": []}


def test_idle_it_does_nearly_nothing(start_service: Starter, make_project: Maker) -> None:
    for number in range(5):
        make_project(f"p{number}")
    service = start_service()
    time.sleep(0.5)
    before = cpu_seconds(service)
    time.sleep(3)
    assert cpu_seconds(service) - before <= 0.03


def cpu_seconds(service: Service) -> float:
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_killed_again_and_again_while_facts_are_saved_it_ends_right(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    for start in range(0, 60, 10):
        service = start_service()
        for number in range(start, start + 10):
            save(project, f"{number:02}.md", str(number))
        service.process.kill()
        service.process.wait()
    start_service()
    assert (project.root / "OUT.md").read_text() == "".join(f"{number}\n" for number in range(60))
    assert client.read_status()["state"] == "ok"


def test_five_hundred_files_of_another_branch(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    git = ("git", "-C", str(project.root))
    for words in (("init", "-q", "-b", "one"), ("commit", "-q", "--allow-empty", "-m", "none")):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "switch", "-q", "-c", "two"], check=True)
    for number in range(500):
        save(project, f"{number:03}.md", str(number))
    subprocess.run([*git, "add", ".memory"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "many"], check=True)
    start_service()
    many = "".join(f"{number}\n" for number in range(500))
    assert (project.root / "OUT.md").read_text() == many
    for branch, text in (("one", ""), ("two", many), ("one", "")):
        subprocess.run([*git, "switch", "-q", branch], check=True)
        wait_for_text(project.root / "OUT.md", text)
    status = client.read_status()
    assert status["watch"]["missed"] == 0
