"""MCP from `init` to `eject`: what is set for Claude Code and Codex, what is respected, what comes back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import projects
from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import claude_mcp, mcp_command
from agent_bridge.projection import preview, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project

from .conftest import git

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]
OURS = {"type": "stdio", "command": "agent-bridge-mcp", "args": [], "alwaysLoad": True}
SETTINGS = ".claude/settings.local.json"


@pytest.fixture
def codex_home(sealed_home: Path) -> Path:
    home = sealed_home / ".codex"
    home.mkdir()
    return home


@pytest.fixture(autouse=True)
def on_path(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, on PATH."""
    place = sealed_home / "bin" / mcp_command.NAME
    place.parent.mkdir()
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}:/usr/local/bin:/usr/bin:/bin")
    return place


def init(root: Path, settings: Settings, *, mcp: bool | None = None) -> setup.SetUp:
    return setup.init(setup.describe(root, mcp=mcp), settings)


def codes(found: setup.SetUp) -> set[str]:
    return {notice.code for notice in found.report.notices}


def text_of(found: setup.SetUp, code: str) -> str:
    return next(notice.text for notice in found.report.notices if notice.code == code)


def servers(root: Path) -> dict[str, Any]:
    place = root / ".mcp.json"
    return dict(json.loads(place.read_bytes())["mcpServers"]) if place.exists() else {}


def approvals(root: Path) -> tuple[list[str], list[str]]:
    place = root / SETTINGS
    found = json.loads(place.read_bytes()) if place.exists() else {}
    return found.get("permissions", {}).get("allow", []), found.get("enabledMcpjsonServers", [])


def codex_servers(home: Path) -> dict[str, Any]:
    place = home / "config.toml"
    return dict(tomllib.loads(place.read_text()).get("mcp_servers", {})) if place.exists() else {}


def test_both_clients_get_the_server_and_git_sees_none_of_it(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    init(repository, settings)

    assert servers(repository) == {"agent-bridge": OURS}
    assert approvals(repository) == (["mcp__agent-bridge"], ["agent-bridge"])
    entry = codex_servers(codex_home)["agent-bridge"]
    assert entry == {"command": "agent-bridge-mcp", "env_vars": list(mcp_command.ENVIRONMENT)}
    assert git(repository, "status", "--porcelain", "--", ":!.memory") == ""
    assert "/.mcp.json" in (repository / ".git/info/exclude").read_text().splitlines()


def test_twice_is_once_and_the_plan_is_empty_then(
    codex_home: Path, repository: Path, settings: Settings, sealed_home: Path, tree: Tree
) -> None:
    init(repository, settings)
    watched = (repository / ".mcp.json", repository / SETTINGS, codex_home / "config.toml")
    first = [(path.read_bytes(), path.stat().st_mtime_ns) for path in watched]

    init(repository, settings)

    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in watched] == first
    would = preview.preview_project(setup.describe(repository), settings)
    assert [step for step in would.steps if step.what == "key"] == []


def test_the_plan_shows_each_file_before(codex_home: Path, repository: Path, settings: Settings) -> None:
    would = preview.preview_project(setup.describe(repository), settings)

    diffs = {step.path: step.diff for step in would.steps if step.what == "key"}
    assert set(diffs) == {repository / ".mcp.json", repository / SETTINGS, codex_home / "config.toml"}
    assert "agent-bridge-mcp" in diffs[repository / ".mcp.json"]
    assert "mcp__agent-bridge" in diffs[repository / SETTINGS]
    assert not (repository / ".mcp.json").exists()
    assert "mcp-program-missing" not in {notice.code for notice in would.notices}


def test_a_program_that_is_not_on_path_is_told_and_named_in_full_to_codex(
    codex_home: Path, repository: Path, settings: Settings, on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(on_path.with_name("python")))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    would = preview.preview_project(setup.describe(repository), settings)
    init(repository, settings)

    (notice,) = [notice for notice in would.notices if notice.code == "mcp-program-missing"]
    assert str(on_path) in notice.text
    assert servers(repository)["agent-bridge"]["command"] == "agent-bridge-mcp"
    assert codex_servers(codex_home)["agent-bridge"]["command"] == str(on_path)


