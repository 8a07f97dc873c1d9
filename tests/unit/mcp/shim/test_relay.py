"""Each request has one answer, whatever services come and go, and no other message gets through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from agent_bridge.mcp.shim.catalogue import Catalogue
from agent_bridge.mcp.shim.lines import LONGEST_LINE, Outbox
from agent_bridge.mcp.shim.relay import MOST_REQUESTS, MOST_SENDINGS, PROTOCOLS, Relay

_CATALOGUE = Catalogue(
    "d", {"name": "n", "version": "1"}, "Do.", {"tools": {}}, [{"name": "t"}], [{"uri": "u"}]
)
_INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}


def said(outbox: Outbox) -> list[dict[str, Any]]:
    """All that waits in an outbox, which is empty then."""
    lines = [json.loads(line) for line in outbox._lines]
    outbox.clear()
    return lines


def line(**message: object) -> bytes:
    """A message as a line."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def begun() -> Relay:
    """A relay whose client has said initialize and initialized."""
    relay = Relay(_CATALOGUE, 30.0)
    relay.from_client(json.dumps(_INITIALIZE).encode(), 0.0)
    relay.from_client(line(method="notifications/initialized"), 0.0)
    said(relay.to_client)
    return relay


def opened(relay: Relay) -> list[dict[str, Any]]:
    """A service answers initialize; what it gets after that."""
    relay.open()
    (begin,) = said(relay.to_service)
    relay.from_service(line(id=begin["id"], result={}))
    return said(relay.to_service)


_STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "cancel", "answer", "die", "come", "wait"]), st.integers(0, 5)),
    max_size=60,
)


@given(_STEPS)
def test_each_request_has_one_answer_at_most_and_in_the_end_one(steps: list[tuple[str, int]]) -> None:
    relay = begun()
    now = 0.0
    asked: set[int] = set()
    cancelled: set[int] = set()
    answered: list[int] = []
    at_service: set[int] = set()
    number = 0

    def look() -> None:
        answered.extend(message["id"] for message in said(relay.to_client))
        for message in said(relay.to_service):
            if "id" in message:
                at_service.add(message["id"])

    for step, which in steps:
        now += 1
        if step == "ask":
            number += 1
            asked.add(number)
            relay.from_client(line(id=number, method="tools/call", params={}), now)
        elif step == "cancel" and asked:
            one = sorted(asked)[which % len(asked)]
            if one not in answered:
                cancelled.add(one)
            relay.from_client(line(method="notifications/cancelled", params={"requestId": one}), now)
        elif step == "answer" and at_service and relay.is_open:
            one = sorted(at_service)[which % len(at_service)]
            at_service.discard(one)
            relay.from_service(line(id=one, result={}))
        elif step == "die":
            relay.close(now)
            at_service.clear()
        elif step == "come" and not relay.is_open:
            relay.close(now)
            at_service.update(message["id"] for message in opened(relay) if "id" in message)
        elif step == "wait":
            now += 20
            relay.give_up(now, "No service.")
        look()
        assert len(answered) == len(set(answered))
        assert not set(answered) & cancelled
    relay.close(now)
    relay.give_up(now + 30, "No service.")
    look()
    assert sorted(answered) == sorted(asked - cancelled)
    assert not relay.is_waiting


def test_waiting_call_has_its_whole_patience_after_a_loss() -> None:
    relay = begun()
    relay.from_client(line(id=1, method="tools/call"), 0.0)
    opened(relay)
    assert relay.next_deadline() is None
    relay.close(100.0)

    assert relay.replayed() == ["1"]
    assert relay.next_deadline() == 130.0
    relay.give_up(129.0, "No service.")
    assert said(relay.to_client) == []
    relay.give_up(130.0, "No service.")
    (found,) = said(relay.to_client)
    assert "isn't known whether" in found["result"]["content"][0]["text"]


def test_request_is_sent_to_so_many_services() -> None:
    relay = begun()
    relay.from_client(line(id=1, method="tools/call"), 0.0)
    for _ in range(MOST_SENDINGS):
        assert said(relay.to_client) == []
        assert [m["id"] for m in opened(relay) if "id" in m] == [1]
        relay.close(0.0)
    assert said(relay.to_client)[0]["id"] == 1


