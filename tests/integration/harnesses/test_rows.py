"""Every row of the table, by real passes of the engine in a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import load_settings
from agent_bridge.harnesses.base import Mode, Scope
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.harnesses.row import AGENTS, Row
from agent_bridge.harnesses.row_harness import RowHarness
from agent_bridge.harnesses.row_places import below_home
from agent_bridge.harnesses.table import ROWS
from agent_bridge.memory.store import Store
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine, Report, global_engine
from agent_bridge.projects import Project

FACT = "Staging is reset every Monday."
WITH_OWN = [row for row in ROWS if row.own is not None]
WITH_USER_FILE = [row for row in ROWS if row.user_file is not None]
EARLY = [(row, name) for row in ROWS if row.first_only for name in row.reads[: row.reads.index(AGENTS)]]
LATE = [(row, name) for row in ROWS if row.first_only for name in row.reads[row.reads.index(AGENTS) + 1 :]]


def named(value: object) -> str:
    return value.name if isinstance(value, Row) else str(value)


@pytest.fixture
def root(sealed_home: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, on a machine whose only program is Git."""
    bare = short_tmp / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(bare))
    root = sealed_home / "work"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    return root


Pass = Callable[..., tuple[Engine, Report]]


@pytest.fixture
def run(root: Path, sealed_home: Path) -> Pass:
    """Have a user with these harnesses set the project up and remember something."""

    def build(*used: Row, facts: int = 1, asked: tuple[str, ...] = ()) -> tuple[Engine, Report]:
        for row in used:
            use(row)
        without_home = tuple(row.name for row in used if not row.homes)
        settings = load_settings()
        project = replace(setup.describe(root), requested=(*without_home, *asked))
        setup.init(project, settings)
        engine = Engine(project, settings)
        if not engine.store.scan().facts:
            engine.store.add(FACT)
        for number in range(1, facts):
            text = f"# Rack {number}\n\nThe cable of rack {number} is {number * 13} metres long.\n"
            (project.store / f"rack-{number:04}.md").write_text(text)
        engine.reconcile()
        return engine, engine.reconcile()

    return build


def use(row: Row) -> None:
    for home in row.homes[:1]:
        below_home(home, os.environ).mkdir(parents=True, exist_ok=True)


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return done.stdout


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", name)
    return path


def lead_agents_md_out(root: Path) -> None:
    """Nothing may be written into an AGENTS.md that leads out of the repository."""
    (root.parent / "elsewhere.md").write_text("Somebody else's.\n")
    (root / AGENTS).symlink_to(root.parent / "elsewhere.md")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a link")


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        and not path.is_relative_to(root / ".git")
        and not path.is_relative_to(root / ".memory")
    }


def readers(engine: Engine) -> dict[str, tuple[str, ...]]:
    """Who reads each target of the project, by its name."""
    root = engine.survey().sites[0].checkout
    targets = engine.survey().layout.targets
    return {target.path.relative_to(root).as_posix(): target.readers for target in targets}


def codes(report: Report) -> set[str]:
    return {notice.code for notice in report.notices}


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_harness_in_use_gets_the_fact_by_the_file_that_it_reads(row: Row, run: Pass, root: Path) -> None:
    engine, report = run(row)
    served = [name for name, who in readers(engine).items() if row.name in who]
    if row.setting is not None or row.remote:
        assert served == []
        assert {"row-setting", "row-remote"} & codes(report)
        return
    assert row.own is not None or row.shares
    assert served == [AGENTS if row.shares else row.own.path if row.own else ""]
    data = (root / served[0]).read_text()
    assert data.count(FACT) == 1
    assert data.startswith(row.own.header if row.own and served[0] == row.own.path else "<!-- agent-bridge")
    assert "row-unserved" not in codes(report)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_what_is_made_is_kept_out_of_git_and_goes_with_eject(row: Row, run: Pass, root: Path) -> None:
    before = tree(root)
    engine, _ = run(row)
    status = git(root, "status", "--porcelain", "-uall").splitlines()
    assert [line for line in status if ".memory/" not in line] == []
    assert tree(root) != before

    assert engine.project is not None
    done = setup.eject(engine.project, load_settings())

    assert done.refused == []
    assert tree(root) == before