def test_a_program_that_is_on_path_by_now_is_named_without_it(
    codex_home: Path, repository: Path, settings: Settings, on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("sys.executable", str(on_path.with_name("python")))
        before.setenv("PATH", "/usr/bin:/bin")
        init(repository, settings)
    assert codex_servers(codex_home)["agent-bridge"]["command"] == str(on_path)

    init(repository, settings)

    assert codex_servers(codex_home)["agent-bridge"]["command"] == "agent-bridge-mcp"
    setup.eject(setup.describe(repository), settings)
    assert not (codex_home / "config.toml").exists()


def test_eject_leaves_every_byte_as_it_was(
    codex_home: Path, repository: Path, settings: Settings, sealed_home: Path, tree: Tree
) -> None:
    (codex_home / "config.toml").write_bytes(b'model = "gpt-5" # big\r\n[tui]\r\nx = 1')
    (repository / ".mcp.json").write_bytes(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "b"}}} // mine')
    (repository / ".claude").mkdir()
    (repository / SETTINGS).write_bytes(b'{\n\t"permissions": {"allow": ["WebFetch"]}\n}')
    watched = (repository / ".mcp.json", repository / SETTINGS, codex_home / "config.toml")
    before = [path.read_bytes() for path in watched]
    project = setup.describe(repository)
    setup.init(project, settings)
    assert [path.read_bytes() for path in watched] != before

    assert not setup.eject(project, settings).refused

    assert [path.read_bytes() for path in watched] == before


