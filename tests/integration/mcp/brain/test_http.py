"""The tools over streamable HTTP, with the SDK's own client and by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from agent_bridge import paths
from agent_bridge.mcp import catalogue
from integration.mcp.brain.conftest import Tools

OPENING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    },
}
NAMES = [tool["name"] for tool in catalogue.shipped()["tools"]]
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def headers(tools: Tools, project: Path) -> dict[str, str]:
    token = paths.registry_token().read_text().strip()
    return {"Authorization": f"Bearer {token}", "X-Agent-Bridge-Project": str(project)}


def url_of(tools: Tools) -> str:
    assert tools.registry.url is not None
    return f"{tools.registry.url}/mcp"


@asynccontextmanager
async def client_of(
    tools: Tools, headers: dict[str, str], mode: Literal["auto", "legacy"]
) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(url_of(tools), http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdks_client_uses_the_tools(
    tools: Tools, headers: dict[str, str], project: Path, mode: Literal["auto", "legacy"]
) -> None:
    async def use() -> None:
        async with client_of(tools, headers, mode) as client:
            assert client.protocol_version == "2025-11-25"
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            answer = await client.call_tool("remember", {"text": "Over HTTP too."})
            assert not answer.is_error
            await asyncio.to_thread(tools.wait_rows, 1)
            (one,) = tools.host.describe()["clients"]
            assert (one["project"], one["identity"]) == (str(project), "global")

    asyncio.run(use())
    assert len(list((project / ".memory" / "entries").iterdir())) == 1
    tools.wait(lambda status: not status["clients"])
    tools.wait_rows(0)


def opened(http: httpx.Client, tools: Tools, **headers: str) -> str:
    answer = http.post(url_of(tools), json=OPENING, headers=ACCEPT | headers)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def test_only_who_may_gets_in_and_only_into_its_own_session(tools: Tools, headers: dict[str, str]) -> None:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    with httpx.Client(trust_env=False, timeout=20) as http:
        assert http.post(url_of(tools), json=OPENING, headers=ACCEPT).status_code == 401
        http.headers.update(headers)
        assert (
            http.post(
                url_of(tools), json=OPENING, headers=ACCEPT | {"Origin": "http://a.invalid"}
            ).status_code
            == 403
        )
        assert (
            http.post(url_of(tools), json=OPENING, headers=ACCEPT | {"Host": "a.invalid"}).status_code == 403
        )
        own = {"Mcp-Session-Id": opened(http, tools)}
        assert http.post(url_of(tools), json=ping, headers=ACCEPT | own).status_code == 200
        elsewhere = {"X-Agent-Bridge-Identity": "work"}
        assert http.post(url_of(tools), json=ping, headers=ACCEPT | own | elsewhere).status_code == 404
        assert http.delete(url_of(tools), headers=own).status_code == 200
        assert http.post(url_of(tools), json=ping, headers=ACCEPT | own).status_code == 404
        opened(http, tools, **elsewhere)
    (one,) = tools.host.describe()["clients"]
    assert one["identity"] == "work"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"rubbish", 400, -32700),
        (b"[" * 50_000, 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', 400, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":7}}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', 400, -32602),
        (json.dumps({key: OPENING[key] for key in OPENING if key != "id"}).encode(), 400, -32602),
        (json.dumps(OPENING | {"jsonrpc": "1.0"}).encode(), 400, -32602),
    ],
)
def test_what_opens_no_session_is_refused_and_leaves_none(
    tools: Tools, headers: dict[str, str], body: bytes, status: int, code: int
) -> None:
    with httpx.Client(trust_env=False, timeout=20, headers=headers | ACCEPT) as http:
        answer = http.post(url_of(tools), content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, answer.text
        assert _error(answer)["code"] == code
        assert http.get(url_of(tools)).status_code == 400
        assert http.put(url_of(tools)).status_code == 405
        assert tools.host.describe()["clients"] == []
        opened(http, tools)
        assert len(tools.host.describe()["clients"]) == 1


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25")],
)
def test_an_unknown_version_is_answered_with_the_newest_that_is_known(
    tools: Tools, headers: dict[str, str], asked: str, agreed: str
) -> None:
    opening = OPENING | {"params": OPENING["params"] | {"protocolVersion": asked}}
    with httpx.Client(trust_env=False, timeout=20, headers=headers | ACCEPT) as http:
        answer = http.post(url_of(tools), json=opening)
        assert _message(answer)["result"]["protocolVersion"] == agreed
        session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": agreed}
        listed = http.post(
            url_of(tools), json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=session
        )
        assert [tool["name"] for tool in _message(listed)["result"]["tools"]] == NAMES


def test_where_all_sessions_are_taken_the_longest_idle_one_makes_room(
    tools: Tools, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_bridge.mcp import http as over_http

    monkeypatch.setattr(over_http, "MOST_SESSIONS", 2)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    with httpx.Client(trust_env=False, timeout=20, headers=headers | ACCEPT) as http:
        first, second = ({"Mcp-Session-Id": opened(http, tools)} for _ in range(2))
        assert http.post(url_of(tools), json=ping, headers=first).status_code == 200
        third = {"Mcp-Session-Id": opened(http, tools)}
        states = [
            http.post(url_of(tools), json=ping, headers=one).status_code for one in (first, second, third)
        ]
        assert states == [200, 404, 200]
        with (
            http.stream("GET", url_of(tools), headers=first),
            http.stream("GET", url_of(tools), headers=third),
        ):
            assert http.post(url_of(tools), json=OPENING).status_code == 503


def test_it_ends_with_the_registry_while_a_client_listens(tools: Tools, headers: dict[str, str]) -> None:
    with httpx.Client(trust_env=False, timeout=20, headers=headers | ACCEPT) as http:
        session = {"Mcp-Session-Id": opened(http, tools)}
        with http.stream("GET", url_of(tools), headers=session) as listening:
            assert listening.status_code == 200
            tools.stop()
            assert not b"".join(_whole(listening))
    assert tools.registry.running() is None


def _whole(answer: httpx.Response) -> list[bytes]:
    try:
        return list(answer.iter_bytes())
    except httpx.RemoteProtocolError:
        return []


def _error(answer: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = _message(answer)["error"]
    return found


def _message(answer: httpx.Response) -> dict[str, Any]:
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
    found: dict[str, Any] = json.loads(text)
    return found
