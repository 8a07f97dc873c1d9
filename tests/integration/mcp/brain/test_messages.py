"""A question and its answer between two clients, as their lines pass through the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from integration.mcp.brain.conftest import Shim

Connect = Callable[..., Shim]


def ready(connect: Connect, client: str, **said: Any) -> Shim:  # noqa: ANN401
    shim = connect(client={"name": client, "version": "1.0"}, **said)
    shim.begin()
    return shim


def test_a_question_is_read_and_answered_in_another_client(connect: Connect) -> None:
    asker, helper = ready(connect, "opencode"), ready(connect, "claude-code")
    for one in (helper, asker):
        one.call("list_agents", include_clients=True)
    listed = asker.call("list_agents", includeClients=True)["content"][0]["text"]
    assert helper.agent_id in listed
    asker.call("message_client_session", clientId=helper.agent_id, message="Which port?")
    inbox = helper.call("channel_inbox")
    assert '"Which port?"' in inbox["content"][0]["text"]
    line = next(
        line for line in inbox["content"][0]["text"].splitlines() if line.startswith("Answer: reply(")
    )
    fields = dict(part.split("=", 1) for part in line[len("Answer: reply(") : -1].split(", ") if '"' in part)
    words = {name: value.strip('"') for name, value in fields.items()}
    helper.call("reply", message="4999", **words)
    assert '"4999"' in asker.call("channel_inbox")["content"][0]["text"]
    assert "No pending" in helper.call("channel_inbox")["content"][0]["text"]


def test_the_same_request_by_the_same_shim_is_one_message(connect: Connect) -> None:
    nonce = "0123456789abcdef" * 2
    helper = ready(connect, "claude-code")
    helper.call("channel_inbox")
    sent = []
    for replayed in ([], ["2"]):
        asker = ready(connect, "codex-mcp-client", nonce=nonce, replayed=replayed)
        sent.append(asker.call("message_client_session", clientId=helper.agent_id, message="Once?"))
        asker.close()
    assert sent[0]["content"] == sent[1]["content"]
    assert "Inbox (pending): 1 of 1" in helper.call("channel_inbox")["content"][0]["text"]


def test_a_wrong_call_says_what_to_do_and_another_identity_is_not_there(connect: Connect) -> None:
    one, other = ready(connect, "opencode"), ready(connect, "claude-code", identity="b")
    for shim in (one, other):
        shim.call("channel_inbox")
    answer = one.call("message_client_session", clientId=other.agent_id, message="Hello?")
    assert answer["isError"]
    assert "No session has that id" in answer["content"][0]["text"]
    assert "list_agents with includeClients=true shows" in answer["content"][0]["text"]
    alone = one.call("message_client_session", project="somewhere", message="Hello?")
    assert "No other session works in that project" in alone["content"][0]["text"]
    assert "list_agents with includeClients=true shows" in alone["content"][0]["text"]
    assert one.call("channel_inbox", limit=0)["isError"]
    assert one.call("channel_inbox", nonsense=1)["isError"]
    assert other.agent_id not in one.call("list_agents", includeClients=True)["content"][0]["text"]
