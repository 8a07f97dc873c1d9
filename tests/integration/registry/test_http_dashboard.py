"""The dashboard's door: a code for a login, a cookie for what follows."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from integration.registry.running import Client, Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def browser(registry: Running) -> Iterator[httpx.Client]:
    """Somebody without the token who keeps cookies."""
    with httpx.Client(base_url=f"http://localhost:{registry.port}") as client:
        yield client


@pytest.fixture
def within(registry: Running, browser: httpx.Client) -> httpx.Client:
    """A browser that has logged in."""
    code = registry.http.post("/dashboard/codes").json()["code"]
    answer = browser.get("/dashboard/login", params={"code": code})
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
    return browser


def _origin(registry: Running) -> dict[str, str]:
    return {"Origin": f"http://localhost:{registry.port}"}


def test_a_code_lets_in_once(registry: Running, browser: httpx.Client) -> None:
    answer = registry.http.post("/dashboard/codes")
    assert answer.status_code == 201
    code = answer.json()["code"]
    assert browser.get("/agents").status_code == 401
    first = browser.get("/dashboard/login", params={"code": code})
    assert {"HttpOnly", "SameSite=Strict"} <= set(first.headers["set-cookie"].split("; "))
    assert first.headers["cache-control"] == "no-store"
    assert browser.get("/agents").status_code == 200

    browser.cookies.clear()
    second = browser.get("/dashboard/login", params={"code": code})
    assert (second.status_code, second.json()["code"]) == (401, "unauthorized")
    assert "set-cookie" not in second.headers


@pytest.mark.parametrize("query", [{}, {"code": ""}, {"code": "guess"}])
def test_without_a_code_nobody_is_let_in(browser: httpx.Client, query: dict[str, str]) -> None:
    answer = browser.get("/dashboard/login", params=query)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_cookie_makes_no_codes_and_cannot_be_guessed(registry: Running, within: httpx.Client) -> None:
    assert within.post("/dashboard/codes", headers=_origin(registry)).status_code == 401
    within.cookies.clear()
    for value in ("", "guess"):
        headers = {"Cookie": f"agent_bridge_dashboard={value}"}
        assert within.get("/agents", headers=headers).status_code == 401


def test_the_pages_are_not_there_yet(within: httpx.Client) -> None:
    answer = within.get("/dashboard")
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/plain")


def test_the_cookie_may_ask_for_all_identities(registry: Running, within: httpx.Client) -> None:
    registry.register("one", "work")
    registry.post("work", conversationId="at-work", toAgentId="b")
    registry.post("home", conversationId="at-home", toAgentId="b")
    everything = {"identity": "*"}
    assert "one" in {row["agentId"] for row in within.get("/agents", params=everything).json()}
    assert "one" not in {row["agentId"] for row in within.get("/agents").json()}
    listed = {one["conversationId"] for one in within.get("/channel/conversations", params=everything).json()}
    assert {"at-work", "at-home"} <= listed
    assert within.get("/channel/conversations/at-work", params=everything).json()["identity"] == "work"
    told = within.get("/channel/events", params=everything | {"since": 0}).json()["events"]
    assert {"work", "home"} <= {event["data"]["identity"] for event in told}
    assert within.get("/channel/inbox", params=everything | {"agentId": "b"}).status_code == 400


def test_what_is_written_with_the_cookie_has_one_identity_and_comes_from_our_page(
    registry: Running, within: httpx.Client
) -> None:
    body = {"fromAgentId": "client-dashboard-ui", "kind": "chat", "content": "x", "identity": "work"}
    before = registry.hub.store.last_seq()
    refused = within.post("/channel/messages?identity=*", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_origin")
    assert registry.hub.store.last_seq() == before
    sent = within.post("/channel/messages?identity=*", json=body, headers=_origin(registry))
    assert (sent.status_code, sent.json()["identity"]) == (201, "work")


def test_a_socket_with_the_cookie_hears_all_identities(registry: Running, within: httpx.Client) -> None:
    cookie = f"agent_bridge_dashboard={within.cookies['agent_bridge_dashboard']}"
    url = f"ws://localhost:{registry.port}/ws?identity=*"
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(url, additional_headers={"Cookie": cookie}, compression=None),
    ):
        pass
    headers = {"Cookie": cookie} | _origin(registry)
    with connect(url, additional_headers=headers, compression=None) as connection:
        sent = registry.post("work")
        heard = Client(connection).until("channel.message")
    assert heard["data"]["messageId"] == sent["messageId"]
