"""Files: what is read, what is refused, and that the bytes of others survive whatever happens."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, ConflictError, LockTimeoutError, RefusedError
from agent_bridge.files import beside, inplace, kernel

ORIGINAL = b"# Ours and theirs\r\n\xef\xbb\xbfodd bytes \xff\x00, no final newline"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(ORIGINAL)
    return path


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    return tmp_path / "keep"


@pytest.fixture(params=["exchange", "rename"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test that asks for it runs as on Linux and as on a system that can't exchange two names."""
    if request.param == "rename":
        monkeypatch.setattr(kernel, "_renameat2_call", lambda: None)
    return str(request.param)


def leftovers(directory: Path) -> list[str]:
    return [name for name in names(directory) if files.is_temporary(name)]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# Reading


def test_an_image_tells_all_that_must_stay_true(target: Path) -> None:
    target.chmod(0o640)
    image = files.read_image(target)
    info = target.stat()
    assert image == files.FileImage(
        target, target, ORIGINAL, 0o640, 1, (info.st_dev, info.st_ino), existed=True
    )


def test_a_missing_file_is_an_empty_image(tmp_path: Path) -> None:
    image = files.read_image(tmp_path / "no/such/file")
    assert (image.existed, image.data, image.real) == (False, b"", tmp_path / "no/such/file")


def test_symlinks_are_followed_to_the_real_file(target: Path, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    (tmp_path / "again.md").symlink_to(tmp_path / "CLAUDE.md")
    image = files.read_image(tmp_path / "again.md", within=tmp_path)
    assert (image.data, image.real) == (ORIGINAL, target)


@pytest.mark.parametrize("kind", ["dangling", "loop", "directory", "fifo", "socket", "device", "large"])
def test_what_is_no_file_is_refused_without_being_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    if kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to("y.md")
        (tmp_path / "y.md").symlink_to("x.md")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)  # opening it would block for ever
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            descriptor = os.open(tmp_path, os.O_RDONLY)
            bound.bind(f"/proc/self/fd/{descriptor}/x.md")
            os.close(descriptor)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.write_bytes(b"x" * 101)
    with pytest.raises(RefusedError) as caught:
        files.read_image(path, limit=100)
    assert caught.value.path == str(path)
    assert not isinstance(caught.value, ConflictError)


@pytest.mark.parametrize("link", ["file", "directory", "missing"])
def test_a_path_that_leads_out_is_refused(link: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("")
    path = inside / "x"
    if link == "file":
        path.symlink_to("../out/secret")
    else:
        path.symlink_to("../out")
        path /= "secret" if link == "directory" else "new"
    with pytest.raises(RefusedError, match="leads out"):
        files.read_image(path, within=inside)
    assert files.read_image(path).existed is (link != "missing")


# Replacing


def test_same_bytes_write_nothing(target: Path, keep: Path) -> None:
    before = target.stat()
    assert files.replace(files.read_image(target), ORIGINAL, keep_dir=keep) is False
    after = target.stat()
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
    assert not keep.exists()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o4755])
def test_mode_is_kept(mode: int, target: Path, keep: Path, way: str) -> None:
    target.chmod(mode)
    old_umask = os.umask(0o077)
    try:
        assert files.replace(files.read_image(target), b"new", keep_dir=keep) is True
    finally:
        os.umask(old_umask)
    assert (target.read_bytes(), target.stat().st_mode & 0o7777) == (b"new", mode)
    assert not leftovers(target.parent)


def test_extended_attributes_are_kept(target: Path, keep: Path) -> None:
    try:
        os.setxattr(target, "user.note", b"theirs")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    files.replace(files.read_image(target), b"new", keep_dir=keep)
    assert os.getxattr(target, "user.note") == b"theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept_by_root(target: Path, keep: Path, way: str) -> None:
    os.chown(target, 12345, 23456)
    files.replace(files.read_image(target), b"new", keep_dir=keep)
    assert (target.stat().st_uid, target.stat().st_gid, target.read_bytes()) == (12345, 23456, b"new")


