"""The status document."""

from __future__ import annotations

import enum
import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_bridge.daemon.status import HUNG_SECONDS, NO_REGISTRY, State, StatusBoard, empty_document, plain


def test_the_first_document_has_every_key() -> None:
    document = StatusBoard().read()
    assert set(document) == {
        "schema", "version", "pid", "started_at", "state", "reasons", "projects", "global",
        "watch", "jobs", "queue", "last_full_check", "registry", "mcp", "loop",
    }  # fmt: skip
    assert document["state"] == "starting"
    json.dumps(document)


def test_a_loop_that_stopped_coming_round_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    board = StatusBoard()
    board.publish(empty_document(State.OK))
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + HUNG_SECONDS + 1)
    document = board.read()
    assert document["state"] == "degraded"
    assert "not come round" in document["reasons"][0]
    board.beat()
    assert board.read()["state"] == "ok"
    assert board.read()["reasons"] == []


def test_the_queue_is_asked_when_read() -> None:
    board = StatusBoard()
    lengths = iter([3, 0])
    board.queue_length = lambda: next(lengths)
    assert [board.read()["queue"], board.read()["queue"]] == [3, 0]


class Level(enum.Enum):
    WARNING = "warning"


@dataclass(frozen=True)
class Notice:
    level: Level
    path: Path | None
    ids: frozenset[str]


def test_values_of_other_rooms_become_json() -> None:
    told = plain({"a": (Notice(Level.WARNING, Path("/x"), frozenset({"i"})),), 1: None, "raw": b"x"})
    assert told == {"a": [{"level": "warning", "path": "/x", "ids": ["i"]}], "1": None, "raw": "b'x'"}


@pytest.mark.parametrize(("before", "after"), [(State.OK, "degraded"), (State.STARTING, "starting")])
def test_the_registrys_reasons_are_the_services(before: State, after: str) -> None:
    board = StatusBoard()
    board.publish(empty_document(before) | {"reasons": ["first"]})
    board.registry = lambda: {**NO_REGISTRY, "reasons": ["The disk is full."]}
    assert (board.read()["state"], board.read()["reasons"]) == (after, ["first", "The disk is full."])
    board.registry = lambda: dict(NO_REGISTRY)
    assert (board.read()["state"], board.read()["reasons"]) == (before.value, ["first"])
