"""The record of private facts: on disk, among processes, and when it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.memory.privacy import PrivacyRecord

SECRETIVE = parse_fact("me.md", b"---\nid: me\nprivate: true\n---\nI live by the sea.")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.mark.parametrize("twin", [
    parse_fact("me.md", b"Another text"),
    parse_fact("other.md", b"---\nid: me\nprivate: false\n---\nAnother text"),
    parse_fact("other.md", b"I live  by\r\nthe sea.\n"),
])  # fmt: skip
def test_path_id_and_text_each_stick(state: Path, twin: Fact) -> None:
    assert not PrivacyRecord(state).current().hold(twin)
    PrivacyRecord(state).add([SECRETIVE])
    assert PrivacyRecord(state).current().hold(twin)
    PrivacyRecord(state).release(SECRETIVE)
    assert not PrivacyRecord(state).current().hold(twin)


def test_the_record_holds_no_text_and_is_for_the_owner_alone(state: Path) -> None:
    record = PrivacyRecord(state)
    record.add([SECRETIVE])
    assert "sea" not in record.path.read_text()
    assert record.path.stat().st_mode & 0o777 == 0o600


def test_two_records_of_one_file_see_each_other(state: Path) -> None:
    one, other = PrivacyRecord(state), PrivacyRecord(state)
    other_fact = parse_fact("b.md", b"b")
    one.add([SECRETIVE])
    other.add([other_fact])
    assert one.current().hold(other_fact)
    assert other.current().hold(SECRETIVE)


@pytest.mark.parametrize("broken", [
    b"", b"{", b"[]", b"\xff",
    b'{"version": 2, "paths": [], "ids": [], "texts": []}',
    b'{"version": 1, "paths": [1], "ids": [], "texts": []}',
])  # fmt: skip
def test_a_broken_record_makes_everything_private_and_is_left_alone(state: Path, broken: bytes) -> None:
    record = PrivacyRecord(state)
    record.path.write_bytes(broken)
    assert record.current().hold(parse_fact("any.md", b"any"))
    record.add([SECRETIVE])
    assert record.path.read_bytes() == broken
    with pytest.raises(AgentBridgeError, match="can't be read"):
        record.release(SECRETIVE)
    record.path.unlink()
    assert not record.current().hold(parse_fact("any.md", b"any"))
    assert record.current().hold(SECRETIVE)


def test_without_a_state_directory_nothing_is_created_and_nothing_forgotten(tmp_path: Path) -> None:
    record = PrivacyRecord(tmp_path / "state")
    assert record.add([SECRETIVE]).hold(SECRETIVE)
    assert record.current().hold(SECRETIVE)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "state").mkdir()
    record.add([])
    assert PrivacyRecord(tmp_path / "state").current().hold(SECRETIVE)