@pytest.mark.parametrize("row", WITH_OWN, ids=named)
def test_its_own_file_is_the_way_where_agents_md_cant_be(row: Row, run: Pass, root: Path) -> None:
    assert row.own is not None
    if row.setting or row.remote:
        pytest.skip("it has no file of its own")
    lead_agents_md_out(root)
    before = tree(root)
    engine, report = run(row)
    data = (root / row.own.path).read_text()
    assert data.startswith(row.own.header + "<!-- agent-bridge:memory:start")
    assert data.count(FACT) == 1
    assert "row-unserved" not in codes(report)
    assert (root.parent / "elsewhere.md").read_text() == "Somebody else's.\n"

    assert engine.project is not None
    setup.eject(engine.project, load_settings())

    assert tree(root) == before
    assert not (root / row.own.path).exists()


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.shares and not row.own and not row.setting], ids=named
)
def test_a_harness_without_another_way_is_told(row: Row, run: Pass, root: Path) -> None:
    lead_agents_md_out(root)
    engine, report = run(row)

    assert "row-unserved" in codes(report)
    assert report.left_out[row.title]
    assert row.name not in {reader for who in readers(engine).values() for reader in who}


@pytest.mark.parametrize("row", [row for row in WITH_OWN if row.own and row.own.kind == "own"], ids=named)
def test_a_users_file_of_that_name_is_kept_and_reported(row: Row, run: Pass, root: Path) -> None:
    assert row.own is not None
    lead_agents_md_out(root)
    theirs = write(root, row.own.path, "---\nmine: true\n---\n\nMy own words.\n")
    _, report = run(row)

    assert theirs.read_text() == "---\nmine: true\n---\n\nMy own words.\n"
    assert "name-taken" in codes(report)


@pytest.mark.parametrize("row", [row for row in WITH_OWN if row.own and row.own.kind == "block"], ids=named)
def test_a_file_that_people_write_in_keeps_their_words(row: Row, run: Pass, root: Path) -> None:
    assert row.own is not None
    lead_agents_md_out(root)
    theirs = write(root, row.own.path, "My own words.\n")
    engine, _ = run(row)

    assert theirs.read_text().startswith("My own words.\n")
    assert FACT in theirs.read_text()
    assert engine.project is not None
    setup.eject(engine.project, load_settings())
    assert theirs.read_text() == "My own words.\n"


@pytest.mark.parametrize("row", [row for row in WITH_OWN if row.own and row.own.hides], ids=named)
def test_a_file_that_would_hide_another_is_not_made(row: Row, run: Pass, root: Path) -> None:
    assert row.own is not None
    lead_agents_md_out(root)
    write(root, row.own.hides[-1], "Their rules.\n")
    _, report = run(row)

    assert not (root / row.own.path).exists()
    assert "row-unserved" in codes(report)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_one_that_nobody_uses_gets_nothing(row: Row, run: Pass, root: Path) -> None:
    for marker in row.markers:  # a colleague's files don't make it used
        if not (root / marker).exists() and marker not in row.reads:
            (root / marker).mkdir(parents=True)
    engine, report = run()

    assert row.name not in {reader for who in readers(engine).values() for reader in who}
    assert not {code for code in codes(report) if code.startswith("row-")}
    if row.own is not None:
        assert not (root / row.own.path).exists()


@pytest.mark.parametrize(
    "row", [row for row in WITH_OWN if row.name in ("windsurf", "cursor", "amazon-q")], ids=named
)
def test_two_thousand_facts_stay_within_its_limit(row: Row, run: Pass, root: Path) -> None:
    assert row.own is not None
    lead_agents_md_out(root)
    _, report = run(row, facts=2000)

    text = (root / row.own.path).read_text()
    assert 8_000 < len(text) <= min(row.own.limit, 16_384 + len(row.own.header) + 8)
    assert len(report.left_out[str(root / row.own.path)]) > 1_000
    assert "Left out here" in "".join(text.splitlines()[-6:])


