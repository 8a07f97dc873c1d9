"""Files under real conditions: kills at any moment, other processes that save, full disks, mounts, rights."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, ConflictError, LockTimeoutError, RefusedError
from agent_bridge.files import inplace, kernel

_SIZES = {b"a": 0, b"b": 10, b"c": 5000, b"d": 70_000, b"e": 40_000, b"f": 1, b"g": 300_000}
VERSIONS = [letter * size for letter, size in _SIZES.items()]
"""Whole versions of one file. A torn one is none of them: each is of one letter and of its own length."""

KILLS = 100
_NO_LOCK = contextlib.nullcontext()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@contextlib.contextmanager
def child(work: Callable[[], None]) -> Iterator[int]:
    """Run `work` in a forked process; what still runs at the end is killed."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def succeeds_in_child(work: Callable[[], None]) -> bool:
    with child(work) as pid:
        return os.waitpid(pid, 0)[1] == 0


def as_ordinary_user(work: Callable[[], None]) -> bool:
    """Whether `work` succeeds as somebody for whom rights count."""

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work()

    return succeeds_in_child(dropped)


# Kills


@pytest.mark.parametrize("way", ["exchange", "rename", "in place", "create and delete"])
def test_a_killed_replacement_leaves_a_whole_version(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "rename":
        monkeypatch.setattr(kernel, "_renameat2_call", lambda: None)
    work, keep = tmp_path / "work", tmp_path / "keep"
    work.mkdir()
    target = work / "AGENTS.md"
    target.write_bytes(VERSIONS[1])
    expected_names = {"AGENTS.md"}
    if way == "in place":
        (work / "other.md").hardlink_to(target)
        expected_names.add("other.md")
    picked = random.Random(7)

    def replace_for_ever() -> None:
        choose = random.Random(os.getpid())
        while True:
            image = files.read_image(target)
            if way == "create and delete" and image.existed:
                files.delete(image, keep_dir=keep)
            else:
                files.replace(image, choose.choice(VERSIONS), keep_dir=keep, sync=False)

    interrupted = 0
    for _ in range(KILLS):
        with child(replace_for_ever) as pid:
            time.sleep(picked.uniform(0.001, 0.02))  # the moment of the kill, not a wait
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        interrupted += set(names(work)) != expected_names or (keep.exists() and bool(names(keep)))
        files.recover(keep, [work])
        if way != "create and delete" or target.exists():
            assert target.read_bytes() in VERSIONS
        assert set(names(work)) <= expected_names
        assert not keep.exists() or names(keep) == []
    assert interrupted > 0, "no kill hit a write: this test has shown nothing"


# Saves of others


def save(target: Path, manner: str, text: bytes) -> None:
    if manner == "append":
        with target.open("ab", buffering=0) as file:
            file.write(text)
    elif manner == "rename over":
        target.with_name("editor.tmp").write_bytes(text)
        target.with_name("editor.tmp").replace(target)
    elif manner == "sed -i":
        subprocess.run(["sed", "-i", f"1c {text.decode().strip()}", target], check=True)
    else:
        with target.open("wb", buffering=0) as file:
            file.write(text)


def project_until(stop: Path, target: Path, keep: Path) -> None:
    """Rewrite our last line, and keep all others, as fast as possible."""
    count = 0
    while not stop.exists():
        count += 1
        image = files.read_image(target)
        lines = image.data.splitlines(keepends=True)
        theirs = b"".join(line for line in lines if not line.startswith(b"ours"))
        with contextlib.suppress(ConflictError):
            files.replace(image, theirs + b"ours %d\n" % count, keep_dir=keep, sync=False)


def lines_of(target: Path, start: bytes) -> list[bytes]:
    return [line for line in files.read_image(target).data.splitlines() if line.startswith(start)]


@pytest.mark.parametrize(
    ("manner", "saves"), [("truncate and write", 200), ("rename over", 200), ("append", 200), ("sed -i", 50)]
)
def test_no_save_of_an_editor_is_lost(manner: str, saves: int, tmp_path: Path) -> None:
    if sys.platform != "linux" or not kernel.leases_work(tmp_path):
        pytest.skip("the guarantee needs exchange and leases")
    target, stop = tmp_path / "AGENTS.md", tmp_path / "stop"
    target.write_bytes(b"start\n")
    with child(lambda: project_until(stop, target, tmp_path / "keep")) as pid:
        for number in range(saves):
            save(target, manner, b"user %d\n" % number)
            end = time.monotonic() + 10
            while not (lines_of(target, b"user %d" % number) and lines_of(target, b"ours")):
                assert time.monotonic() < end, f"save {number} is lost: {target.read_bytes()[-200:]!r}"
        stop.touch()
        assert os.waitpid(pid, 0)[1] == 0
    if manner == "append":
        # A line appended while our bytes had the name doesn't know the one before it: then that one is kept.
        lines = lines_of(target, b"user")
        kept = {line for path in (tmp_path / "keep").glob("*") for line in lines_of(path, b"user")}
        assert {*lines, *kept} == {b"user %d" % number for number in range(saves)}
        assert len(lines) > saves * 0.9
    assert not [name for name in names(tmp_path) if files.is_temporary(name)]


def test_a_save_caught_by_a_kill_comes_back(tmp_path: Path) -> None:
    """An editor saves and we are killed at about the same moment: `recover` finds the save, or it stands."""
    work, keep, stop = tmp_path / "work", tmp_path / "keep", tmp_path / "stop"
    work.mkdir()
    target = work / "AGENTS.md"
    target.write_bytes(b"start\n")
    picked, repaired = random.Random(11), 0
    for number in range(KILLS):
        with child(lambda: project_until(stop, target, keep)) as pid:
            time.sleep(picked.uniform(0.002, 0.01))  # the moment of the save, not a wait
            save(target, picked.choice(["rename over", "truncate and write"]), b"user %d\n" % number)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        repaired += bool(files.recover(keep, [work]))
        kept = {line for path in keep.glob("*.kept") for line in lines_of(path, b"user")}
        assert b"user %d" % number in {*lines_of(target, b"user"), *kept}
        assert names(work) == ["AGENTS.md"]
    print(f"{repaired} saves had to be put back")


@pytest.mark.parametrize("lock", [True, False], ids=["with the lock", "without"])
def test_two_of_us_never_lose_each_others_lines(lock: bool, tmp_path: Path) -> None:
    """Without the lock one may build on what the other takes back; what falls out then is kept."""
    target, keep = tmp_path / "work/log.md", tmp_path / "keep"
    lines_each = 100

    def add_line(text: str) -> bool:
        image = files.read_image(target)
        try:
            return files.replace(image, image.data + text.encode(), keep_dir=keep, sync=False)
        except ConflictError:
            return False

    def add_lines(who: str) -> None:
        for number in range(lines_each):
            added = False
            while not added:
                with files.locked(tmp_path / "lock", timeout=60, purpose="add") if lock else _NO_LOCK:
                    added = add_line(f"{who} {number}\n")

    with child(lambda: add_lines("a")) as first, child(lambda: add_lines("b")) as second:
        assert os.waitpid(first, 0)[1] == 0
        assert os.waitpid(second, 0)[1] == 0
    wanted = [f"{who} {number}" for who in "ab" for number in range(lines_each)]
    lines = target.read_text().splitlines()
    if lock:
        assert sorted(lines) == sorted(wanted)
        assert not keep.exists()
    else:
        kept = [line for path in keep.glob("*") for line in path.read_text().splitlines()]
        assert set(wanted) <= {*lines, *kept}
    assert names(target.parent) == ["log.md"]


def test_a_lock_is_freed_by_its_holders_death(tmp_path: Path) -> None:
    path, ready = tmp_path / "lock", tmp_path / "ready"

    def hold() -> None:
        with files.locked(path, timeout=5, purpose="hold it"):
            ready.touch()
            signal.pause()

    with child(hold) as pid:
        while not ready.exists():
            time.sleep(0.001)
        with pytest.raises(LockTimeoutError, match=f"Process {pid} "):
            files.locked(path, timeout=0.05, purpose="wait").__enter__()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with files.locked(path, timeout=0, purpose="take over"):
            assert (tmp_path / "lock.holder").read_text().startswith(f'{{"pid": {os.getpid()},')


# Rights, as an ordinary user


@pytest.fixture
def open_tmp(short_tmp: Path) -> Path:
    """A directory that an ordinary user reaches and owns when the tests run as root."""
    place = short_tmp / "place"
    place.mkdir()
    if os.geteuid() == 0:
        short_tmp.chmod(0o755)
        os.chown(place, 65534, 65534)
    return place


def refuses(title: str, work: Callable[[], object]) -> bool:
    try:
        work()
    except RefusedError as error:
        return title in error.title
    return False


def test_an_unwritable_directory_is_told(open_tmp: Path) -> None:
    def work() -> None:
        target = open_tmp / "AGENTS.md"
        target.write_bytes(b"theirs")
        image, missing = files.read_image(target), files.read_image(open_tmp / "new.md")
        open_tmp.chmod(0o555)
        told = "The directory of this file can't be written"
        assert refuses(told, lambda: files.replace(image, b"ours", keep_dir=open_tmp / "keep"))
        assert refuses(told, lambda: files.replace(missing, b"ours", keep_dir=open_tmp / "keep"))
        assert refuses(told, lambda: files.delete(image))
        assert names(open_tmp) == ["AGENTS.md"]
        assert target.read_bytes() == b"theirs"

    assert as_ordinary_user(work)


def test_what_cannot_be_read_is_not_taken_for_missing(open_tmp: Path) -> None:
    def work() -> None:
        (open_tmp / "dir").mkdir()
        (open_tmp / "dir/x.md").write_bytes(b"theirs")
        (open_tmp / "dir/x.md").chmod(0)
        assert refuses("lack of rights", lambda: files.read_image(open_tmp / "dir/x.md"))
        (open_tmp / "dir").chmod(0)
        assert refuses("lack of rights", lambda: files.read_image(open_tmp / "dir/x.md"))

    assert as_ordinary_user(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_a_file_of_another_user_keeps_its_owner(open_tmp: Path) -> None:
    target = open_tmp / "AGENTS.md"
    target.write_bytes(b"theirs")
    target.chmod(0o666)

    def work() -> None:
        files.replace(files.read_image(target), b"ours", keep_dir=open_tmp / "keep")

    assert as_ordinary_user(work)
    assert (target.read_bytes(), target.stat().st_uid) == (b"ours", 0)


# No room


def fails_whole(image: files.FileImage, data: bytes, keep: Path) -> None:
    """`replace` must fail with nothing changed and nothing left behind."""
    keep.mkdir(exist_ok=True)
    before = names(image.real.parent)
    with pytest.raises(AgentBridgeError):
        files.replace(image, data, keep_dir=keep)
    assert names(image.real.parent) == before
    assert not image.existed or image.real.read_bytes() == image.data
    assert names(keep) == []


@pytest.mark.parametrize("kind", ["exchange", "in place", "new"])
def test_a_limit_reached_in_the_middle_changes_nothing(kind: str, tmp_path: Path) -> None:
    target, keep = tmp_path / "dir/AGENTS.md", tmp_path / "keep"
    if kind != "new":
        target.parent.mkdir()
        target.write_bytes(b"theirs")
    if kind == "in place":
        (tmp_path / "other.md").hardlink_to(target)

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # The journal has to fit, or in-place writing would fail before it begins.
        limit = 20_000 if kind != "in place" else 100_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        image = files.read_image(target)
        if kind == "in place":
            inplace._record = lambda *_: _journal(keep)
        with pytest.raises(AgentBridgeError):
            files.replace(image, b"x" * 150_000, keep_dir=keep)

    def _journal(keep: Path) -> Path:
        keep.mkdir()
        (keep / "journal").touch()
        return keep / "journal"

    assert succeeds_in_child(work)
    assert (target.read_bytes() if target.exists() else None) == (None if kind == "new" else b"theirs")
    assert target.parent.exists() is (kind != "new")
    assert kind == "new" or names(target.parent) == ["AGENTS.md"]
    assert not keep.exists() or names(keep) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"the kernel refuses mount: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("kind", ["exchange", "in place", "new"])
def test_a_full_disk_changes_nothing(kind: str, small_disk: Path, tmp_path: Path) -> None:
    target, keep = small_disk / "AGENTS.md", tmp_path / "keep"
    if kind != "new":
        target.write_bytes(b"t" * 100_000)
    if kind == "in place":
        (small_disk / "other.md").hardlink_to(target)
    image = files.read_image(target)
    fails_whole(image, b"x" * 600_000, keep)
    assert files.replace(image, b"x" * 200_000, keep_dir=keep) is True


def test_a_disk_too_full_for_the_journal_changes_nothing(small_disk: Path) -> None:
    target = small_disk / "AGENTS.md"
    target.write_bytes(b"t" * 300_000)
    (small_disk / "other.md").hardlink_to(target)
    fails_whole(files.read_image(target), b"x" * 100, small_disk / "keep")


# Mounts


def test_a_file_that_is_a_mount_point_is_written_in_place(tmp_path: Path) -> None:
    source, target = tmp_path / "source.md", tmp_path / "AGENTS.md"
    source.write_bytes(b"theirs")
    target.touch()
    done = subprocess.run(["mount", "--bind", source, target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"the kernel refuses mount: {done.stderr.strip()}")
    try:
        assert files.replace(files.read_image(target), b"ours", keep_dir=tmp_path / "keep") is True
        assert target.read_bytes() == b"ours"
    finally:
        subprocess.run(["umount", target], check=True)
    assert source.read_bytes() == b"ours"
    assert names(tmp_path) == ["AGENTS.md", "keep", "source.md"]


def test_a_target_behind_a_link_to_another_mount_is_replaced_there(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "real.md").write_bytes(b"theirs")
    link = tmp_path / "AGENTS.md"
    link.symlink_to(small_disk / "real.md")
    assert files.replace(files.read_image(link), b"ours", keep_dir=tmp_path / "keep") is True
    assert link.is_symlink()
    assert (small_disk / "real.md").read_bytes() == b"ours"
    assert names(small_disk) == ["real.md"]


def test_an_overlay_mount_behaves_like_any_other(small_disk: Path) -> None:
    """Containers keep repositories on overlays; a false "somebody is writing" would block them for ever."""
    for name in ("lower", "upper", "work", "merged"):
        (small_disk / name).mkdir()
    (small_disk / "lower/AGENTS.md").write_bytes(b"theirs")
    merged = small_disk / "merged"
    options = ",".join(f"{name}dir={small_disk / name}" for name in ("lower", "upper", "work"))
    done = subprocess.run(
        ["mount", "-t", "overlay", "-o", options, "overlay", merged],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"the kernel refuses an overlay: {done.stderr.strip()}")
    try:
        target, keep = merged / "AGENTS.md", small_disk / "keep"
        for data in (b"ours", b"ours again"):
            assert files.replace(files.read_image(target), data, keep_dir=keep) is True
        assert files.replace(files.read_image(merged / "new.md"), b"ours", keep_dir=keep) is True
        assert (target.read_bytes(), names(merged)) == (b"ours again", ["AGENTS.md", "new.md"])
    finally:
        subprocess.run(["umount", merged], check=True)


@pytest.mark.skipif(shutil.which("mkfs.vfat") is None, reason="mkfs.vfat isn't installed")
def test_a_file_system_without_links_or_exchange(tmp_path: Path) -> None:
    disk, place = tmp_path / "disk", tmp_path / "fat"
    place.mkdir()
    with disk.open("wb") as file:
        file.truncate(1 << 20)
    subprocess.run(["mkfs.vfat", disk], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", disk, place], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"the kernel refuses mount: {done.stderr.strip()}")
    try:
        target = place / "AGENTS.md"
        for data in (b"first", b"second"):
            assert files.replace(files.read_image(target), data, keep_dir=tmp_path / "keep") is True
        assert (target.read_bytes(), names(place)) == (b"second", ["AGENTS.md"])
    finally:
        subprocess.run(["umount", place], check=True)
