"""Undo where somebody else wrote in between: what is ours goes, what is theirs stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge import git as git_room
from agent_bridge.config import Settings
from agent_bridge.harnesses.base import KeyEdit
from agent_bridge.projection import apply, review, setup, undo
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project

from .conftest import AGENTS, git


def test_a_line_of_the_users_between_two_of_our_writes_survives(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    exclude = repository / ".git/info/exclude"
    with exclude.open("ab") as file:
        file.write(b"build/\n")
    engine.store.add("The build lies in build/.")  # a shared fact is one more line of ours
    engine.reconcile()
    assert b"entries/" in exclude.read_bytes()
    setup.eject(project, settings)
    left = exclude.read_bytes()
    assert left.endswith(b"build/\n")
    assert b"agent-bridge" not in left


def test_a_setting_of_the_users_survives_a_key_that_was_put_back(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    place = repository / ".claude/settings.local.json"
    place.write_text(json.dumps({"permissions": {"allow": ["Bash(ls)"]}}, indent=2))
    engine.reconcile()
    assert "autoMemoryDirectory" in json.loads(place.read_bytes())
    setup.eject(project, settings)
    assert json.loads(place.read_bytes()) == {"permissions": {"allow": ["Bash(ls)"]}}


def test_gits_own_settings_survive_and_ours_go(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    git(repository, "remote", "add", "origin", "https://example.org/x.git")
    checkout = git_room.find_checkout(repository)
    assert checkout is not None
    apply.set_git(engine.ledger, checkout, [("merge.agent-bridge.driver", "of another version")])
    done = setup.eject(project, settings)
    assert not done.refused
    config = git(repository, "config", "--local", "--list")
    assert "remote.origin.url=https://example.org/x.git" in config
    assert "merge.agent-bridge" not in config


def test_a_former_value_of_git_comes_back(repository: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state")
    checkout = git_room.find_checkout(repository)
    assert checkout is not None
    git(repository, "config", "merge.agent-bridge.name", "theirs")
    apply.set_git(ledger, checkout, [("merge.agent-bridge.name", "ours")])
    git(repository, "config", "user.signingkey", "x")
    (entry,) = ledger.entries()
    undo.undo(ledger, entry)
    assert git(repository, "config", "merge.agent-bridge.name") == "theirs\n"
    assert git(repository, "config", "user.signingkey") == "x\n"


@pytest.mark.parametrize("again", [False, True])
def test_bytes_that_only_we_touched_come_back_whole(tmp_path: Path, again: bool) -> None:
    ledger = Ledger(tmp_path / "state")
    place = tmp_path / "config.json"
    first = b'{ "a" :1 }'
    place.write_bytes(first)
    apply.edit_keys(ledger, place, [KeyEdit(place, "json", ("ours",), 1, "for the test")])
    if again:
        apply.edit_keys(ledger, place, [KeyEdit(place, "json", ("more",), 2, "for the test")])
    (entry,) = ledger.entries()
    assert undo.undo(ledger, entry).outcome == "restored"
    assert place.read_bytes() == first


def test_text_in_a_block_that_no_pass_has_seen_is_kept(
    project: Project, engine: Engine, repository: Path
) -> None:
    engine.store.add("Ports are listed in ports.md.")
    engine.reconcile()
    place = repository / "AGENTS.md"
    above, mark, below = place.read_bytes().partition(b"<!-- agent-bridge:memory:hash")
    place.write_bytes(above + b"And the tunnel is closed at night.\n\n" + mark + below)
    entry = engine.ledger.get(place)
    assert entry is not None
    undo.undo(engine.ledger, entry)
    assert place.read_bytes() == AGENTS
    kept = review.load_candidates(project.state)
    assert any("the tunnel is closed at night" in one.text for one in kept)


def test_empty_lines_of_the_users_survive_a_block_that_was_taken_out_and_came_again(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    agents = repository / "AGENTS.md"
    agents.write_bytes(b"No final newline")
    (engine.store.root / "way.md").write_text("The harbour is north.\n")
    engine.reconcile()
    agents.write_bytes(b"All new.\n\n\n\n")
    engine.reconcile()
    assert b"harbour" in agents.read_bytes()
    setup.eject(project, settings)
    assert agents.read_bytes() == b"All new.\n\n\n\n"


def test_line_ends_of_ours_go_with_a_block_that_was_taken_out_and_came_again(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    (engine.store.root / "way.md").write_text("The harbour is north.\n")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    agents.write_bytes(agents.read_bytes().partition(b"<!--")[0])
    assert agents.read_bytes() == AGENTS + b"\n"
    engine.reconcile()
    assert b"harbour" in agents.read_bytes()
    setup.eject(project, settings)
    assert agents.read_bytes() == AGENTS


def test_nothing_private_is_addable_afterwards_where_the_stores_gitignore_had_gone(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    engine.store.add("The key lies under the mat.", private=True)
    engine.reconcile()
    (engine.store.root / ".gitignore").unlink()  # as a checkout does that takes its branch's with it
    setup.eject(project, settings)
    git(repository, "add", "-A")
    assert git(repository, "ls-files").split() == [".memory/.gitignore", "AGENTS.md", "CLAUDE.md"]


def test_nothing_private_of_all_projects_is_addable_afterwards_in_a_home_that_git_holds(
    project: Project, settings: Settings, sealed_home: Path
) -> None:
    git(sealed_home, "init", "-q")
    user = global_engine(settings)
    user.store.create()
    user.store.add("The key lies under the mat.", private=True)
    kettle = user.store.add("The kettle is on the stove.").fact
    user.reconcile()

    def addable() -> list[str]:
        found = git(sealed_home, "ls-files", "-co", "--exclude-standard").splitlines()
        return [name for name in found if "/agent-bridge/memory/entries/" in name]

    shared = (user.store.root / kettle.path).relative_to(sealed_home).as_posix()
    assert addable() == [shared]
    setup.eject(project, settings)
    assert addable() == []
    setup.init(project, settings)
    assert addable() == [shared]
    ignore = (user.store.root / ".gitignore").read_bytes()
    setup.eject(project, settings)
    setup.init(project, settings)
    assert (user.store.root / ".gitignore").read_bytes() == ignore
