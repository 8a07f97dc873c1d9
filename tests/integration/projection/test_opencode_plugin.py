"""The plugin's files in a project and in OpenCode's own directory: put there, kept, taken out exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import Settings, load_settings
from agent_bridge.errors import RefusedError
from agent_bridge.projection import opencode_plugin, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project

from .conftest import git

Tree = Callable[[Path], Mapping[str, object]]


@pytest.fixture
def ledger(sealed_home: Path) -> Ledger:
    return Ledger(paths.user_state())


@pytest.fixture
def directory(sealed_home: Path) -> Path:
    return sealed_home / ".config/opencode"


def test_it_names_the_program_and_the_version(sealed_home: Path) -> None:
    program = sealed_home / 'a "b" \\c'
    text = opencode_plugin.rendered(program).decode()
    assert f"const PROGRAM = {json.dumps(str(program))} " in text
    assert 'const VERSION = "0"' not in text
    assert text.count("export ") == 1, "a second export would make OpenCode drop the plugin"


def test_it_comes_and_goes_without_a_trace(
    ledger: Ledger, directory: Path, sealed_home: Path, tree: Tree
) -> None:
    before = tree(sealed_home)

    done = opencode_plugin.install(ledger, directory, None)

    assert (done.wrote, done.seeded, done.waits) == (True, True, False)
    assert done.plugin.read_bytes() == opencode_plugin.rendered(None)
    assert (directory / "node_modules").is_dir()
    assert opencode_plugin.PACKAGE in (directory / "package-lock.json").read_text()
    again = opencode_plugin.install(ledger, directory, None)
    assert (again.wrote, again.waits) == (False, False)
    opencode_plugin.remove_plugin(ledger, directory)
    opencode_plugin.remove_seeds(ledger)
    left = {name: what for name, what in tree(sealed_home).items() if ".local/state" not in name}
    assert left.keys() - before.keys() <= {".config", ".local"}
    assert ledger.entries() == ()


def test_somebody_elses_file_of_that_name_is_kept(ledger: Ledger, directory: Path) -> None:
    file = directory / opencode_plugin.PLUGIN
    file.parent.mkdir(parents=True)
    file.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(RefusedError, match="somebody else's"):
        opencode_plugin.install(ledger, directory, None)
    assert file.read_text() == "export const Mine = async () => ({})\n"
    assert opencode_plugin.state(ledger, directory) == "foreign"
    assert not (directory / "node_modules").exists()


def test_a_plugin_that_its_user_has_changed_is_kept(ledger: Ledger, directory: Path) -> None:
    plugin = opencode_plugin.install(ledger, directory, None).plugin
    plugin.write_bytes(plugin.read_bytes() + b"// mine\n")
    assert opencode_plugin.state(ledger, directory) == "changed"
    with pytest.raises(RefusedError, match="changed"):
        opencode_plugin.install(ledger, directory, None)
    assert opencode_plugin.keep_current(ledger) == []
    (undone,) = opencode_plugin.remove_plugin(ledger, directory)
    assert undone.outcome == "untouched"
    assert plugin.read_bytes().endswith(b"// mine\n")


@pytest.mark.parametrize("kind", ["link", "directory", "nothing"])
def test_what_took_its_place_is_left_alone(
    ledger: Ledger, directory: Path, sealed_home: Path, kind: str
) -> None:
    plugin = opencode_plugin.install(ledger, directory, None).plugin
    mine = sealed_home / "mine.js"
    mine.write_bytes(plugin.read_bytes())
    plugin.unlink()
    if kind == "link":
        plugin.symlink_to(mine)
    elif kind == "directory":
        plugin.mkdir()
    assert opencode_plugin.keep_current(ledger) == [] or kind != "nothing"
    (undone,) = opencode_plugin.remove_plugin(ledger, directory)
    assert undone.outcome == "untouched"
    assert mine.exists()
    assert plugin.exists() is (kind != "nothing")


def test_another_versions_plugin_is_brought_to_ours(
    ledger: Ledger, directory: Path, monkeypatch: pytest.MonkeyPatch, sealed_home: Path
) -> None:
    program = sealed_home / "agent-bridge"
    program.touch()
    monkeypatch.setattr(opencode_plugin, "__version__", "0.0.1")
    plugin = opencode_plugin.install(ledger, directory, program).plugin
    assert opencode_plugin.state(ledger, directory) == "current"
    assert opencode_plugin.keep_current(ledger) == []
    monkeypatch.undo()
    assert opencode_plugin.state(ledger, directory) == "outdated"

    (notice,) = opencode_plugin.keep_current(ledger)

    assert notice.code == "plugin-updated"
    assert b'"0.0.1"' not in plugin.read_bytes()
    assert opencode_plugin.state(ledger, directory) == "current"
    assert [one.outcome for one in opencode_plugin.remove_plugin(ledger, directory)] == ["removed"]


def test_a_kill_between_record_and_update_is_no_change_of_the_users(
    ledger: Ledger, directory: Path, sealed_home: Path
) -> None:
    class KilledError(Exception):
        pass

    def kill() -> None:
        raise KilledError

    for program in (None, sealed_home / "elsewhere"):
        with pytest.raises(KilledError):
            opencode_plugin.install(ledger, directory, program, before_writing=kill)
        assert opencode_plugin.install(ledger, directory, program).wrote


@pytest.mark.parametrize("name", ["package.json", "bun.lock", "node_modules", "package-lock.json"])
def test_where_somebody_manages_packages_nothing_is_seeded(
    ledger: Ledger, directory: Path, name: str, tree: Tree
) -> None:
    directory.mkdir(parents=True)
    if name == "node_modules":
        (directory / name).mkdir()
    else:
        (directory / name).write_text("{}")
    before = tree(directory)

    done = opencode_plugin.install(ledger, directory, None)

    assert (done.seeded, done.waits) == (False, True)
    added = tree(directory).keys() - before.keys()
    assert added == {"plugins", "plugins/agent-bridge.js"}
    assert {path: tree(directory)[path] for path in before} == before


def test_what_was_installed_since_stays(ledger: Ledger, directory: Path) -> None:
    opencode_plugin.install(ledger, directory, None)
    (directory / "node_modules/left-pad").mkdir()
    (directory / "package-lock.json").write_text('{"lockfileVersion": 3}')
    again = opencode_plugin.install(ledger, directory, None)
    assert (again.seeded, again.waits) == (False, True)
    opencode_plugin.remove_plugin(ledger, directory)
    opencode_plugin.remove_seeds(ledger)
    assert (directory / "node_modules/left-pad").is_dir()
    assert (directory / "package-lock.json").read_text() == '{"lockfileVersion": 3}'


def test_a_seed_that_was_cleared_away_is_made_again(ledger: Ledger, directory: Path) -> None:
    opencode_plugin.install(ledger, directory, None)
    (directory / "node_modules").rmdir()
    assert not opencode_plugin.install(ledger, directory, None).waits
    (directory / "node_modules").rmdir()
    (directory / "package-lock.json").unlink()
    assert not opencode_plugin.install(ledger, directory, None).waits


@pytest.mark.parametrize("link", [".opencode", ".opencode/plugins", ".opencode/plugins/agent-bridge.js"])
def test_no_link_of_the_repositorys_is_followed(project: Project, sealed_home: Path, link: str) -> None:
    elsewhere = sealed_home / "elsewhere"
    elsewhere.mkdir()
    path = project.root / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(elsewhere / "x.js" if path.suffix else elsewhere)
    with pytest.raises(RefusedError):
        opencode_plugin.install(Ledger(project.state), project.root / ".opencode", None, within=project.root)
    assert list(elsewhere.iterdir()) == []


def test_a_directory_that_comes_later_makes_no_start_wait(
    project: Project, engine: Engine, ledger: Ledger, directory: Path
) -> None:
    own = project.root / ".opencode"
    own.mkdir()
    engine.reconcile()
    assert list(own.iterdir()) == [], "without a plugin nothing waits"
    opencode_plugin.install(ledger, directory, None)

    Engine(project, load_settings()).reconcile()

    assert (own / "package-lock.json").exists()
    assert (own / "node_modules").is_dir()
    assert "opencode" not in git(project.root, "status", "--porcelain", "-uall")


def test_eject_takes_it_out_of_the_project(project: Project, settings: Settings, engine: Engine) -> None:
    directory = project.root / ".opencode"
    opencode_plugin.install(engine.ledger, directory, None, within=project.root)
    engine.reconcile()
    assert "opencode" not in git(project.root, "status", "--porcelain", "-uall")
    assert "/.opencode/plugins/agent-bridge.js" in (project.root / ".git/info/exclude").read_text()

    done = setup.eject(project, settings)

    assert {one.outcome for one in done.undone if ".opencode" in one.path} == {"removed"}
    assert not directory.exists()
