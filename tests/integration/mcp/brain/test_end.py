"""The end of the service with a call under way: its shim asks again, so nothing may answer for it."""

from __future__ import annotations

import threading
from pathlib import Path

from agent_bridge import paths
from agent_bridge.memory.store import Store
from agent_bridge.projects import STORE_NAME, id_for
from integration.mcp.brain.conftest import Shim, Tools


def test_a_call_that_is_not_done_in_time_is_left_to_the_next_service(tools: Tools, project: Path) -> None:
    shim = Shim(project)
    shim.begin()
    store = Store(project / STORE_NAME, state=paths.project_state(id_for(project)))
    stopping = threading.Thread(target=tools.host.stop)
    with store.locked("hold it"):
        shim.request("tools/call", {"name": "remember", "arguments": {"text": "Said at the last moment."}})
        tools.wait(lambda status: status["calls"])
        stopping.start()
        assert shim.hear() == {}
    stopping.join()
    shim.close()

    # What was handed over is written all the same; the replay finds it there.
    (fact,) = store.scan().facts
    assert "the last moment" in fact.body
