"""The channel of the tools over a registry that isn't there, fails, ends and comes back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import ChannelError, WrongIdentityError
from agent_bridge.channel.model import AckState, Draft, Kind
from agent_bridge.channel.writes import Send
from agent_bridge.config import Settings
from agent_bridge.daemon import mcp_channel
from agent_bridge.daemon.mcp_channel import ServiceChannel
from agent_bridge.daemon.registry_host import RegistryHost
from agent_bridge.errors import NotRunningError


def row(agent_id: str, identity: str = "global") -> AgentRow:
    return AgentRow(
        agent_id=agent_id,
        name=agent_id,
        project_path="/p",
        identity=identity,
        entry_type=EntryType.CLIENT,
        client_name="codex",
    )


def draft(to: str = "b", identity: str = "global") -> Send:
    return Send(
        Draft(
            identity=identity,
            from_agent_id="a",
            to_agent_id=to,
            kind=Kind.CHAT,
            content="Well?",
            message_id="m",
        )
    )


def test_its_first_use_loads_the_registry(sealed_home: Path) -> None:
    host = RegistryHost(Settings())
    channel = ServiceChannel(host)
    host.start()
    try:
        assert host.describe()["state"] == "idle"
        assert asyncio.run(channel.rows("global")) == []
        assert host.describe()["state"] == "ok"
        assert channel.describe_url() == host.describe()["url"]
    finally:
        host.stop()


def test_sessions_of_one_program_stand_beside_each_other_and_a_sign_of_life_is_no_new_row(
    sealed_home: Path,
) -> None:
    host = RegistryHost(Settings())
    channel = ServiceChannel(host)
    host.start()

    async def use() -> None:
        for name in ("one", "two", "one"):
            await channel.register(row(name))
        await channel.register(row("other", "b"))
        found = await channel.rows("global")
        assert {one.agent_id for one in found} == {"one", "two"}
        registered = {one.agent_id: one.registered_at for one in found}
        await channel.register(row("one"))
        assert {one.agent_id: one.registered_at for one in await channel.rows("global")} == registered
        with pytest.raises(WrongIdentityError):
            await channel.write(draft("other"))
        await channel.remove("global", "other")
        await channel.remove("global", "one")
        assert [one.agent_id for one in await channel.rows("global")] == ["two"]
        assert [one.agent_id for one in await channel.rows("b")] == ["other"]

    try:
        asyncio.run(use())
    finally:
        host.stop()


def test_before_the_start_and_after_the_end_there_is_an_error_and_no_wait(sealed_home: Path) -> None:
    host = RegistryHost(Settings())
    channel = ServiceChannel(host)
    host.start()
    asyncio.run(channel.rows("global"))
    host.stop()
    began = time.monotonic()
    with pytest.raises(NotRunningError, match="isn't there"):
        asyncio.run(channel.rows("global"))
    assert time.monotonic() - began < mcp_channel.RETURN_SECONDS
    asyncio.run(channel.remove("global", "a"))  # nothing to be taken out of


def test_a_registry_that_fails_is_told_with_its_reason(
    sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_channel, "RETURN_SECONDS", 0.3)
    host = RegistryHost(Settings(database_url="nonsense://"))
    host.start()
    try:
        with pytest.raises((NotRunningError, ChannelError)) as told:
            asyncio.run(ServiceChannel(host).rows("global"))
        assert "database_url" in told.value.sentence()
    finally:
        host.stop()


def test_a_wait_ends_with_the_registry_and_with_its_caller(sealed_home: Path) -> None:
    host = RegistryHost(Settings())
    channel = ServiceChannel(host)
    host.start()

    async def use() -> float:
        await channel.write(draft())
        server = host.running()
        assert server is not None
        nothing: frozenset[AckState] = frozenset()
        assert await channel.settled("global", "m", frozenset({AckState.QUEUED}), 60) is AckState.QUEUED
        assert await channel.settled("global", "m", nothing, 0.05) is AckState.QUEUED
        assert await channel.settled("b", "m", nothing, 60) is None
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.settled("global", "m", nothing, 60), 0.1)
        while len(server.hub.receipts):  # its place is taken out, on the other loop
            await asyncio.sleep(0.005)
        waiting = asyncio.create_task(channel.settled("global", "m", nothing, 60))
        while not len(server.hub.receipts):
            await asyncio.sleep(0.005)
        began = time.monotonic()
        server.stop()
        with pytest.raises(NotRunningError, match="ended meanwhile"):
            await waiting
        # Back by itself, and what was written is there.
        message = await channel.read(lambda store: store.message("global", "m"))
        assert message is not None
        return time.monotonic() - began

    try:
        assert asyncio.run(use()) < 10
    finally:
        host.stop()