def test_a_limit_holds_for_agents_md_where_that_harness_is_in_use_and_only_there(
    run: Pass, root: Path
) -> None:
    windsurf = next(row for row in ROWS if row.name == "windsurf")
    engine, _ = run(facts=600)
    assert len((root / AGENTS).read_text()) > windsurf.limit

    use(windsurf)
    Engine(engine.project, load_settings()).reconcile()

    assert 8_000 < len((root / AGENTS).read_text()) <= windsurf.limit


def test_a_text_of_the_users_that_fills_the_limit_is_told(run: Pass, root: Path) -> None:
    windsurf = next(row for row in ROWS if row.name == "windsurf")
    write(root, AGENTS, "x" * 11_990 + "\n")
    _, report = run(windsurf)

    assert FACT in (root / AGENTS).read_text()
    assert "row-cut" in codes(report)


@pytest.mark.parametrize(("row", "name"), EARLY, ids=named)
def test_the_block_goes_into_the_file_that_is_read_in_the_place_of_agents_md(
    row: Row, name: str, run: Pass, root: Path
) -> None:
    theirs = write(root, name, "Their rules.\n")
    engine, _ = run(row)

    assert theirs.read_text().startswith("Their rules.\n")
    assert FACT in theirs.read_text()
    assert row.name in readers(engine)[name]
    assert row.name not in readers(engine)[AGENTS]
    assert engine.project is not None
    setup.eject(engine.project, load_settings())
    assert theirs.read_text() == "Their rules.\n"


@pytest.mark.parametrize(("row", "name"), LATE, ids=named)
def test_a_new_agents_md_that_hides_another_file_from_it_is_told(
    row: Row, name: str, run: Pass, root: Path
) -> None:
    write(root, name, "Their rules.\n")
    engine, report = run(row)

    assert row.name in readers(engine)[AGENTS]
    assert (root / AGENTS).is_file()
    # What it says while AGENTS.md is only about to be made, as the plan shows it.
    assert engine.project is not None
    setup.eject(engine.project, load_settings())
    site = observe_site(engine.project, root)
    assert "row-hides" in {notice.code for notice in RowHarness(row).notices(site)}
    assert not any(notice.code == "row-unserved" for notice in report.notices)


@pytest.mark.parametrize(("row", "name"), [each for each in LATE if each[1] == "CLAUDE.md"], ids=named)
def test_where_no_agents_md_comes_the_later_file_carries_the_block(
    row: Row, name: str, run: Pass, root: Path, sealed_home: Path
) -> None:
    (sealed_home / ".codex").mkdir()
    (sealed_home / ".codex/config.toml").write_text(f'[projects."{root}"]\ntrust_level = "untrusted"\n')
    write(root, name, "Their rules.\n")
    engine, _ = run(row)

    assert not (root / AGENTS).exists()
    assert row.name in readers(engine)[name]
    assert FACT in (root / name).read_text()


def test_both_files_get_the_block_where_nobody_knows_which_is_read(run: Pass, root: Path) -> None:
    junie = next(row for row in ROWS if row.name == "junie")
    write(root, AGENTS, "Tabs.\n")
    write(root, ".junie/guidelines.md", "Spaces.\n")
    engine, report = run(junie)

    for name in (AGENTS, ".junie/guidelines.md"):
        assert FACT in (root / name).read_text()
        assert "junie" in readers(engine)[name]
    assert "row-double" not in codes(report)


@pytest.mark.parametrize("name", ["copilot", "augment", "crush"])
def test_a_harness_that_reads_two_carriers_is_told(name: str, run: Pass, root: Path) -> None:
    row = next(row for row in ROWS if row.name == name)
    write(root, "CLAUDE.md", "Brief.\n")
    _, report = run(row)
    assert FACT in (root / "CLAUDE.md").read_text()

    told = [notice for notice in report.notices if notice.code == "row-double"]

    assert len(told) == 1
    assert AGENTS in told[0].text
    assert "CLAUDE.md" in told[0].text


