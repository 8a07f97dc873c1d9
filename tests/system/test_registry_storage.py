"""What happens to the database under the running service: typed errors, told, over without a restart."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_bridge import paths
from agent_bridge.channel.errors import DiskFullError, StorageError
from agent_bridge.channel.model import Draft, Kind, Message
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from integration.daemon.conftest import Service
from system.home import Bridge, until


@pytest.fixture
def bridge(sealed_home: Path, short_tmp: Path) -> Iterator[Bridge]:
    yield from Bridge.made(sealed_home, short_tmp)


@pytest.fixture
def database(sealed_home: Path) -> Path:
    return paths.channel_database()


def send(name: str, content: str = "hello") -> Message:
    with Registry(find()) as registry:
        return registry.send(
            Draft(
                identity="global",
                from_agent_id="a",
                to_agent_id="b",
                kind=Kind.CHAT,
                content=content,
                message_id=name,
            )
        ).message


def inbox() -> list[str]:
    with Registry(find()) as registry:
        return [message.message_id for message in registry.inbox("b", limit=200).items]


def epoch() -> str:
    with Registry(find()) as registry:
        return registry.events(0).epoch


def told(service: Service, text: str) -> dict[str, Any]:
    """The status, once the registry's reasons say `text`; they are the service's reasons too."""
    status = service.wait_status(lambda status: text in " ".join(status["registry"]["reasons"]))
    assert status["state"] == "degraded"
    assert status["registry"]["state"] == "degraded"
    assert set(status["registry"]["reasons"]) <= set(status["reasons"])
    return status


def noticed(service: Service, text: str) -> dict[str, Any]:
    """The status, once the registry's notices say `text`: it is over, so the service is well all the same."""
    status = service.wait_status(lambda status: text in " ".join(status["registry"]["notices"]))
    assert (status["state"], status["registry"]["state"]) == ("ok", "ok")
    assert status["registry"]["reasons"] == []
    return status


def test_a_deleted_database_is_made_anew_with_the_next_message(bridge: Bridge, database: Path) -> None:
    service = bridge.start()
    send("old")
    before = epoch()
    for path in database.parent.iterdir():
        path.unlink()
    send("new")
    assert inbox() == ["new"]
    assert epoch() != before
    assert database.exists()
    noticed(service, "deleted or replaced")
    assert service.end() == 0
    bridge.start()
    assert inbox() == ["new"]


def test_another_database_put_in_its_place_is_used_from_then_on(bridge: Bridge, database: Path) -> None:
    service = bridge.start()
    send("first")
    assert service.end() == 0
    backup = database.with_name("backup")
    shutil.copy(database, backup)
    service = bridge.start()
    send("second")
    backup.replace(database)
    send("third")
    assert inbox() == ["first", "third"]
    noticed(service, "deleted or replaced")


def test_a_damaged_one_is_set_aside_by_name_and_a_new_one_made(bridge: Bridge, database: Path) -> None:
    service = bridge.start()
    send("old")
    damaged = database.with_name("damaged")
    damaged.write_bytes(b"no database at all" * 1000)
    damaged.replace(database)
    send("new")
    assert inbox() == ["new"]
    status = service.wait_status(lambda status: status["registry"]["store"]["set_aside"])
    (kept,) = status["registry"]["store"]["set_aside"]
    assert Path(kept).read_bytes() == b"no database at all" * 1000
    assert status["state"] == "ok"
    assert kept in " ".join(status["registry"]["notices"])
    Path(kept).unlink()
    service.wait_status(lambda status: kept not in " ".join(status["registry"]["notices"]))


def test_a_read_only_one_answers_reads_and_takes_messages_again_without_a_restart(
    bridge: Bridge, database: Path
) -> None:
    service = bridge.start()
    send("old")
    database.chmod(0o444)
    database.parent.chmod(0o555)
    try:
        with pytest.raises(StorageError, match="read-only") as caught:
            send("lost")
        assert type(caught.value) is StorageError
        assert inbox() == ["old"]
        assert told(service, "read-only")["registry"]["store"]["state"] == "read_only"
    finally:
        database.parent.chmod(0o700)
        database.chmod(0o600)
    send("new")
    assert inbox() == ["old", "new"]
    service.wait_status(lambda status: status["state"] == "ok")


@pytest.fixture
def small_disk(database: Path) -> Iterator[Path]:
    """4 MiB for the database and nothing else."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small file system")
    paths.ensure_private_dir(database.parent)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(database.parent)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield database.parent
    subprocess.run(["umount", "-l", str(database.parent)], check=True)


def test_a_full_disk_refuses_messages_loses_none_and_is_over_when_there_is_room(
    bridge: Bridge, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2 << 20))
    service = bridge.start()
    stored: list[str] = []
    with pytest.raises(DiskFullError, match="no room left"):
        fill(stored)
    assert stored
    assert told(service, "no room left")["registry"]["store"]["state"] == "full"
    assert httpx.get(f"{find().url}/health").status_code == 200
    assert inbox() == stored
    ballast.unlink()
    send("after")
    assert inbox() == [*stored, "after"]
    service.wait_status(lambda status: status["state"] == "ok")
    assert service.end() == 0
    bridge.start()
    assert inbox() == [*stored, "after"]


def fill(stored: list[str]) -> None:
    """Send messages until there is no room; `stored` gets those that were answered."""
    for number in range(200):
        stored.append(send(f"m{number}", "x" * 50_000).message_id)


def test_a_service_that_starts_with_a_full_disk_comes_up_and_recovers(
    bridge: Bridge, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(4 << 20))
    service = bridge.start()
    answer = httpx.get(f"{find().url}/health", timeout=20)
    assert answer.status_code in (200, 503)
    service.wait_status(lambda status: status["state"] == "degraded", timeout=20)
    ballast.unlink()
    until(was_sent, lambda: service.log.read_text())
    assert service.wait_status(lambda status: status["state"] == "ok")["registry"]["store"]["state"] == "ok"
    assert inbox() == ["after"]


def was_sent() -> bool:
    try:
        send("after")
    except StorageError:
        return False
    return True
