"""Clocks that are set by a day, forward and back, while the registry runs with its sweeps, and between runs.

Nothing expires, is archived, deleted or taken for gone because of it, nothing that is due stays, and no
answer holds an age below zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from integration.channel.records import START, Clock
from integration.registry.swept import Swept

HOUR = 3_600_000
DAY = 24 * HOUR
JUMPS = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
LIMITS: dict[str, Any] = {"terminal_retention_min": 120, "retention_days": 0.5}
"""All that the jump is longer than."""


def get(registry: Swept, path: str, **query: str | int) -> Any:  # noqa: ANN401 - JSON is anything
    answer = registry.http.get(path, params=query, headers=registry.headers())
    assert answer.status_code == 200, answer.text
    return answer.json()


def fill(registry: Swept) -> None:
    """A question with an hour to go, one without an end, news, and a conversation that is done."""
    due = registry.clock.wall + HOUR
    registry.post(conversationId="due", messageId="due", toAgentId="b", expectsResponse=True, expiresAt=due)
    registry.post(conversationId="open", messageId="open", toAgentId="b", expectsResponse=True)
    registry.post(conversationId="news", messageId="news", toAgentId="b", expectsResponse=False)
    registry.post(conversationId="done", messageId="done", toAgentId="b", expectsResponse=True)
    answer = {"conversationId": "done", "fromAgentId": "b", "toAgentId": "poster", "replyTo": "done"}
    registry.post(**answer, expectsResponse=False)


def seen(registry: Swept) -> dict[str, Any]:
    """All that there is, but for what a heartbeat renews."""
    listed = [
        one for which in ("false", "true") for one in get(registry, "/channel/conversations", archived=which)
    ]
    return {
        "list": {one["conversationId"]: (one["status"], one["archived"]) for one in listed},
        "threads": [get(registry, f"/channel/conversations/{one['conversationId']}") for one in listed],
        "inbox": [one["messageId"] for one in get(registry, "/channel/inbox", agentId="b")],
        "rows": {row["agentId"]: row["healthy"] for row in get(registry, "/agents")},
    }


AS_FILLED = {"due": "pending", "open": "pending", "news": "active", "done": "answered"}


@JUMPS
def test_while_it_runs_nothing_ends_early_and_nothing_late(tmp_path: Path, jump: int) -> None:
    with Swept(tmp_path, **LIMITS) as registry, registry.connect() as socket:
        registry.register("b")
        fill(registry)
        before = seen(registry)
        assert before["list"] == {name: (status, False) for name, status in AS_FILLED.items()}
        socket.all_until_now()

        registry.clock.wall += jump
        registry.sweep()

        assert seen(registry) == before
        assert socket.all_until_now() == [], "nothing is said to have happened"
        # What comes now has the new clock's time, and what is due by it isn't due yet.
        new = registry.post(
            conversationId="new",
            messageId="new",
            toAgentId="b",
            expectsResponse=True,
            expiresAt=registry.clock.wall + 2 * HOUR,
        )
        assert new["createdAt"] == registry.clock.wall
        registry.clock.go_on(HOUR - 1)
        registry.sweep()
        assert seen(registry)["list"]["due"] == ("pending", False)
        registry.clock.go_on(1)
        registry.sweep()
        assert seen(registry)["list"] == {
            **{name: (status, False) for name, status in AS_FILLED.items()},
            "due": ("failed", False),
            "new": ("pending", False),
        }
        assert seen(registry)["inbox"] == ["open", "news", "new"]
        registry.clock.go_on(HOUR)
        registry.sweep()
        assert seen(registry)["list"] == {
            "due": ("failed", False),
            "open": ("pending", False),
            "news": ("active", False),
            "done": ("answered", True),
            "new": ("failed", False),
        }
        registry.clock.go_on(12 * HOUR)
        registry.sweep()
        assert seen(registry)["list"] == {}


@JUMPS
def test_sessions_stay_and_go_by_what_has_passed(tmp_path: Path, jump: int) -> None:
    with Swept(tmp_path) as registry, registry.connect() as socket:
        registry.register("b")
        registry.clock.go_on(89_999)
        registry.clock.wall += jump
        registry.sweep("presence")
        (row,) = get(registry, "/agents")
        assert row["healthy"] is True
        registry.clock.go_on(1)
        registry.sweep("presence")
        assert get(registry, "/agents")[0]["healthy"] is False
        registry.clock.wall -= 3 * jump
        registry.clock.go_on(29_999)
        registry.sweep("presence")
        assert len(get(registry, "/agents")) == 1
        registry.clock.go_on(1)
        registry.sweep("presence")
        assert get(registry, "/agents") == []
        told = [frame["type"] for frame in socket.all_until_now()]
    assert told == ["agent.registered", "agent.unhealthy", "agent.removed"]


@JUMPS
def test_times_are_of_the_wall_and_order_is_not(tmp_path: Path, jump: int) -> None:
    """What was stored after the jump comes after what was stored before, whatever their times say."""
    with Swept(tmp_path) as registry, registry.connect("global", "events=none") as late:
        first = registry.post(conversationId="c", messageId="first", toAgentId="b")
        registry.clock.wall += jump
        second = registry.post(conversationId="c", messageId="second", toAgentId="b")
        registry.post(conversationId="d", messageId="third", toAgentId="b")

        assert second["createdAt"] - first["createdAt"] == jump
        assert [one["messageId"] for one in get(registry, "/channel/inbox", agentId="b")] == [
            "first",
            "second",
            "third",
        ]
        (oldest,) = get(registry, "/channel/inbox", agentId="b", limit=1)
        assert oldest["messageId"] == "first"
        assert [one["conversationId"] for one in get(registry, "/channel/conversations")] == ["d", "c"]
        thread = get(registry, "/channel/conversations/c")["messages"]
        assert [one["messageId"] for one in thread] == ["first", "second"]
        late.identify("b", since=0, epoch=registry.hub.epoch)
        frames: list[dict[str, Any]] = []
        late.until("replayed", frames)
        assert [frame["data"]["messageId"] for frame in frames] == ["first", "second", "third"]
        for times in all_times(get(registry, "/agents"), thread, registry.hub.describe()):
            assert times >= START - DAY, "no time before the beginning, no age below nothing"
        assert all(row["last_ms"] is None or row["last_ms"] >= 0 for row in registry.sweeps.describe())


def all_times(*answers: Any) -> list[int]:  # noqa: ANN401
    """Every number in these answers that is named like a time or an age."""
    found: list[int] = []
    for answer in answers:
        if isinstance(answer, list):
            found += all_times(*answer)
        elif isinstance(answer, dict):
            for name, value in answer.items():
                if isinstance(value, int) and name.endswith(("At", "Heartbeat", "timestamp", "age", "_ms")):
                    found.append(value)
                found += all_times(value)
    return found


@JUMPS
def test_between_two_runs(tmp_path: Path, jump: int) -> None:
    """The wall is all that one run knows of the other: back, no time has passed; forward, a day has."""
    clock = Clock()
    with Swept(tmp_path, clock, **LIMITS) as registry:
        fill(registry)
        before = seen(registry)
    clock.wall += jump
    clock.uptime = 0
    with Swept(tmp_path, clock, **LIMITS) as registry:
        if jump < 0:
            assert seen(registry) == before
            clock.go_on(HOUR - 1)
            registry.sweep()
            assert seen(registry) == before
            clock.go_on(1)
            registry.sweep()
            assert seen(registry)["list"]["due"] == ("failed", False)
        else:
            # Nobody can tell this from a day without service: what was due has failed, the rest is old.
            assert seen(registry)["list"] == {"due": ("failed", False)}
        later = registry.post(conversationId="later", toAgentId="b", expectsResponse=True)
        assert later["createdAt"] == clock.wall
        registry.sweep()
        assert "later" in seen(registry)["list"]


def test_a_restart_amid_a_jump_back_and_forth(tmp_path: Path) -> None:
    """Set back by a day while it runs, restarted, set right again: an hour is an hour in the end."""
    clock = Clock()
    with Swept(tmp_path, clock, **LIMITS) as registry:
        fill(registry)
        before = seen(registry)
        clock.wall -= DAY
        registry.sweep()
        assert seen(registry) == before
    clock.uptime = 0
    with Swept(tmp_path, clock, **LIMITS) as registry:
        assert seen(registry) == before
        clock.wall += DAY
        clock.go_on(HOUR - 1)
        registry.sweep()
        assert seen(registry) == before
        clock.go_on(1)
        registry.sweep()
        assert seen(registry)["list"] == {
            **{name: (status, False) for name, status in AS_FILLED.items()},
            "due": ("failed", False),
        }