def test_what_clients_wrote_since_stays_and_ours_goes(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    """As `codex mcp add` and `claude mcp add -s project` write: all servers, in an order of their own."""
    project = setup.describe(repository)
    setup.init(project, settings)
    names = ", ".join(f'"{name}"' for name in mcp_command.ENVIRONMENT)
    (codex_home / "config.toml").write_text(
        f'[mcp_servers.agent-bridge]\nenv_vars = [{names}]\ncommand = "agent-bridge-mcp"\n\n'
        '[mcp_servers.other]\ncommand = "foo"\n'
    )
    reordered = {"other": {"command": "foo"}, "agent-bridge": dict(reversed(OURS.items()))}
    (repository / ".mcp.json").write_text(json.dumps({"mcpServers": reordered}, indent=4))
    Engine(project, settings).reconcile()

    setup.eject(project, settings)

    assert codex_servers(codex_home) == {"other": {"command": "foo"}}
    assert servers(repository) == {"other": {"command": "foo"}}


def test_without_mcp_nothing_is_set_and_that_is_kept(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    init(repository, settings, mcp=False)
    init(repository, settings)

    assert (servers(repository), approvals(repository)) == ({}, ([], []))
    assert codex_servers(codex_home) == {}
    init(repository, settings, mcp=True)
    assert servers(repository) == {"agent-bridge": OURS}
    assert "agent-bridge" in codex_servers(codex_home)


def test_no_mcp_takes_back_what_an_earlier_init_set(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    init(repository, settings)
    would = preview.preview_project(setup.describe(repository, mcp=False), settings)
    told = {step.path for step in would.steps if "our part is taken out" in step.text}
    assert told == {repository / ".mcp.json", repository / SETTINGS, codex_home / "config.toml"}

    init(repository, settings, mcp=False)

    assert not (repository / ".mcp.json").exists()
    assert approvals(repository) == ([], [])
    assert "autoMemoryDirectory" in (repository / SETTINGS).read_text()
    assert codex_servers(codex_home) == {}


def test_a_project_of_an_older_version_gets_nothing_before_its_next_init(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    project = setup.describe(repository, mcp=False)
    setup.init(project, settings)
    projects.add_project(replace(project, mcp=None))
    (listed,) = projects.load_projects()
    assert listed.mcp is None

    Engine(listed, settings).reconcile()

    assert servers(repository) == {}
    init(repository, settings)
    assert servers(repository) == {"agent-bridge": OURS}


def test_codex_keeps_the_server_until_the_last_project_goes(
    codex_home: Path, repository: Path, settings: Settings, sealed_home: Path
) -> None:
    other = sealed_home / "other"
    other.mkdir()
    git(other, "init", "-q")
    init(repository, settings)
    init(other, settings)

    setup.eject(setup.describe(repository), settings)
    assert "agent-bridge" in codex_servers(codex_home)
    init(other, settings, mcp=False)
    assert not (codex_home / "config.toml").exists()


def test_codex_loses_the_server_with_the_last_project_that_has_it(
    codex_home: Path, repository: Path, settings: Settings, sealed_home: Path
) -> None:
    """Another project is left, without MCP. The skill, which is about our tools, goes with it."""
    other = sealed_home / "other"
    other.mkdir()
    git(other, "init", "-q")
    init(other, settings, mcp=False)
    init(repository, settings)
    assert "agent-bridge" in codex_servers(codex_home)
    assert list(codex_home.rglob("SKILL.md"))

    setup.eject(setup.describe(repository), settings)

    assert not (codex_home / "config.toml").exists()
    assert not list(codex_home.rglob("SKILL.md"))


@pytest.mark.parametrize("tracked", [True, False])
def test_a_file_of_the_users_gets_our_entry_and_stays_theirs_to_add(
    repository: Path, settings: Settings, tracked: bool
) -> None:
    place = repository / ".mcp.json"
    place.write_text('{"mcpServers": {"a": {"command": "b"}}}\n')
    if tracked:
        git(repository, "add", ".mcp.json")
        git(repository, "commit", "-qm", "servers")

    init(repository, settings)

    assert servers(repository) == {"a": {"command": "b"}, "agent-bridge": OURS}
    assert "/.mcp.json" not in (repository / ".git/info/exclude").read_text()
    assert ".mcp.json" in git(repository, "status", "--porcelain", "--", ".mcp.json")


def test_a_file_that_is_given_to_git_is_excluded_no_more(repository: Path, settings: Settings) -> None:
    init(repository, settings)
    git(repository, "add", "-f", ".mcp.json")

    init(repository, settings)

    assert "/.mcp.json" not in (repository / ".git/info/exclude").read_text()


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": "evil"}, True),
        ({**OURS, "env": {"PYTHONPATH": "."}}, False),
        ({"type": "http", "url": "http://127.0.0.1:1/mcp"}, True),
    ],
)
def test_an_entry_of_somebody_elses_is_respected_and_never_approved(
    codex_home: Path, repository: Path, settings: Settings, entry: dict[str, object], told: bool
) -> None:
    text = json.dumps({"mcpServers": {"agent-bridge": entry}})
    (repository / ".mcp.json").write_text(text)
    own = '[mcp_servers.agent-bridge]\ncommand = "mine"\n'
    (codex_home / "config.toml").write_text(own)
    project = setup.describe(repository)

    found = setup.init(project, settings)

    assert (repository / ".mcp.json").read_text() == text
    assert (codex_home / "config.toml").read_text() == own
    assert approvals(repository) == ([], [])
    texts = [notice.text for notice in found.report.notices if notice.code == "mcp-entry-respected"]
    assert len(texts) == 2
    assert ("doesn't start" in texts[0]) is told
    setup.eject(project, settings)
    assert (repository / ".mcp.json").read_text() == text
    assert (codex_home / "config.toml").read_text() == own


def test_our_own_entry_written_by_hand_is_taken_as_it_is(repository: Path, settings: Settings) -> None:
    text = json.dumps({"mcpServers": {"agent-bridge": OURS}})
    (repository / ".mcp.json").write_text(text)
    project = setup.describe(repository)

    assert "mcp-entry-respected" not in codes(setup.init(project, settings))

    assert approvals(repository) == (["mcp__agent-bridge"], ["agent-bridge"])
    setup.eject(project, settings)
    assert (repository / ".mcp.json").read_text() == text


def test_what_a_user_has_changed_in_our_entry_stays_as_it_is(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    init(repository, settings)
    place = codex_home / "config.toml"
    changed = place.read_text().replace('"AGENT_BRIDGE_PROJECT"', '"AGENT_BRIDGE_PROJECT", "MINE"')
    changed += "startup_timeout_sec = 5\n"
    place.write_text(changed)

    assert "mcp-entry-respected" in codes(init(repository, settings))

    assert place.read_text() == changed


def test_another_program_under_our_name_loses_our_approval(repository: Path, settings: Settings) -> None:
    init(repository, settings)
    project = setup.describe(repository)
    engine = Engine(project, settings)
    engine.reconcile()
    assert approvals(repository) == (["mcp__agent-bridge"], ["agent-bridge"])
    (repository / ".mcp.json").write_text('{"mcpServers": {"agent-bridge": {"command": "evil"}}}')

    report = engine.reconcile()

    assert approvals(repository) == ([], [])
    assert "mcp-approval-withdrawn" in {notice.code for notice in report.notices}
    assert servers(repository) == {"agent-bridge": {"command": "evil"}}
    engine.reconcile()
    assert approvals(repository) == ([], [])


@pytest.mark.parametrize(
    "said", [{"permissions": {"deny": ["mcp__agent-bridge"]}}, {"disabledMcpjsonServers": ["agent-bridge"]}]
)
@pytest.mark.parametrize("layer", ["user", "shared"])
def test_a_no_of_the_users_is_told_and_not_fought(
    repository: Path, settings: Settings, sealed_home: Path, said: dict[str, object], layer: str
) -> None:
    (repository / ".claude").mkdir()
    place = sealed_home / ".claude/settings.json" if layer == "user" else repository / ".claude/settings.json"
    place.write_text(json.dumps(said))

    found = init(repository, settings)

    assert str(place) in text_of(found, "claude-mcp-refused")
    assert approvals(repository) == ([], [])


def test_one_tool_that_is_denied_is_no_no_to_all(
    repository: Path, settings: Settings, sealed_home: Path
) -> None:
    denied = {"permissions": {"deny": ["mcp__agent-bridge__forget"]}, claude_mcp.ALL_ENABLED: True}
    (sealed_home / ".claude/settings.json").write_text(json.dumps(denied))

    assert "claude-mcp-refused" not in codes(init(repository, settings))

    assert approvals(repository) == (["mcp__agent-bridge"], [])


def test_a_server_that_is_switched_off_in_codex_is_told(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    (codex_home / "config.toml").write_text("mcp_servers.agent-bridge.enabled = false\n")

    assert "config.toml" in text_of(init(repository, settings), "codex-mcp-off")

    assert codex_servers(codex_home) == {"agent-bridge": {"enabled": False}}


def test_json_that_is_none_is_told_with_its_place_and_left_alone(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    broken = b'{\n  "mcpServers": {,\n}\n'
    (repository / ".mcp.json").write_bytes(broken)
    (codex_home / "config.toml").write_bytes(b"[mcp_servers\n")
    would = preview.preview_project(setup.describe(repository), settings)
    planned = {notice.code: notice.text for notice in would.notices}
    assert "line 2, column 18" in planned["mcp-settings-closed"]

    found = init(repository, settings)

    assert "line 2, column 18" in text_of(found, "mcp-settings-closed")
    assert "line 1, column" in text_of(found, "codex-config")
    assert (repository / ".mcp.json").read_bytes() == broken
    assert (codex_home / "config.toml").read_bytes() == b"[mcp_servers\n"
    assert approvals(repository) == ([], [])
    (repository / ".mcp.json").write_text("{}")
    (codex_home / "config.toml").write_text("")
    init(repository, settings)
    assert servers(repository) == {"agent-bridge": OURS}
    assert "agent-bridge" in codex_servers(codex_home)


def test_a_file_that_broke_since_does_not_stop_init_or_lose_its_record(
    repository: Path, settings: Settings
) -> None:
    project = setup.describe(repository)
    setup.init(project, settings)
    place = repository / ".mcp.json"
    good = place.read_bytes()
    place.write_bytes(b"{")

    assert "mcp-settings-closed" in codes(init(repository, settings))

    assert place.read_bytes() == b"{"
    assert Ledger(project.state).get(place) is not None
    place.write_bytes(good)
    setup.eject(project, settings)
    assert not place.exists()


def test_what_cannot_be_taken_back_is_told_and_stays_on_record(repository: Path, settings: Settings) -> None:
    project = setup.describe(repository)
    setup.init(project, settings)
    place = repository / ".mcp.json"
    good = place.read_bytes()
    place.write_bytes(b"{")

    with pytest.raises(RefusedError, match="line 1"):
        init(repository, settings, mcp=False)

    assert Ledger(project.state).get(place) is not None
    place.write_bytes(good)
    init(repository, settings, mcp=False)
    assert not place.exists()


@pytest.mark.parametrize("where", ["project", "user"])
def test_eject_does_nothing_by_halves_where_a_file_broke_since(
    codex_home: Path, repository: Path, settings: Settings, where: str
) -> None:
    project = setup.describe(repository)
    setup.init(project, settings)
    place = repository / ".mcp.json" if where == "project" else codex_home / "config.toml"
    good = place.read_bytes()
    place.write_bytes(b"{")

    refused = setup.eject(project, settings).refused

    assert [one.path for one in refused] == [str(place)]
    assert "line 1" in refused[0].note
    assert (repository / "AGENTS.md").exists()
    place.write_bytes(good)
    assert not setup.eject(project, settings).refused
    assert not place.exists()


def test_what_eject_cannot_take_out_of_the_users_files_is_told(
    codex_home: Path, repository: Path, settings: Settings, sealed_home: Path
) -> None:
    """Another project stays, which wants no MCP."""
    other = sealed_home / "other"
    other.mkdir()
    git(other, "init", "-q")
    init(other, settings, mcp=False)
    project = setup.describe(repository)
    setup.init(project, settings)
    place = codex_home / "config.toml"
    good = place.read_bytes()
    place.write_bytes(b"{")

    assert [one.path for one in setup.eject(project, settings).refused] == [str(place)]

    assert {one.root for one in projects.load_projects()} == {other, repository}
    place.write_bytes(good)
    assert not setup.eject(project, settings).refused
    assert "agent-bridge" not in codex_servers(codex_home)
    assert {one.root for one in projects.load_projects()} == {other}


@pytest.mark.parametrize("target", ["outside", ".git/config.json", ".memory/notes.json"])
def test_a_link_of_a_repository_that_leads_elsewhere_is_not_followed(
    repository: Path, settings: Settings, sealed_home: Path, target: str
) -> None:
    place = sealed_home / "secret.json" if target == "outside" else repository / target
    place.parent.mkdir(exist_ok=True)
    place.write_text("{}\n")
    (repository / ".mcp.json").symlink_to(place)

    assert "mcp-settings-closed" in codes(init(repository, settings))

    assert place.read_text() == "{}\n"


def test_a_worktree_has_a_server_file_of_its_own(
    repository: Path, settings: Settings, sealed_home: Path
) -> None:
    side = sealed_home / "side"
    git(repository, "worktree", "add", "-q", str(side))
    project = setup.describe(repository)

    setup.init(project, settings)

    assert servers(side) == servers(repository) == {"agent-bridge": OURS}
    assert git(side, "status", "--porcelain") == ""
    assert not (side / SETTINGS).exists()
    setup.eject(project, settings)
    assert not (side / ".mcp.json").exists()


def test_an_untrusted_project_changes_nothing_of_codex(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    text = f'[projects."{repository}"]\ntrust_level = "untrusted"\n'
    (codex_home / "config.toml").write_text(text)

    init(repository, settings)

    assert (codex_home / "config.toml").read_text() == text
    assert servers(repository) == {"agent-bridge": OURS}


def test_the_entry_that_a_person_takes_out_twice_stays_out(repository: Path, settings: Settings) -> None:
    project: Project = setup.describe(repository)
    setup.init(project, settings)
    engine = Engine(project, settings)
    (repository / ".mcp.json").write_text('{"mcpServers": {}}')
    engine.reconcile()
    assert servers(repository) == {"agent-bridge": OURS}
    (repository / ".mcp.json").write_text('{"mcpServers": {}}')

    engine.reconcile()

    assert servers(repository) == {}