def test_a_symlink_stays_one(target: Path, keep: Path, tmp_path: Path, way: str) -> None:
    link = tmp_path / "CLAUDE.md"
    link.symlink_to("AGENTS.md")
    files.replace(files.read_image(link), b"new", keep_dir=keep)
    assert (link.readlink(), target.read_bytes()) == (Path("AGENTS.md"), b"new")


@pytest.mark.parametrize("new", [b"", b"short", ORIGINAL + b" and more" * 1000, ORIGINAL[::-1]])
def test_a_file_with_several_names_keeps_them(new: bytes, target: Path, keep: Path) -> None:
    other = target.parent / "other.md"
    other.hardlink_to(target)
    inode = target.stat().st_ino
    files.replace(files.read_image(target), new, keep_dir=keep)
    assert (target.read_bytes(), other.read_bytes(), target.stat().st_ino) == (new, new, inode)
    assert list(keep.iterdir()) == []


def test_a_new_file_gets_its_mode_and_its_directories(tmp_path: Path, keep: Path, way: str) -> None:
    path = tmp_path / ".claude/rules/agent-bridge.md"
    assert files.missing_directories(path) == (tmp_path / ".claude", tmp_path / ".claude/rules")
    old_umask = os.umask(0o077)
    try:
        assert files.replace(files.read_image(path), b"", keep_dir=keep) is True
    finally:
        os.umask(old_umask)
    assert path.read_bytes() == b""
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.parent.stat().st_mode & 0o777 == 0o755
    assert names(path.parent) == ["agent-bridge.md"]


@pytest.mark.parametrize("appeared", ["file", "dangling symlink", "directory"])
def test_what_appeared_in_the_meantime_is_not_overwritten(
    appeared: str, tmp_path: Path, keep: Path, way: str
) -> None:
    path = tmp_path / "new.md"
    image = files.read_image(path)
    if appeared == "file":
        path.write_bytes(b"theirs")
    elif appeared == "directory":
        path.mkdir()
    else:
        path.symlink_to("later")
    with pytest.raises(ConflictError):
        files.replace(image, b"ours", keep_dir=keep)
    assert path.is_symlink() or path.is_dir() or path.read_bytes() == b"theirs"
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("change", ["edited", "truncated", "removed", "now a symlink", "link moved"])
def test_what_changed_since_reading_is_not_overwritten(
    change: str, target: Path, keep: Path, tmp_path: Path, way: str
) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(target)
    image = files.read_image(link)
    other = tmp_path / "other.md"
    other.write_bytes(ORIGINAL)
    if change == "edited":
        target.write_bytes(ORIGINAL + b"!")
    elif change == "truncated":
        target.write_bytes(b"")
    elif change == "removed":
        target.unlink()
    elif change == "now a symlink":
        target.unlink()
        target.symlink_to("other.md")
    else:
        link.unlink()
        link.symlink_to(other)
    with pytest.raises(ConflictError):
        files.replace(image, b"ours", keep_dir=keep)
    assert other.read_bytes() == ORIGINAL
    assert not target.exists() or b"ours" not in target.read_bytes()
    assert not leftovers(tmp_path)


