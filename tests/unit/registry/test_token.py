"""The token file: made whole and private, kept, read again, refused when others could have it."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from agent_bridge.registry.token import TokenError, TokenFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "registry.token"


def test_it_is_made_for_this_user_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        token = TokenFile(path).current()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.read_bytes() == token + b"\n"
    assert len(token) >= 43
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_it_is_kept(path: Path) -> None:
    assert TokenFile(path).current() == TokenFile(path).current()


def test_many_that_make_it_at_once_agree(path: Path) -> None:
    found: list[bytes] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        found.append(TokenFile(path).current())

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_replaced_one_counts_at_once(path: Path) -> None:
    file = TokenFile(path)
    before = file.current()
    new = path.with_name("new")
    new.touch(0o600)
    new.write_bytes(b"x" * 40)
    new.replace(path)
    assert file.current() == b"x" * 40 != before


def test_one_that_is_rewritten_in_place_counts_at_once(path: Path) -> None:
    file = TokenFile(path)
    file.current()
    path.write_bytes(b"y" * 43 + b"\n")
    assert file.current() == b"y" * 43


def test_a_deleted_one_is_made_anew(path: Path) -> None:
    file = TokenFile(path)
    before = file.current()
    path.unlink()
    assert file.current() != before
    assert path.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o777])
def test_it_is_refused_while_others_may_use_it(path: Path, mode: int) -> None:
    file = TokenFile(path)
    token = file.current()
    path.chmod(mode)
    with pytest.raises(TokenError) as refused:
        file.current()
    assert f"{mode:04o}" in refused.value.sentence()
    assert str(path) in refused.value.sentence()
    assert token.decode() not in refused.value.sentence()
    assert file.problem() == refused.value.sentence()
    path.chmod(0o600)
    assert file.current() == token
    assert file.problem() is None


def test_a_symlink_is_refused(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch(0o600)
    elsewhere.write_bytes(b"z" * 43)
    path.symlink_to(elsewhere)
    with pytest.raises(TokenError, match="symlink"):
        TokenFile(path).current()
    assert elsewhere.read_bytes() == b"z" * 43


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_refused(path: Path) -> None:
    TokenFile(path).current()
    os.chown(path, 65_534, -1)
    with pytest.raises(TokenError, match="another user"):
        TokenFile(path).current()


def test_what_is_no_file_is_refused_without_waiting(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path, 0o600)
    with pytest.raises(TokenError, match="regular file"):
        TokenFile(path).current()
    path.unlink()
    path.mkdir(mode=0o700)
    with pytest.raises(TokenError):
        TokenFile(path).current()


@pytest.mark.parametrize("text", [b"", b"short", b"x" * 600, b"two words" * 6, b"\xff" * 40])
def test_what_holds_no_token_is_refused(path: Path, text: bytes) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    path.write_bytes(text)
    with pytest.raises(TokenError, match="one word"):
        TokenFile(path).current()


def test_a_place_where_none_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(TokenError, match="state"):
        TokenFile(tmp_path / "state" / "registry.token").current()


def test_a_file_system_without_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    token = TokenFile(path).current()
    assert TokenFile(path).current() == token
    assert [one.name for one in path.parent.iterdir()] == [path.name]
