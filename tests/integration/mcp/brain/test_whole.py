"""The whole service as users run it, with everything loaded, and the SDK's own client through the shim."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agent_bridge.daemon.client import read_status
from agent_bridge.mcp import catalogue
from integration.mcp.real_service import running_service

LIMIT_KIB = 110 * 1024


@pytest.fixture
def service(sealed_home: Path) -> Iterator[subprocess.Popen[bytes]]:
    yield from running_service(sealed_home)


def test_the_sdks_client_over_stdio_uses_every_part_of_a_service_that_stays_small(
    service: subprocess.Popen[bytes], sealed_home: Path
) -> None:
    project = sealed_home / "project"

    async def use() -> None:
        shim = StdioServerParameters(
            command=sys.executable,
            args=["-m", "agent_bridge.mcp.shim.main"],
            env=dict(os.environ),
            cwd=str(project),
        )
        async with Client(stdio_client(shim), mode="auto") as client:
            assert client.protocol_version == "2025-11-25"
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [tool["name"] for tool in catalogue.shipped()["tools"]]
            for name, arguments in (
                ("remember", {"text": "The whole service is small."}),
                ("recall", {"query": "small"}),
                ("list_agents", {"includeClients": True}),
                ("channel_inbox", {}),
            ):
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer
                assert answer.structured_content
            assert len((await client.list_resources()).resources) == 2
            status = await asyncio.to_thread(read_status, 5.0)
            assert status["registry"]["state"] == "ok"
            assert [one["client"] for one in status["mcp"]["clients"]] == ["mcp"]
            assert (status["mcp"]["calls"], status["mcp"]["errors"]) == (4, 0)
            if sys.platform == "linux":
                assert _resident(service.pid) < LIMIT_KIB

    asyncio.run(use())


def _resident(pid: int) -> int:
    """KiB of memory that the process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(pid)
