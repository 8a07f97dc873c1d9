"""Where the registry is: files that only their owner could have written, or none at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_bridge.client.address import Address, find
from agent_bridge.errors import AgentBridgeError, NotRunningError, RefusedError


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "registry.json").write_text(json.dumps({"url": "http://127.0.0.1:4999", "pid": 1}))
    token = tmp_path / "registry.token"
    token.write_text("secret-token\n")
    token.chmod(0o600)
    return tmp_path


def found(state: Path) -> Address:
    return find({"HOME": "/nowhere", "AGENT_BRIDGE_STATE_DIR": str(state)})


def test_the_address_and_its_token(state: Path) -> None:
    address = found(state)
    assert address == Address("http://127.0.0.1:4999", "secret-token")
    assert (address.host, address.port) == ("127.0.0.1", 4999)
    assert address.socket_url == "ws://127.0.0.1:4999/ws?events=none"
    assert "secret" not in repr(address)


@pytest.mark.parametrize(
    ("url", "host"),
    [("http://localhost:5", "localhost"), ("http://[::1]:5", "::1"), ("http://127.0.0.1:5/", "127.0.0.1")],
)
def test_every_way_to_write_the_loopback(state: Path, url: str, host: str) -> None:
    (state / "registry.json").write_text(json.dumps({"url": url}))
    assert (found(state).host, found(state).port) == (host, 5)
    assert "/ws?" in found(state).socket_url


def test_without_an_address_it_is_not_running_and_the_remedy_is_named(state: Path) -> None:
    (state / "registry.json").unlink()
    with pytest.raises(NotRunningError) as caught:
        found(state)
    assert "agent-bridge up" in caught.value.remedy
    assert caught.value.exit_code == 3


def test_a_token_that_is_gone_isnt_a_registry_that_isnt_running(state: Path) -> None:
    (state / "registry.token").unlink()
    with pytest.raises(AgentBridgeError, match="token is gone") as caught:
        found(state)
    assert not isinstance(caught.value, NotRunningError)
    assert "agent-bridge service restart" in caught.value.remedy


def test_without_a_state_directory_it_is_not_running(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError):
        found(tmp_path / "none")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666])
def test_a_token_that_others_could_use_is_refused(state: Path, mode: int) -> None:
    (state / "registry.token").chmod(mode)
    with pytest.raises(RefusedError) as caught:
        found(state)
    assert str(state / "registry.token") in str(caught.value)
    assert f"{mode:04o}" in caught.value.detail


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_address_that_others_could_write_is_refused(state: Path, mode: int) -> None:
    (state / "registry.json").chmod(mode)
    with pytest.raises(RefusedError):
        found(state)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["registry.json", "registry.token"])
def test_somebody_elses_file_is_refused(state: Path, name: str) -> None:
    os.chown(state / name, 12345, 12345)
    with pytest.raises(RefusedError, match="isn't a file of yours"):
        found(state)


@pytest.mark.parametrize("name", ["registry.json", "registry.token"])
def test_a_symlink_is_not_followed(state: Path, name: str) -> None:
    (state / name).rename(state / "elsewhere")
    (state / name).symlink_to(state / "elsewhere")
    with pytest.raises(AgentBridgeError) as caught:
        found(state)
    assert caught.value.path == str(state / name)


@pytest.mark.parametrize("name", ["registry.json", "registry.token"])
def test_a_fifo_is_not_waited_for(state: Path, name: str) -> None:
    (state / name).unlink()
    os.mkfifo(state / name, 0o600)
    with pytest.raises(RefusedError):
        found(state)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"url": 7}',
        '{"url": "http://example.invalid:4999"}',
        '{"url": "http://127.0.0.1.example.invalid:4999"}',
        '{"url": "http://user@10.0.0.1:4999"}',
        '{"url": "https://127.0.0.1:4999"}',
        '{"url": "http://127.0.0.1"}',
        '{"url": "http://127.0.0.1:99999"}',
        '{"url": "http://127.0.0.1:0"}',
        '{"url": "file:///etc/passwd"}',
        "[" * 50_000,
    ],
)
def test_an_address_that_is_not_on_the_loopback_is_not_used(state: Path, text: str) -> None:
    (state / "registry.json").write_text(text)
    with pytest.raises(AgentBridgeError) as caught:
        found(state)
    assert caught.value.path == str(state / "registry.json")
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["", "\n", "two words", "line\nbreak", "bell\x07", "ümlaut", "x" * 600])
def test_a_token_that_no_header_can_carry_is_not_used(state: Path, text: str) -> None:
    (state / "registry.token").write_text(text)
    with pytest.raises(AgentBridgeError, match="token can't be used"):
        found(state)
