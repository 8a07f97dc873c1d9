"""The directory over HTTP, and what agents tell each other outside the channel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from integration.registry.running import Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> str:
    """An identity that no other test of this module uses."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60]


def _ask(registry: Running, identity: str, method: str, path: str, body: object = None) -> httpx.Response:
    return registry.http.request(method, path, json=body, headers=registry.headers(identity))


def _agents(registry: Running, identity: str, **query: str) -> set[str]:
    answer = registry.http.get("/agents", params=query, headers=registry.headers(identity))
    assert answer.status_code == 200
    return {row["agentId"] for row in answer.json()}


def test_a_session_comes_stays_and_goes(registry: Running, fresh: str) -> None:
    body: dict[str, Any] = {"agentId": "me", "name": "Me", "projectPath": "/p", "entryType": "client"}
    body |= {"clientInfo": {"clientName": "codex", "clientVersion": "1"}, "pid": 4, "host": "here"}
    with registry.connect(fresh) as socket:
        row = _ask(registry, fresh, "POST", "/agents", body)
        assert row.status_code == 201
        assert row.json() | body == row.json()
        assert (row.json()["healthy"], row.json()["identity"]) == (True, fresh)
        assert _ask(registry, fresh, "GET", "/agents/me").json() == row.json()

        beat = _ask(registry, fresh, "POST", "/agents/me/heartbeat", {"status": "alive"})
        assert beat.json()["ok"] is True
        assert beat.json()["timestamp"] >= row.json()["registeredAt"]

        assert _ask(registry, fresh, "DELETE", "/agents/me").json() == {"removed": True}
        assert _ask(registry, fresh, "DELETE", "/agents/me").json() == {"removed": False}
        frames = socket.all_until_now()
    assert [frame["type"] for frame in frames] == [
        "agent.registered",
        "agent.heartbeat",
        "agent.deregistered",
    ]
    assert _ask(registry, fresh, "GET", "/agents/me").status_code == 404
    told = _ask(registry, fresh, "POST", "/agents/me/heartbeat")
    assert (told.status_code, told.json()["code"]) == (404, "unknown")
    assert told.json()["error"].startswith("Agent not found")