def test_number_of_requests_has_a_bound() -> None:
    relay = begun()
    for number in range(1, MOST_REQUESTS + 2):
        relay.from_client(line(id=number, method="tools/call"), 0.0)
    (refused,) = said(relay.to_client)
    assert (refused["id"], refused["result"]["isError"]) == (MOST_REQUESTS + 1, True)


def test_bytes_of_requests_have_a_bound_and_come_free_again() -> None:
    relay = begun()
    large = line(id=1, method="x", params={"a": "y" * (LONGEST_LINE - 100)})
    relay.from_client(large, 0.0)
    relay.from_client(large.replace(b'"id": 1', b'"id": 2'), 0.0)
    relay.from_client(large.replace(b'"id": 1', b'"id": 3'), 0.0)
    assert [(m["id"], m["error"]["code"]) for m in said(relay.to_client)] == [(3, -32000)]
    relay.from_client(line(method="notifications/cancelled", params={"requestId": 1}), 0.0)
    relay.from_client(large.replace(b'"id": 1', b'"id": 3'), 0.0)
    assert said(relay.to_client) == []


def test_service_that_withdraws_a_question_is_understood() -> None:
    relay = begun()
    opened(relay)
    relay.from_service(line(id="q", method="elicitation/create", params={}))
    (question,) = said(relay.to_client)
    relay.from_service(line(method="notifications/cancelled", params={"requestId": "other"}))
    relay.from_service(line(method="notifications/cancelled", params={"requestId": "q"}))
    (withdrawn,) = said(relay.to_client)
    assert withdrawn["params"]["requestId"] == question["id"]
    relay.from_client(line(id=question["id"], result={}), 0.0)
    assert said(relay.to_service) == []


@pytest.mark.parametrize(
    ("method", "listed"),
    [
        ("tools/list", {"tools": [{"name": "t"}]}),
        ("resources/list", {"resources": [{"uri": "u"}]}),
        ("resources/templates/list", {"resourceTemplates": []}),
        ("prompts/list", {"prompts": []}),
    ],
)
def test_what_there_is_is_said_without_a_service(method: str, listed: dict[str, Any]) -> None:
    relay = begun()
    relay.from_client(line(id=1, method=method), 0.0)
    relay.from_client(line(id=2, method=method, params={"cursor": "x"}), 0.0)

    found, refused = said(relay.to_client)
    assert found["result"] == listed
    assert refused["error"]["code"] == -32602
    assert not relay.is_waiting


def test_same_tools_are_not_told_of() -> None:
    relay = begun()
    relay.from_client(line(id=1, method="tools/list"), 0.0)
    said(relay.to_client)
    relay.serve(Catalogue("e", {"name": "n", "version": "2"}, "", {}, [{"name": "t"}], []))
    assert said(relay.to_client) == []
    relay.serve(Catalogue("f", {"name": "n", "version": "2"}, "", {}, [{"name": "u"}], []))
    assert [m["method"] for m in said(relay.to_client)] == ["notifications/tools/list_changed"]


def test_answer_that_is_none_leaves_the_service_not_waiting() -> None:
    relay = begun()
    opened(relay)
    relay.from_service(line(id="q", method="roots/list"))
    (question,) = said(relay.to_client)
    relay.from_client(line(id=question["id"], result=None), 0.0)
    (found,) = said(relay.to_service)
    assert (found["id"], found["error"]["code"]) == ("q", -32600)


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [(version, version) for version in PROTOCOLS]
    + [("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("", "2025-11-25")],
)
def test_an_unknown_version_is_answered_with_the_newest_that_is_known(asked: str, agreed: str) -> None:
    relay = Relay(_CATALOGUE, 30.0)
    params = {**_INITIALIZE["params"], "protocolVersion": asked}
    relay.from_client(json.dumps({**_INITIALIZE, "params": params}).encode(), 0.0)
    (answer,) = said(relay.to_client)
    assert answer["result"]["protocolVersion"] == agreed
    relay.open()
    (begin,) = said(relay.to_service)
    assert begin["params"]["protocolVersion"] == agreed, "the service speaks what the client was told"


def test_the_versions_are_those_of_the_sdk() -> None:
    assert PROTOCOLS == HANDSHAKE_PROTOCOL_VERSIONS
