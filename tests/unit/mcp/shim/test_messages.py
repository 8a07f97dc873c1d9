"""What a line is: strict where the other side's readers are strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_bridge.mcp.shim import messages

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def _is_strict(line: bytes) -> bool:
    constants: list[str] = []
    json.loads(line, parse_constant=constants.append)
    return not constants


@given(_JSON)
def test_any_json_is_an_object_or_refused(value: object) -> None:
    line = json.dumps(value).encode()
    if isinstance(value, dict) and _is_strict(line):
        assert messages.parse(line) == value
    else:
        with pytest.raises(messages.BadMessageError) as caught:
            messages.parse(line)
        assert caught.value.code in (messages.PARSE_ERROR, messages.INVALID_REQUEST)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_refused(line: bytes) -> None:
    try:
        found = messages.parse(line)
    except messages.BadMessageError as error:
        said = messages.error(error.request_id, error.code, error.text)
        assert len(said) < 400
    else:
        assert isinstance(found, dict)


@given(st.text(), st.sampled_from(["", "\ud83d", "\udc00 ", "\r"]))
def test_line_that_is_passed_on_is_strict_and_one_line(text: str, more: str) -> None:
    message: messages.Message = {"text": text + more, "tail": 1}
    passed = messages.one_line(message, json.dumps(message, indent=1).replace("\n", "\r").encode())

    found = json.loads(passed.decode())
    found["text"].encode()
    assert b"\r" not in passed
    assert b"\n" not in passed
    if not any("\ud800" <= sign <= "\udfff" for sign in text + more):
        assert found == message


@pytest.mark.parametrize("request_id", ["a", "", 0, -1, 10**30, "ü" * 42])
def test_ids_that_are(request_id: object) -> None:
    messages.check({"jsonrpc": "2.0", "id": request_id, "method": "m"}, b"")


@pytest.mark.parametrize("request_id", [None, True, 1.0, [], {}, "x" * 255, "ü" * 43, 10**400])
def test_ids_that_are_not(request_id: object) -> None:
    with pytest.raises(messages.BadMessageError) as caught:
        messages.check({"jsonrpc": "2.0", "id": request_id, "method": "m"}, b"")
    assert caught.value.request_id is None


@pytest.mark.parametrize(("levels", "is_taken"), [(98, True), (99, False), (900, False)])
def test_nesting_has_a_bound(levels: int, is_taken: bool) -> None:
    inner: Any = "[" * 200
    for _ in range(levels):
        inner = [inner]
    message: messages.Message = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": inner}}
    line = messages.dumped(message)
    if is_taken:
        messages.check(message, line)
    else:
        with pytest.raises(messages.BadMessageError, match="nested"):
            messages.check(message, line)


def test_a_model_reads_why_its_call_was_not_carried_out() -> None:
    found = json.loads(messages.not_carried_out(1, "tools/call", "Because."))
    assert found["result"] == {"content": [{"type": "text", "text": "Because."}], "isError": True}
    assert json.loads(messages.not_carried_out(1, "resources/list", "Because."))["error"]["code"] == -32000


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), _JSON | st.just("2.0")))
@example({"jsonrpc": "2.0", "id": 10**30, "method": "m", "params": None})
@example({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": "\ud83d"}})
@example({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": [10**400, 1e308, "\0"]}})
def test_request_that_is_passed_on_is_one_for_the_service(message: dict[str, Any]) -> None:
    """Else it would never be answered: the SDK drops what it can't read."""
    from mcp_types import jsonrpc_message_adapter

    line = json.dumps(message).encode()
    try:
        parsed = messages.parse(line)
        messages.check(parsed, line)
    except messages.BadMessageError:
        return
    jsonrpc_message_adapter.validate_json(messages.one_line(parsed, line), by_name=False)