def test_a_directory_that_vanishes_is_a_change(target: Path, keep: Path, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    moved = target.rename(tmp_path / "dir/AGENTS.md")
    image = files.read_image(moved)
    (tmp_path / "dir").rename(tmp_path / "away")
    with pytest.raises(ConflictError):
        files.replace(image, b"ours", keep_dir=keep)
    assert (tmp_path / "away/AGENTS.md").read_bytes() == ORIGINAL
    assert not (tmp_path / "dir").exists()


def test_a_read_only_file_is_the_users_word(target: Path, keep: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(RefusedError, match="read-only"):
        files.replace(files.read_image(target), b"ours", keep_dir=keep)
    assert target.read_bytes() == ORIGINAL


def test_a_long_name_is_replaced_and_recovered(tmp_path: Path, keep: Path) -> None:
    path = tmp_path / ("é" * 120 + ".md")
    path.write_bytes(b"old")
    assert files.replace(files.read_image(path), b"new", keep_dir=keep) is True
    caught = beside.swap_name(path, b"old", b"new")
    caught.write_bytes(b"a save")
    files.recover(keep, [tmp_path])
    assert path.read_bytes() == b"a save"
    assert not leftovers(tmp_path)


# Saves of others at the worst moments


def test_a_save_between_the_last_look_and_the_exchange_stays(
    target: Path, keep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_exchange = kernel.exchange

    def exchange(first: Path, second: Path) -> bool:
        monkeypatch.setattr(kernel, "exchange", real_exchange)
        target.write_bytes(b"their save")
        return real_exchange(first, second)

    monkeypatch.setattr(kernel, "exchange", exchange)
    with pytest.raises(ConflictError):
        files.replace(files.read_image(target), b"ours", keep_dir=keep)
    assert target.read_bytes() == b"their save"
    assert not leftovers(target.parent)


@pytest.mark.parametrize("manner", ["in place", "by rename", "removed"])
def test_two_saves_around_an_exchange_are_both_kept(
    manner: str, target: Path, keep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_exchange, calls = kernel.exchange, []

    def exchange(first: Path, second: Path) -> bool:
        calls.append(first)
        if len(calls) == 1:
            target.write_bytes(b"their first save")
        elif len(calls) == 2 and manner == "in place":
            target.write_bytes(b"their second save")
        elif len(calls) == 2 and manner == "by rename":
            (target.parent / "tmp").write_bytes(b"their second save")
            (target.parent / "tmp").rename(target)
        elif len(calls) == 2:
            target.unlink()
        return real_exchange(first, second)

    monkeypatch.setattr(kernel, "exchange", exchange)
    with pytest.raises(ConflictError) as caught:
        files.replace(files.read_image(target), b"ours", keep_dir=keep)
    assert not leftovers(target.parent)
    if manner == "removed":
        assert target.read_bytes() == b"their first save"
    else:
        assert target.read_bytes() == b"their second save"
        [kept] = keep.iterdir()
        assert kept.read_bytes() == b"their first save"
        assert str(kept) in str(caught.value)


@pytest.mark.parametrize("links", [1, 2])
def test_a_file_that_is_being_written_is_left_alone(links: int, target: Path, keep: Path) -> None:
    if not kernel.leases_work(target.parent):
        pytest.skip("this file system has no leases")
    if links == 2:
        (target.parent / "other.md").hardlink_to(target)
    with target.open("ab") as editor:
        with pytest.raises(ConflictError):
            files.replace(files.read_image(target), b"ours", keep_dir=keep)
        editor.write(b" appended")
    assert target.read_bytes() == ORIGINAL + b" appended"
    assert not leftovers(target.parent)
    assert files.replace(files.read_image(target), b"ours", keep_dir=keep) is True


def test_a_hard_link_made_in_the_meantime_keeps_its_file(
    target: Path, keep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_exchange, other = kernel.exchange, target.parent / "other.md"

    def exchange(first: Path, second: Path) -> bool:
        if not other.exists():
            other.hardlink_to(target)
        return real_exchange(first, second)

    monkeypatch.setattr(kernel, "exchange", exchange)
    with pytest.raises(ConflictError):
        files.replace(files.read_image(target), b"ours", keep_dir=keep)
    assert files.replace(files.read_image(target), b"ours", keep_dir=keep) is True
    assert other.samefile(target)


# Deleting


def test_delete_removes_what_was_read(target: Path) -> None:
    image = files.read_image(target)
    assert files.delete(image) is True
    assert files.delete(image) is False
    assert names(target.parent) == []


def test_delete_spares_what_changed(target: Path, keep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = files.read_image(target)
    target.write_bytes(b"theirs")
    with pytest.raises(ConflictError):
        files.delete(image, keep_dir=keep)
    assert target.read_bytes() == b"theirs"


def test_delete_refuses_a_symlink(target: Path) -> None:
    link = target.parent / "link.md"
    link.symlink_to(target)
    with pytest.raises(RefusedError, match="symlink"):
        files.delete(files.read_image(link))
    assert target.exists()


def test_delete_spares_a_file_about_to_be_written(target: Path) -> None:
    if not kernel.leases_work(target.parent):
        pytest.skip("this file system has no leases")
    with target.open("ab") as editor:
        with pytest.raises(ConflictError):
            files.delete(files.read_image(target))
        editor.write(b"!")
    assert target.read_bytes() == ORIGINAL + b"!"


# Recovering: what can lie beside a target after a kill, and what must become of it


@pytest.mark.parametrize(
    ("at_target", "aside", "expected", "kept"),
    [
        (b"old", b"new", b"old", None),  # killed before the exchange
        (b"new", b"old", b"new", None),  # killed after it
        (b"new", b"a save", b"a save", None),  # ... and it had caught a save
        (b"later", b"a save", b"later", b"a save"),  # ... and the file was edited since
        (b"a save", b"new", b"a save", None),  # killed after swapping back
        (b"later", b"old", b"later", None),  # killed after the exchange, edited since
        (None, b"old", None, None),  # removed since
        (None, b"a save", None, b"a save"),
    ],
)
def test_recover_after_an_exchange(
    at_target: bytes | None,
    aside: bytes,
    expected: bytes | None,
    kept: bytes | None,
    tmp_path: Path,
    keep: Path,
) -> None:
    target = tmp_path / "AGENTS.md"
    if at_target is not None:
        target.write_bytes(at_target)
    beside.swap_name(target, b"old", b"new").write_bytes(aside)
    told = files.recover(keep, [tmp_path, tmp_path, tmp_path / "gone"])
    assert (target.read_bytes() if target.exists() else None) == expected
    assert [path.read_bytes() for path in keep.glob("*")] == ([] if kept is None else [kept])
    assert len(told) == (aside == b"a save")
    assert not leftovers(tmp_path)
    assert files.recover(keep, [tmp_path]) == []


@pytest.mark.parametrize(
    ("at_target", "aside", "expected", "kept"),
    [
        (None, b"old", b"old", None),
        (None, b"a save", b"a save", None),
        (b"anew", b"old", b"anew", None),
        (b"anew", b"a save", b"anew", b"a save"),
    ],
)
def test_recover_after_a_deletion(
    at_target: bytes | None, aside: bytes, expected: bytes, kept: bytes | None, tmp_path: Path, keep: Path
) -> None:
    target = tmp_path / "AGENTS.md"
    if at_target is not None:
        target.write_bytes(at_target)
    beside.swap_name(target, b"old", None).write_bytes(aside)
    files.recover(keep, [tmp_path])
    assert target.read_bytes() == expected
    assert [path.read_bytes() for path in keep.glob("*")] == ([] if kept is None else [kept])
    assert not leftovers(tmp_path)


def test_recover_removes_half_written_files_of_ours_and_nothing_else(tmp_path: Path, keep: Path) -> None:
    ours = beside.write_beside(tmp_path / "x.dotted.name.md", b"hal", mode=0o600, sync=False)
    theirs = [tmp_path / name for name in ("x.agent-bridge.tmp", ".x.tmp", ".agent-bridge", "x.md~")]
    for path in theirs:
        path.write_text("")
    link = tmp_path / ".link.agent-bridge.tmp"
    link.symlink_to(theirs[0])
    assert files.recover(keep, [tmp_path]) == []
    assert not ours.exists()
    assert all(path.exists() for path in theirs)
    assert link.is_symlink()


def interrupted(target: Path, after: bytes, current: bytes, keep: Path) -> Path:
    """As an in-place write leaves it that is killed when `target` holds `current`."""
    journal = inplace._record(target, target.read_bytes(), after, keep)
    target.write_bytes(current)
    return journal


@given(
    before=st.binary(max_size=60), after=st.binary(max_size=60), cut=st.integers(0, 120), shrink=st.booleans()
)
@settings(max_examples=200, deadline=None)
def test_a_torn_write_in_place_is_undone(
    before: bytes, after: bytes, cut: int, shrink: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("torn")
    target, keep = directory / "AGENTS.md", directory / "keep"
    target.write_bytes(before)
    # The states that `_overwrite` goes through: first the tail grows, then the head is overwritten, then cut.
    tail, head = after[len(before) :], after[: len(before)]
    if cut <= len(tail):
        torn = before + tail[:cut]
    else:
        done = head[: cut - len(tail)]
        torn = done + (before + tail)[len(done) :]
    interrupted(target, after, torn, keep)
    told = files.recover(keep, [directory])
    assert target.read_bytes() in (before, after)
    assert target.read_bytes() == before or told == []
    assert list(keep.iterdir()) == []


def test_an_edit_after_a_torn_write_is_not_undone(target: Path, keep: Path) -> None:
    interrupted(target, b"N" * len(ORIGINAL), b"repaired by hand", keep)
    [told] = files.recover(keep, [])
    [kept] = keep.iterdir()
    assert target.read_bytes() == b"repaired by hand"
    assert ORIGINAL in kept.read_bytes()
    assert str(kept) in told
    assert files.recover(keep, []) == []


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_a_torn_journal_belongs_to_an_untouched_file(cut: int, target: Path, keep: Path) -> None:
    journal = interrupted(target, b"new", ORIGINAL, keep)
    journal.write_bytes(journal.read_bytes()[:cut])
    assert files.recover(keep, []) == []
    assert target.read_bytes() == ORIGINAL
    assert not journal.exists()


# Files of our own, locks


def test_write_own_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "state/x.json"
    files.write_own(path, b"1")
    files.write_own(path, b"2", sync=False)
    assert path.read_bytes() == b"2"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert names(path.parent) == ["x.json"]


def test_write_own_says_what_is_wrong(target: Path) -> None:
    with pytest.raises(AgentBridgeError) as caught:
        files.write_own(target / "x.json", b"1")
    assert caught.value.path == str(target / "x.json")


def test_a_lock_that_is_held_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "deep/lock"
    with files.locked(path, timeout=1, purpose="project the facts"):
        with pytest.raises(LockTimeoutError) as caught, files.locked(path, timeout=0, purpose="wait"):
            pytest.fail("two holders")
        assert f"Process {os.getpid()} " in str(caught.value)
        assert "to project the facts" in str(caught.value)
        assert {it.name: stat.S_IMODE(it.stat().st_mode) for it in path.parent.iterdir()} == {
            "lock": 0o600,
            "lock.holder": 0o600,
        }
    with files.locked(path, timeout=0, purpose="again"):
        pass


@pytest.mark.parametrize("holder", [b"", b"[]", b"{", b'{"pid": 1}', b'{"pid": 1, "since": 1e300}'])
def test_what_stands_in_the_holder_file_never_matters(holder: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    (tmp_path / "lock.holder").write_bytes(holder)
    with files.locked(path, timeout=0, purpose="hold"):
        (tmp_path / "lock.holder").write_bytes(holder)
        with (
            pytest.raises(LockTimeoutError, match="hasn't said"),
            files.locked(path, timeout=0, purpose="wait"),
        ):
            pytest.fail("two holders")


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.locked(tmp_path / "lock", timeout=0, purpose="fail"):
        raise ZeroDivisionError
    with files.locked(tmp_path / "lock", timeout=0, purpose="again"):
        pass
