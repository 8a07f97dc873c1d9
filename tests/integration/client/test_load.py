"""Many sessions in another process: nothing lost, nothing twice, each conversation in order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.registry.running import Running

CLIENTS = 50
PARTNERS = 8
EACH = 50


@pytest.mark.timeout(240)
def test_fifty_clients_and_twenty_thousand_messages(tmp_path: Path) -> None:
    with Running(tmp_path) as registry:
        told = crowd(registry, tmp_path / "told.json", clients=CLIENTS, partners=PARTNERS, each=EACH)
        store = registry.hub.store
        stored = store.counts()["messages"]
        still_open = sum(store.inbox_count("global", agent_id) for agent_id in told["shown"])
        differences = store.check()

    total = CLIENTS * PARTNERS * EACH
    assert total == 20_000
    expected = {
        f"client-{one}": {
            f"{(one - back) % CLIENTS} to {one}": list(range(EACH)) for back in range(1, PARTNERS + 1)
        }
        for one in range(CLIENTS)
    }
    assert told["shown"] == expected
    assert len(set(told["stored"])) == total
    assert stored == total
    assert still_open == 0, "what was shown was acked"
    assert differences == []
    assert told["connections"] == CLIENTS, "nobody was cut off"


def crowd(registry: Running, place: Path, **order: int) -> dict[str, Any]:
    address = {"url": f"http://127.0.0.1:{registry.port}", "token": registry.token.current().decode()}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("crowd.py"), place],
        input=json.dumps({**address, **order}),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(place.read_bytes())
    print(f"{order['clients'] * order['partners'] * order['each'] / answer['seconds']:.0f} messages/s")
    return answer