@pytest.mark.parametrize(
    "body", [{}, {"agentId": "a", "name": "A"}, {"agentId": "", "name": "A", "projectPath": "/p"}]
)
def test_a_registration_that_says_too_little(registry: Running, fresh: str, body: dict[str, Any]) -> None:
    answer = _ask(registry, fresh, "POST", "/agents", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert _agents(registry, fresh, entryType="client") == set()


def test_a_registration_that_says_too_much(registry: Running, fresh: str) -> None:
    body = {"agentId": "a", "name": "A", "projectPath": "/p", "card": {"text": "x" * 70_000}}
    assert _ask(registry, fresh, "POST", "/agents", body).status_code == 413


def test_filters_hold_together(registry: Running, fresh: str) -> None:
    skills = [{"id": "search", "tags": ["files", "grep"]}]
    registry.register("one", fresh, entryType="agent", projectName=fresh, card={"skills": skills})
    registry.register("two", fresh, projectName=fresh)
    assert _agents(registry, fresh, project=fresh.upper()) == {"one", "two"}
    assert _agents(registry, fresh, project=fresh, entryType="agent") == {"one"}
    assert _agents(registry, fresh, project=fresh, entryType="client") == {"two"}
    assert _agents(registry, fresh, project=fresh, skill="grep") == {"one"}
    assert _agents(registry, fresh, project=fresh, skill="search", healthy="true") == {"one"}
    assert _agents(registry, fresh, project=fresh, healthy="false") == set()
    assert registry.http.get("/agents", params={"entryType": "robot"}).status_code == 400


def test_client_rows_are_their_identitys_own_and_agents_are_seen_by_all(
    registry: Running, fresh: str
) -> None:
    registry.register(f"{fresh}-client", fresh)
    registry.register(f"{fresh}-agent", fresh, entryType="agent")
    theirs = _agents(registry, "elsewhere")
    assert f"{fresh}-agent" in theirs
    assert f"{fresh}-client" not in theirs
    assert _ask(registry, "elsewhere", "GET", f"/agents/{fresh}-client").status_code == 404

    assert _ask(registry, "elsewhere", "DELETE", f"/agents/{fresh}-agent").json() == {"removed": False}
    assert _ask(registry, "elsewhere", "POST", f"/agents/{fresh}-agent/heartbeat").status_code == 404
    assert f"{fresh}-agent" in _agents(registry, fresh)


def test_health_counts_what_the_caller_sees(registry: Running, fresh: str) -> None:
    def health(identity: str) -> dict[str, Any]:
        answer: dict[str, Any] = _ask(registry, identity, "GET", "/health").json()
        return answer

    mine, theirs = health(fresh), health("elsewhere")
    registry.register("counted", fresh)
    with registry.agent("counted", fresh), registry.connect(fresh):
        now = health(fresh)
        assert now["agents"] == mine["agents"] + 1
        assert (now["wsConnections"], now["wsDashboardClients"]) == (1, 2)
        assert health("elsewhere") | {"timestamp": ""} == theirs | {"timestamp": ""}


def test_a_message_to_an_agent_by_its_name(registry: Running, fresh: str) -> None:
    registry.register("target", fresh, name="The Target")
    body = {"fromAgentId": "me", "type": "task.request", "taskId": "t", "payload": {"n": 1}}
    place = "/agents/the%20TARGET/message"
    assert _ask(registry, fresh, "POST", place, body).json() == {
        "ok": True,
        "delivered": False,
        "via": "event-only",
    }
    with registry.agent("target", fresh) as target, registry.connect(fresh) as other:
        told = _ask(registry, fresh, "POST", place, body).json()
        assert told == {"ok": True, "delivered": True, "via": "websocket"}
        for socket in (target, other):
            (frame,) = [one for one in socket.all_until_now() if one["type"] == "agent.message"]
            assert frame["data"] | body == frame["data"]
            assert frame["data"]["toAgentId"] == "target"
    assert _ask(registry, fresh, "POST", "/agents/nobody/message", body).status_code == 404


def test_messages_to_agents_count_for_their_senders_rate(tmp_path: Path) -> None:
    body = {"fromAgentId": "me", "type": "notification"}
    with Running(tmp_path, send_rate_per_s=0.01, send_burst=2) as registry:
        registry.register("target")
        with registry.agent("target") as target:
            answers = [_ask(registry, "global", "POST", "/agents/target/message", body) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            assert answers[2].json()["code"] == "too_many"
            other = body | {"fromAgentId": "other"}
            assert _ask(registry, "global", "POST", "/agents/target/message", other).status_code == 200
            told = [one for one in target.all_until_now() if one["type"] == "agent.message"]
            assert [one["data"]["fromAgentId"] for one in told] == ["me", "me", "other"]


def test_a_message_to_an_agent_that_says_too_little(registry: Running, fresh: str) -> None:
    registry.register("target", fresh)
    answer = _ask(registry, fresh, "POST", "/agents/target/message", {"type": "task.request"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_a_message_to_an_agent_of_another_identity_stays_on_this_side(registry: Running, fresh: str) -> None:
    registry.register(f"{fresh}-agent", "elsewhere", entryType="agent")
    registry.register(f"{fresh}-client", "elsewhere")
    body = {"fromAgentId": "me", "type": "notification"}
    with registry.agent(f"{fresh}-agent", "elsewhere") as target, registry.connect(fresh) as own:
        told = _ask(registry, fresh, "POST", f"/agents/{fresh}-agent/message", body).json()
        assert told["via"] == "event-only"
        assert [frame["type"] for frame in own.all_until_now()] == ["agent.message"]
        assert "agent.message" not in [frame["type"] for frame in target.all_until_now()]
    refused = _ask(registry, fresh, "POST", f"/agents/{fresh}-client/message", body)
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_identity")


def test_a_tasks_new_state_is_told_to_its_identity(registry: Running, fresh: str) -> None:
    body = {"agentId": "a", "agentName": "A", "taskId": "t", "state": "working", "timestamp": 5}
    with registry.connect(fresh) as own, registry.connect("elsewhere") as other:
        assert _ask(registry, fresh, "POST", "/events", body).json() == {"ok": True}
        assert [frame["data"] for frame in own.all_until_now()] == [body]
        assert other.all_until_now() == []
    assert _ask(registry, fresh, "POST", "/events", {"agentId": "a"}).status_code == 400


def test_a_name_that_several_have_is_told_with_their_ids(registry: Running, fresh: str) -> None:
    for agent_id in ("first", "second"):
        registry.register(agent_id, fresh, name="Twin")
    body = {"fromAgentId": "me", "type": "notification"}
    answer = _ask(registry, fresh, "POST", "/agents/twin/message", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous")
    assert "first, second" in answer.json()["error"]
    assert _ask(registry, fresh, "POST", "/agents/first/message", body).status_code == 200
