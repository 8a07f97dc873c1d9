"""Hellos of shims: what is well-formed is taken, everything else refused with a sentence or left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.mcp.hello import ENVIRONMENT, Hello
from agent_bridge.mcp.hello_parse import HelloError, parse_hello

NONCE = "0123456789abcdef" * 2


def line(**said: object) -> bytes:
    hello = {
        "version": 1,
        "nonce": NONCE,
        "pid": 10,
        "parentPid": 9,
        "cwd": "/home/a/p",
        "project": "",
        "identity": "global",
        "client": {"name": "claude-code", "version": "2.1.332"},
        "agentId": "",
        "replayed": [],
        "environment": {},
    }
    return json.dumps({"hello": hello | said}).encode() + b"\n"


def test_every_field_arrives() -> None:
    hello = parse_hello(
        line(
            project="/p",
            identity="work",
            agentId="client-x-1",
            replayed=["1", '"1"'],
            environment={"CODEX_HOME": "/c", "SECRET_TOKEN": "no", "OPENCODE": "", "AI_AGENT": 7},
        )
    )
    assert hello == Hello(
        nonce=NONCE,
        pid=10,
        parent_pid=9,
        cwd="/home/a/p",
        project="/p",
        identity="work",
        client_name="claude-code",
        client_version="2.1.332",
        agent_id="client-x-1",
        replayed=frozenset({"1", '"1"'}),
        environment={"CODEX_HOME": "/c"},
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"version": 2}, "version 1 only"),
        ({"version": True}, "version 1 only"),
        ({"nonce": "x"}, "nonce"),
        ({"nonce": NONCE.upper()}, "nonce"),
        ({"pid": 0}, "pid"),
        ({"pid": True}, "pid"),
        ({"parentPid": "9"}, "parentPid"),
        ({"cwd": "here"}, "cwd"),
        ({"cwd": "/a\0b"}, "cwd"),
        ({"project": "/" + "a" * 5000}, "project"),
        ({"identity": "../x"}, "AGENT_BRIDGE_IDENTITY"),
        ({"identity": None}, "identity"),
        ({"agentId": "a\nb"}, "agentId"),
        ({"replayed": "1"}, "replayed"),
        ({"replayed": [1]}, "replayed"),
        ({"replayed": ["1"] * 1001}, "replayed"),
        ({"client": "claude"}, "client"),
        ({"environment": []}, "environment"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(said: dict[str, Any], told: str) -> None:
    parse_hello(line())  # the same without it is taken
    with pytest.raises(HelloError) as refused:
        parse_hello(line(**said))
    assert told in refused.value.sentence()


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"hello": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_hello_is_refused(text: bytes) -> None:
    with pytest.raises(HelloError):
        parse_hello(text)


def test_names_of_clients_are_one_line_and_bounded() -> None:
    hello = parse_hello(line(client={"name": "a\n\x1b[31mb" + "c" * 500, "version": None}))
    assert hello.client_name.startswith("a--[31mb")
    assert len(hello.client_name) == 200
    assert hello.client_version == ""


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_keys = st.sampled_from(
    ["version", "nonce", "pid", "parentPid", "cwd", "project", "identity", "client", "agentId", "replayed"]
)


@given(st.dictionaries(_keys, _values), st.dictionaries(st.sampled_from(ENVIRONMENT), _values))
def test_any_json_is_taken_or_refused_as_a_hello_error(said: dict[str, Any], env: dict[str, Any]) -> None:
    try:
        hello = parse_hello(line(**said, environment=env))
    except HelloError:
        return
    assert all(isinstance(text, str) and text for text in hello.environment.values())
    assert not hello.cwd or hello.cwd.startswith("/")
