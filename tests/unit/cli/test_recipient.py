"""Whom a typed word means."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import AmbiguousError, ChannelError, InvalidError, UnknownError
from agent_bridge.cli.agent_rows import agents_table, known_id, pick, row
from agent_bridge.cli.person import Person
from agent_bridge.cli.recipient import recipient

ME = Person("client-agent-bridge-cli-000000000000", "me@box", "global", "/home/me")
CLAUDE = AgentRow(
    agent_id="client-claude-code-aaaaaaaaaaaa",
    name="Claude in harbour",
    project_path="/src/harbour",
    project_name="harbour",
    entry_type=EntryType.CLIENT,
    client_name="claude-code",
)
CODEX = dataclasses.replace(
    CLAUDE,
    agent_id="client-codex-bbbbbbbbbbbb",
    name="Codex",
    client_name="codex",
    project_path="/src/pier",
    project_name="pier",
)
TWIN = dataclasses.replace(
    CLAUDE, agent_id="client-claude-code-cccccccccccc", project_path="/src/airport", project_name="airport"
)
MINE = dataclasses.replace(CLAUDE, agent_id=ME.agent_id, name=ME.name, project_path="/home/me")
OTHERS = dataclasses.replace(CLAUDE, agent_id="client-claude-code-dddddddddddd", identity="work")
SILENT = dataclasses.replace(CODEX, agent_id="client-codex-eeeeeeeeeeee", name="Silent", healthy=False)
ROWS = (CLAUDE, CODEX, TWIN, MINE, OTHERS, SILENT)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (CLAUDE.agent_id, CLAUDE),
        ("client-claude-code-aaa", CLAUDE),
        ("codex", CODEX),
        ("CODEX", CODEX),
        ("pier", CODEX),
        ("/src/airport", TWIN),
        ("Harbour", CLAUDE),
    ],
)
def test_found(target: str, found: AgentRow) -> None:
    assert recipient(ROWS, target, ME).agent_id == found.agent_id


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        ("client-claude-code-", AmbiguousError, TWIN.agent_id),
        ("Claude in harbour", AmbiguousError, CLAUDE.agent_id),
        ("nobody", UnknownError, "nobody"),
        ("Silent", UnknownError, "Silent"),
        (SILENT.agent_id, UnknownError, "no sign of life"),
        (OTHERS.agent_id, UnknownError, OTHERS.agent_id),
        (ME.agent_id, InvalidError, "agent-bridge add"),
        ("haurbor", UnknownError, f"{CLAUDE.agent_id}  {CLAUDE.name}"),
        ("something else", UnknownError, "`agent-bridge agents` lists"),
        (ME.name, UnknownError, ME.name),
    ],
)
def test_refused(target: str, error: type[ChannelError], said: str) -> None:
    with pytest.raises(error) as caught:
        recipient(ROWS, target, ME)
    assert said in str(caught.value)
    assert OTHERS.agent_id not in str(caught.value) or target == OTHERS.agent_id


def test_a_client_program_where_a_project_has_several() -> None:
    beside = dataclasses.replace(CODEX, agent_id="client-codex-ffffffffffff", project_path="/src/harbour")
    assert recipient((CLAUDE, beside), "/src/harbour", ME, client="codex") is beside
    for target in ("/src/harbour", CLAUDE.agent_id, CLAUDE.name):
        with pytest.raises(UnknownError, match="No session of 'gemini'") as caught:
            recipient((CLAUDE, beside), target, ME, client="gemini")
        assert "Nobody is there" not in caught.value.remedy


def test_nobody_is_there() -> None:
    with pytest.raises(UnknownError) as caught:
        recipient((), "harbour", ME)
    assert "Nobody is there" in caught.value.remedy


def test_a_relative_path_is_the_directory_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = dataclasses.replace(CLAUDE, project_path=str(tmp_path.resolve()))
    monkeypatch.chdir(tmp_path)
    assert recipient((there, CODEX), ".", ME) is there


@pytest.mark.parametrize(
    ("key", "found"), [(CODEX.agent_id, CODEX), ("client-codex-b", CODEX), ("silent", SILENT)]
)
def test_any_row_is_picked(key: str, found: AgentRow) -> None:
    assert pick(ROWS, key) is found


@pytest.mark.parametrize(
    ("key", "error"), [("client-c", AmbiguousError), ("nobody", UnknownError), ("", UnknownError)]
)
def test_no_row_is_picked(key: str, error: type[ChannelError]) -> None:
    with pytest.raises(error):
        pick(ROWS, key)


def test_an_id_that_is_away_is_taken_as_it_is() -> None:
    assert known_id(ROWS, "client-codex-b") == CODEX.agent_id
    assert known_id(ROWS, "client-gone-1") == "client-gone-1"
    with pytest.raises(AmbiguousError):
        known_id(ROWS, "client-c")


def test_a_row_from_the_wire_and_back() -> None:
    full = dataclasses.replace(CODEX, pid=7, host="box", client_version="1.2", card={"skills": []}, beat=0)
    assert row(full.as_wire()) == full


def test_a_row_of_nonsense_is_still_a_row() -> None:
    odd = row({"agentId": 7, "pid": True, "clientInfo": [], "card": "x", "healthy": "yes"})
    assert (odd.agent_id, odd.pid, odd.client_name, odd.healthy) == ("", None, None, False)
    assert agents_table([odd, dataclasses.replace(odd, card={"skills": [7, {"id": "x"}]})]).rows


def test_names_stay_on_their_line() -> None:
    ((cells),) = agents_table([dataclasses.replace(CLAUDE, name="a\nb\x1b[2J" + "x" * 100)]).rows
    assert cells[1].startswith("a b\\x1b[2J")
    assert len(cells[1]) == 60
