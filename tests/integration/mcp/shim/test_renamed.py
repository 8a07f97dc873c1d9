"""An id that changes after the welcome: the shim says it in its next hello, and tells nobody else."""

from __future__ import annotations

from collections.abc import Callable

from agent_bridge.mcp.hello import RENAMED
from integration.mcp.shim.rig import Service, Shim, answer, call

Start = Callable[..., Shim]


def test_the_next_hello_says_the_newest_id(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    peer = service.accept()
    assert peer.greet(agent_id="client-by-cwd")["agentId"] == ""
    for agent_id in ("client-by-roots", "client-by-roots-2"):
        peer.say({"jsonrpc": "2.0", "method": RENAMED, "params": {"agentId": agent_id}})
        client.say(call(agent_id))
        assert peer.hear() == call(agent_id)
        peer.say(answer(agent_id, {}))
        assert client.hear() == answer(agent_id, {}), "the answer is the first that the client hears"
        peer.close()
        peer = service.accept()
        # Its roots aren't asked for yet: this welcome goes by where it was started again.
        assert peer.greet(agent_id="client-by-cwd")["agentId"] == agent_id
    assert client.end()[2] == b""
