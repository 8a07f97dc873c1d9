"""The end of the service with a call under way: its shim asks again, so nothing may answer for it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import mcp_host
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


def test_a_call_that_is_done_in_time_is_answered(tools: Tools, project: Path) -> None:
    shim = Shim(project)
    shim.begin()
    store = Store(project / STORE_NAME, state=paths.project_state(id_for(project)))
    stopping = threading.Thread(target=tools.host.stop)
    with store.locked("hold it"):
        number = shim.request("tools/call", {"name": "remember", "arguments": {"text": "Said in time."}})
        tools.wait(lambda status: status["calls"])
        stopping.start()
    answer = shim.hear()
    assert (answer["id"], answer["result"]["isError"]) == (number, False)
    assert shim.hear() == {}
    stopping.join()
    shim.close()


def test_a_socket_whose_place_is_gone_does_not_keep_the_service_from_its_end(tools: Tools) -> None:
    place = paths.mcp_socket().parent
    place.rename(place.with_name("moved"))
    place.touch()
    tools.host.stop()
    assert place.is_file()


def test_a_loop_that_failed_is_followed_by_one_at_the_same_place(
    tools: Tools, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_host, "REST_SECONDS", 0.0)
    first = Shim(project)
    running = tools.host._loop
    assert running is not None
    running._loop.call_soon_threadsafe(sys.exit)
    assert first.hear() == {}
    second = Shim(project)
    assert second.agent_id == first.agent_id
    assert tools.wait(lambda status: status["failures"])["failures"] == 1
    assert second.begin()["result"]["serverInfo"]["name"] == "agent-bridge"
    tools.wait_rows(1)
    for shim in (first, second):
        shim.close()
    tools.wait_rows(0)