@pytest.mark.parametrize("name", ["copilot", "augment", "crush", "cursor", "zed"])
def test_one_carrier_is_no_double(name: str, run: Pass, root: Path) -> None:
    row = next(row for row in ROWS if row.name == name)
    _, report = run(row)

    assert "row-double" not in codes(report)


def test_an_own_file_on_request_is_a_double_that_is_told(run: Pass, root: Path) -> None:
    trae = next(row for row in ROWS if row.name == "trae")
    assert trae.own is not None
    _, report = run(trae)
    assert not (root / trae.own.path).exists()
    assert "row-double" not in codes(report)

    _, report = run(trae, asked=("trae",))

    assert FACT in (root / trae.own.path).read_text()
    assert "row-double" in codes(report)


def test_aider_is_served_once_its_settings_name_agents_md(run: Pass, root: Path) -> None:
    aider = next(row for row in ROWS if row.name == "aider")
    engine, report = run(aider)
    assert "row-setting" in codes(report)

    write(root, ".aider.conf.yml", "# AGENTS.md\nread: CONVENTIONS.md\n")
    assert "row-setting" in codes(engine.reconcile())
    write(root, ".aider.conf.yml", "read: [CONVENTIONS.md, AGENTS.md]\n")
    report = engine.reconcile()

    assert "row-setting" not in codes(report)
    assert "aider" in readers(engine)[AGENTS]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"context": {"fileName": "TEAM.md"}}', "QWEN.md"),
        ('{"context": {"fileName": ["TEAM.md", "AGENTS.md"]}}', AGENTS),
        ('{"context": {"fileName": ["../x", 7]}}', "QWEN.md"),
        ('{"context": {"fileName": 7}}', AGENTS),
        ("{broken", AGENTS),
    ],
)
def test_names_that_a_setting_replaces(text: str, expected: str, run: Pass, root: Path) -> None:
    qwen = next(row for row in ROWS if row.name == "qwen")
    write(root, ".qwen/settings.json", text)
    engine, _ = run(qwen)

    assert [name for name, who in readers(engine).items() if "qwen" in who] == [expected]


def test_a_clone_elsewhere_is_served_once_git_tracks_the_file(run: Pass, root: Path) -> None:
    agent = next(row for row in ROWS if row.name == "copilot-agent")
    engine, report = run(agent)
    assert "row-remote" in codes(report)

    git(root, "add", "-f", AGENTS)
    git(root, "commit", "-q", "-m", "shared")
    report = engine.reconcile()

    assert "copilot-agent" in readers(engine)[AGENTS]
    assert "row-remote" not in codes(report)


@pytest.mark.parametrize("row", WITH_USER_FILE, ids=named)
def test_the_users_facts_reach_it_in_every_project(row: Row, run: Pass, sealed_home: Path) -> None:
    assert row.user_file is not None
    run(row)
    store = Store(paths.global_store(), scope="global", state=paths.user_state())
    store.create()
    store.add("I drink tea.")
    engine = global_engine(load_settings())
    engine.reconcile()

    path = below_home(row.user_file.path, os.environ)
    assert path.read_text().startswith(row.user_file.header)
    assert path.read_text().count("I drink tea.") == 1
    assert RowHarness(row).projection_mode(Scope.GLOBAL) is Mode.RENDER
    setup.eject(setup.listed(sealed_home / "work"), load_settings())
    assert not path.exists()


@pytest.mark.parametrize("row", WITH_USER_FILE, ids=named)
def test_nothing_is_made_for_the_user_where_its_home_is_missing(
    row: Row, run: Pass, sealed_home: Path
) -> None:
    assert row.user_file is not None
    run()
    store = Store(paths.global_store(), scope="global", state=paths.user_state())
    store.create()
    store.add("I drink tea.")
    global_engine(load_settings()).reconcile()

    assert not below_home(row.user_file.path, os.environ).exists()


