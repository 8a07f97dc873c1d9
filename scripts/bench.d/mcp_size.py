"""How large the service is with the registry and the tools loaded, and each tool called."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from lab import Lab
from mcp_client import INITIALIZE, Client
from measure import Row, aims, rss_mib


def service_size(lab: Lab, shim: str) -> list[Row]:
    """Two clients that call each tool and talk to each other, and one that comes over HTTP."""
    root = lab.project("size", 20)
    with lab.service() as (service, _):
        one, other = (Client([shim], lab.environment, root) for _ in range(2))
        ids = []
        for client in (one, other):
            client.shake_hands()
            client.must("agent_bridge_guide", topic="overview")
            known = _clients(lab)
            ids.append(next(each for each in known if each not in ids))
        fact = one.must("remember", text="The size of the service is measured here.")
        fact_id = fact.partition("[")[2].partition("]")[0]
        one.must("recall", query="size measured")
        one.must("list_memory")
        one.must("update_memory", id=fact_id, text="The size of the service was measured here.")
        one.must("forget", id=fact_id)
        one.must("list_agents", includeClients=True)
        one.must(
            "message_client_session", clientId=ids[1], message="How large are you?", expectsResponse=True
        )
        inbox = other.call("channel_inbox")["structuredContent"]
        other.must("reply", **_reply_with(inbox), message="Small enough.")
        one.must("channel_inbox")
        one.must("channel_clear", scope="all")
        _over_http(lab)
        resident = rss_mib(service.pid)
        for client in (one, other):
            client.close()
    lab.run(lab.program, "eject", "--yes", cwd=root)
    row: Row = {"name": "RSS of the service, everything loaded", "p50": resident, "unit": "MiB"}
    return [aims(row, p50=110)]


def _clients(lab: Lab) -> list[str]:
    """The ids of those that the service serves."""
    tools = lab.status()["mcp"]
    assert isinstance(tools, dict)
    return [client["agentId"] for client in tools["clients"]]


def _reply_with(found: object) -> dict[str, str]:
    """What the first message that can be answered is answered with."""
    if isinstance(found, dict):
        if isinstance(found.get("replyWith"), dict):
            return {key: found["replyWith"][key] for key in ("agentId", "conversationId", "replyTo")}
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        if answer := _reply_with(each):
            return answer
    return {}


def _over_http(lab: Lab) -> None:
    """Begin a session at the registry."""
    registry: Any = lab.status()["registry"]
    token = next(lab.home.rglob("registry.token")).read_text().strip()
    request = urllib.request.Request(
        f"{registry['url']}/mcp",
        data=json.dumps(INITIALIZE).encode(),
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert b"serverInfo" in answer.read()
