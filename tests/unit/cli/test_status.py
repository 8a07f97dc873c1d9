"""What `status` makes of the service's document."""

from __future__ import annotations

from typing import Any

import pytest

from agent_bridge.cli import status as module
from agent_bridge.daemon.client import NotAnsweringError

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "version": "9.9",
    "pid": 7,
    "started_at": "2026-01-01T00:00:00Z",
    "state": "ok",
    "reasons": [],
    "projects": [
        {
            "id": "1",
            "root": "/home/u/p",
            "facts": {"shared": 3, "private": 1, "withheld": 1},
            "last_projection": {"at": "2026-01-01T00:01:00Z", "ms": 4.2, "paths": []},
            "waiting": "rebase",
            "problems": [{"path": "x.md", "reason": "it is not UTF-8 text", "remedy": "Save it as UTF-8."}],
            "notices": [{"level": "warning", "code": "secret", "text": "rotate it", "path": None}],
            "candidates": 2,
            "left_out": {"/home/u/p/AGENTS.md": ["a", "b"]},
            "watches": [{"path": "/home/u/p", "backend": "polling", "state": "polled", "reason": "ENOSPC"}],
        }
    ],
    "global": None,
}


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("degraded", 1), ("starting", 1), ("stopping", 1)])
def test_the_state_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, state: str, code: int) -> None:
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "state": state})
    assert module.status().exit_code == code


def test_everything_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "reasons": ["queue overflow"]})
    result = module.status()
    assert result.data == {**DOCUMENT, "reasons": ["queue overflow"]}
    (text,) = result.view
    assert isinstance(text, str)
    for told in (
        "9.9: ok, pid 7",
        "queue overflow",
        "/home/u/p",
        "5 facts (3 shared, 1 private)",
        "1 withheld because of secrets",
        "waiting: rebase",
        "x.md: it is not UTF-8 text. Save it as UTF-8.",
        "rotate it",
        "left out of /home/u/p/AGENTS.md for its size: a, b",
        "agent-bridge review",
        "ENOSPC",
    ):
        assert told in text


def test_running_but_not_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> dict[str, Any]:
        raise NotAnsweringError("The service is running, not answering.", remedy="Restart it.")

    monkeypatch.setattr(module, "read_status", silent)
    monkeypatch.setattr(module, "_listed_projects", lambda: ([], ()))
    result = module.status()
    assert result.exit_code == 1
    assert result.data == {"state": "not answering", "projects": []}


def test_a_notice_names_its_file_once_and_keeps_to_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    notice = {
        "level": "warning",
        "code": "x",
        "text": "/home/u/p/a.md is odd.\nMend it.",
        "path": "/home/u/p/a.md",
    }
    project = DOCUMENT["projects"][0] | {"notices": [notice]}
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "projects": [project]})
    (text,) = module.status().view
    assert "  warning: /home/u/p/a.md is odd.\n    Mend it.\n" in str(text)


def test_the_memory_of_all_projects_is_neither_shared_nor_private(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"facts": {"shared": 1, "private": 0, "withheld": 0}}
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "global": whole})
    assert str(module.status().view[0]).endswith("memory of all projects\n  1 fact")


def test_where_the_registry_answers_and_what_it_holds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = {
        "state": "ok",
        "url": "http://127.0.0.1:5000",
        "notices": ["Port 4999 was in use, so the registry listens on 5000."],
        "agents": {"global": 2, "work": 1},
        "store": {"messages": 1},
    }
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "registry": registry})
    (text,) = module.status().view
    assert str(text).splitlines()[-2:] == [
        "registry http://127.0.0.1:5000: ok, 3 sessions, 1 message",
        "  Port 4999 was in use, so the registry listens on 5000.",
    ]


def test_who_uses_the_tools_and_how_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mcp = {
        "state": "ok",
        "socket": "/run/mcp.sock",
        "clients": [{"client": "codex-mcp-client"}, {"client": "claude-code"}, {"client": "claude-code"}],
        "calls": 7,
        "errors": 1,
        "last_error": "The tool recall failed: KeyError.",
    }
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "mcp": mcp})
    (text,) = module.status().view
    assert str(text).splitlines()[-2:] == [
        "tools: ok, 3 clients (claude-code, codex-mcp-client), 7 calls",
        "  failed inside agent-bridge: 1 call. The tool recall failed: KeyError.",
    ]


def test_a_registry_that_nobody_has_called_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: dict[str, object] = {
        "state": "idle",
        "url": "http://127.0.0.1:4999",
        "notices": [],
        "agents": {},
        "store": None,
    }
    monkeypatch.setattr(module, "read_status", lambda: {**DOCUMENT, "registry": registry})
    (text,) = module.status().view
    assert str(text).splitlines()[-1] == "registry http://127.0.0.1:4999: idle"