@pytest.mark.parametrize("row", WITH_USER_FILE, ids=named)
def test_a_home_that_is_kept_in_git_gets_no_private_fact(row: Row, run: Pass, sealed_home: Path) -> None:
    assert row.user_file is not None
    (sealed_home / ".gitignore").write_text("work/\n")
    git(sealed_home, "init", "-q")
    run(row)
    store = Store(paths.global_store(), scope="global", state=paths.user_state())
    store.create()
    store.add("I drink tea.")
    store.add("My knee hurts.", private=True)
    global_engine(load_settings()).reconcile()

    text = below_home(row.user_file.path, os.environ).read_text()
    assert "I drink tea." in text
    assert "My knee hurts." not in text


@pytest.mark.parametrize("row", WITH_USER_FILE, ids=named)
def test_a_home_of_the_users_alone_gets_his_private_facts(row: Row, run: Pass) -> None:
    assert row.user_file is not None
    run(row)
    store = Store(paths.global_store(), scope="global", state=paths.user_state())
    store.create()
    store.add("My knee hurts.", private=True)
    global_engine(load_settings()).reconcile()

    assert "My knee hurts." in below_home(row.user_file.path, os.environ).read_text()


def test_reading_order_of_the_first_of_several(run: Pass, root: Path) -> None:
    zed = next(row for row in ROWS if row.name == "zed")
    write(root, ".rules", "Their rules.\n")
    write(root, "CLAUDE.md", "Brief.\n")
    engine, _ = run(zed)
    assert engine.project is not None
    site = observe_site(engine.project, root)

    found = {read.path.name: read for read in RowHarness(zed).reads(site, root)}

    assert list(found) == [".rules", AGENTS, "CLAUDE.md"]
    assert FACT in found[".rules"].text
    assert found[".rules"].hidden == ""
    assert ".rules comes first" in found[AGENTS].hidden
    assert (found[AGENTS].shown, found[AGENTS].text) == (0, "")


def test_reading_from_below_the_root(run: Pass, root: Path) -> None:
    by_name = {row.name: row for row in ROWS}
    write(root, "sub/AGENTS.md", "Nested.\n")
    engine, _ = run(by_name["factory"], by_name["cursor"])
    assert engine.project is not None
    site = observe_site(engine.project, root)

    def read(name: str, start: Path) -> list[str]:
        return [str(one.path.relative_to(root)) for one in RowHarness(by_name[name]).reads(site, start)]

    assert read("factory", root / "sub") == ["AGENTS.md", "sub/AGENTS.md"]
    assert read("factory", root) == ["AGENTS.md"]
    assert read("cursor", root / "sub") == ["AGENTS.md"]
    assert read("factory", root.parent) == ["AGENTS.md"]


def test_a_program_on_path_counts_as_use(run: Pass, root: Path, short_tmp: Path) -> None:
    factory = RowHarness(next(row for row in ROWS if row.name == "factory"))
    assert not factory.detect(os.environ)
    program = short_tmp / "bin" / "droid"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert factory.detect(os.environ)


def test_a_private_store_puts_nothing_into_tracked_files(run: Pass, root: Path) -> None:
    by_name = {row.name: row for row in ROWS}
    write(root, AGENTS, "Tabs.\n")
    write(root, ".rules", "Their rules.\n")
    use(by_name["cursor"])
    use(by_name["zed"])
    settings = load_settings()
    project = setup.describe(root, mode="local")
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add(FACT)
    engine.reconcile()
    report = engine.reconcile()

    assert (root / AGENTS).read_text() == "Tabs.\n"
    assert (root / ".rules").read_text() == "Their rules.\n"
    assert FACT in (root / ".cursor/rules/agent-bridge.mdc").read_text()
    assert git(root, "status", "--porcelain") == ""
    assert "row-unserved" in codes(report)


def test_a_second_pass_writes_nothing(run: Pass, root: Path) -> None:
    engine, _ = run(*(row for row in ROWS if row.homes))
    before = tree(root)

    assert Engine(engine.project, load_settings()).reconcile().wrote == ()
    assert tree(root) == before


def test_a_project_is_needed(root: Path) -> None:
    for row in ROWS:
        site = observe_site(Project("x", root), root)
        assert RowHarness(row).carriers(replace(site, project=None), Scope.PROJECT) == ()
