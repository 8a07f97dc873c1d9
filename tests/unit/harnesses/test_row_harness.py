"""What follows from a row, on sites made by hand: no disk, no Git."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import (
    LEAST_BUDGET,
    NO_LIMIT,
    Carrier,
    FileKind,
    Ground,
    InstructionFile,
    Mode,
    Scope,
    Site,
)
from agent_bridge.harnesses.row import AGENTS, OwnFile, Row, Setting
from agent_bridge.harnesses.row_choice import choose, choose_global, is_set, read_names
from agent_bridge.harnesses.row_harness import RowHarness
from agent_bridge.harnesses.table import ROWS
from agent_bridge.projects import Project

ROOT = Path("/project")
HOME = Path("/home/somebody")
ENV = {"HOME": str(HOME)}
BLOCK = managed_block.splice(b"", "## Project memory\n\n### A [a]\n\nText.\n").data
THING = Row(
    name="thing",
    title="Thing",
    source="https://thing.example",
    as_of="2026-11-29",
    homes=(".thing",),
    own=OwnFile(".thing/rules/x.md", header="---\nalways: true\n---\n\n", limit=5_000),
)


def site(
    files: Mapping[str, bytes] | None = None,
    *,
    config: Mapping[str, bytes] | None = None,
    requested: tuple[str, ...] = (),
    tracked: bool = False,
    local: bool = False,
    kinds: Mapping[str, FileKind] | None = None,
) -> Site:
    """A project with these files, by their path below the root, or whole for files of the user's."""
    project = Project("id", ROOT, mode="local" if local else "shared", requested=requested)
    found = {}
    for number, (name, data) in enumerate((files or {}).items()):
        path = ROOT / name
        inside = path.is_relative_to(ROOT)
        found[str(path)] = InstructionFile(
            name if inside else str(path),
            path,
            path,
            FileKind.FILE,
            data,
            tracked=tracked,
            identity=(1, number),
            inside=inside,
        )
    for number, (name, kind) in enumerate((kinds or {}).items()):
        path = ROOT / name
        found[str(path)] = InstructionFile(name, path, path, kind, identity=(2, number))
    settings = {str(ROOT / name): data for name, data in (config or {}).items()}
    return Site(project, ROOT, env=ENV, files=found, config=settings)


def names(carriers: tuple[Carrier, ...]) -> list[str]:
    return [carrier.path.relative_to(ROOT).as_posix() for carrier in carriers]


def codes(row: Row, seen: Site) -> list[str]:
    return [notice.code for notice in RowHarness(row).notices(seen)]


def test_agents_md_comes_first_and_alone() -> None:
    (carrier,) = choose(THING, site()).carriers

    assert names((carrier,)) == [AGENTS]
    assert (carrier.create, carrier.local, carrier.readers) == (True, True, ("thing",))
    assert (carrier.kind, carrier.header) == ("block", "")
    assert "Thing" in carrier.why


def test_its_own_file_has_header_and_limit() -> None:
    seen = site(kinds={AGENTS: FileKind.DANGLING})

    (carrier,) = choose(THING, seen).carriers

    assert names((carrier,)) == [".thing/rules/x.md"]
    assert (carrier.kind, carrier.header) == ("own", "---\nalways: true\n---\n\n")
    assert 5_000 - 40 < carrier.budget + len(carrier.header) <= 5_000 - 8
    assert (carrier.create, carrier.local) == (True, True)


@pytest.mark.parametrize(
    ("files", "kinds", "expected"),
    [
        ({}, {}, [".thing/rules/x.md"]),
        ({}, {".thing/rules": FileKind.FILE}, []),
        ({}, {".thing/rules/x.md": FileKind.DANGLING}, []),
        ({}, {".thing/rules/x.md": FileKind.OTHER}, []),
        ({".thingrules": b"x"}, {}, []),
        ({".thingrules": b"x"}, {".thing/rules": FileKind.DIRECTORY}, [".thing/rules/x.md"]),
        ({".thingrules": b"x", ".thing/rules/x.md": b"x"}, {}, [".thing/rules/x.md"]),
    ],
)
def test_when_its_own_file_may_be_made(
    files: dict[str, bytes], kinds: dict[str, FileKind], expected: list[str]
) -> None:
    row = replace(THING, own=OwnFile(".thing/rules/x.md", hides=(".thingrules",)))
    chosen = choose(row, site(files, kinds={AGENTS: FileKind.DIRECTORY, **kinds}))

    assert names(chosen.carriers) == expected
    assert [notice.code for notice in chosen.notices] == ([] if expected else ["row-unserved"])


@pytest.mark.parametrize("local", [False, True])
def test_a_private_store_keeps_out_of_tracked_files(local: bool) -> None:
    seen = site({AGENTS: b"x", ".rules": b"x"}, tracked=True, local=local)
    first = replace(THING, reads=(".rules", AGENTS), first_only=True)

    assert names(choose(THING, seen).carriers) == ([".thing/rules/x.md"] if local else [AGENTS])
    assert names(choose(first, seen).carriers) == ([] if local else [".rules"])


FIRST = replace(THING, reads=("A.md", AGENTS, "B.md"), first_only=True)


@pytest.mark.parametrize(
    ("files", "expected", "notices"),
    [
        ({}, [AGENTS], []),
        ({"A.md": b""}, ["A.md"], []),
        ({"A.md": b"", AGENTS: b"", "B.md": b""}, ["A.md"], []),
        ({AGENTS: b""}, [AGENTS], []),
        ({AGENTS: b"", "B.md": b""}, [AGENTS], []),
        ({"B.md": b""}, [AGENTS], ["row-hides"]),
    ],
)
def test_the_first_of_several(files: dict[str, bytes], expected: list[str], notices: list[str]) -> None:
    chosen = choose(FIRST, site(files))

    assert names(chosen.carriers) == expected
    assert [notice.code for notice in chosen.notices] == notices


def test_an_asked_for_row_gets_its_file_besides_where_the_sources_disagree() -> None:
    asked = site(requested=("thing",))
    unsure = replace(THING, certain=False)

    assert names(choose(THING, asked).carriers) == [AGENTS]
    assert names(choose(unsure, site()).carriers) == [AGENTS]
    assert names(choose(unsure, asked).carriers) == [AGENTS, ".thing/rules/x.md"]


def test_a_limit_counts_the_users_text() -> None:
    row = replace(THING, limit=6_000)

    (roomy,) = choose(row, site({AGENTS: b"x" * 1_000})).carriers
    full = choose(row, site({AGENTS: b"x" * 4_500}))

    assert roomy.budget == 6_000 - 1_000 - 8
    assert [notice.code for notice in full.notices] == ["row-cut"]
    assert full.carriers[0].budget > 6_000


def test_doubles_need_two_files_that_carry_the_facts() -> None:
    row = replace(THING, reads=(AGENTS, "MORE.md"))

    assert codes(row, site({AGENTS: b"x", "MORE.md": b"x"})) == []
    assert codes(row, site({AGENTS: b"x", "MORE.md": BLOCK})) == ["row-double"]
    assert codes(replace(row, first_only=True), site({AGENTS: b"x", "MORE.md": BLOCK})) == []


def test_one_file_under_two_names_is_no_double() -> None:
    row = replace(THING, reads=(AGENTS, "MORE.md"))
    seen = site({AGENTS: BLOCK, "MORE.md": BLOCK})
    shared = {name: replace(file, identity=(7, 7)) for name, file in seen.files.items()}

    assert codes(row, replace(seen, files=shared)) == []


def test_a_rules_file_of_another_program_counts_where_its_folder_is_read() -> None:
    cursors = ".cursor/rules/agent-bridge.mdc"
    row = replace(THING, folders=(".cursor/rules",))

    assert codes(row, site({AGENTS: b"x", cursors: BLOCK}, tracked=True)) == ["row-double"]
    assert codes(THING, site({AGENTS: b"x", cursors: BLOCK}, tracked=True)) == []


def test_a_rules_file_of_ours_that_nobody_needs_any_more_is_about_to_go_and_no_double() -> None:
    cursors = ".cursor/rules/agent-bridge.mdc"
    row = replace(THING, folders=(".cursor/rules",))
    seen = site({AGENTS: b"x", cursors: BLOCK})

    assert codes(row, seen) == []


def test_a_file_that_only_imports_the_facts_is_no_double() -> None:
    row = replace(THING, reads=(AGENTS, "MORE.md"))
    importing = managed_block.splice(b"", "## Project memory\n\n@AGENTS.md\n").data

    assert codes(row, site({AGENTS: BLOCK, "MORE.md": importing})) == []


def test_a_rules_file_that_two_programs_share_is_read_once() -> None:
    copilot = next(row for row in ROWS if row.name == "copilot-cli")
    name = ".github/instructions/agent-bridge.instructions.md"

    read = RowHarness(copilot).reads(site({name: BLOCK}), ROOT)

    assert [one.path for one in read] == [ROOT / name]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, False),
        ({".thing.yml": b"read: AGENTS.md\n"}, True),
        ({str(HOME / ".thing.yml"): b"read: AGENTS.md\n"}, True),
        ({".thing.yml": b"read: X.md # AGENTS.md\n"}, False),
        ({".thing.yml": b"\xff\xfe\n"}, False),
    ],
)
def test_a_setting_that_the_user_has_to_make(config: dict[str, bytes], expected: bool) -> None:
    row = replace(THING, reads=(), own=None, setting=Setting((".thing.yml", "~/.thing.yml"), "Add it."))
    seen = site(config=config)

    assert is_set(row, seen) is expected
    assert names(choose(row, seen).carriers) == ([AGENTS] if expected else [])
    assert codes(row, seen) == ([] if expected else ["row-setting"])


@given(st.binary(max_size=200))
def test_settings_of_any_kind_decide_nothing_wrong(data: bytes) -> None:
    row = replace(THING, names_setting=((".thing.json",), ("context", "fileName")))

    for name in read_names(row, site(config={".thing.json": data})):
        assert ".." not in Path(name).parts
        assert not Path(name).is_absolute()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"context": {"fileName": ["X.md", "../Y.md", "/Z.md", "", 3]}}', ("X.md",)),
        (b'{"context": {"fileName": "X.md"}}', ("X.md",)),
        (b'{"context": {"fileName": {}}}', (AGENTS,)),
        (b"{", (AGENTS,)),
    ],
)
def test_names_from_a_setting(text: bytes, expected: tuple[str, ...]) -> None:
    row = replace(THING, names_setting=((".thing.json",), ("context", "fileName")))

    assert read_names(row, site(config={".thing.json": text})) == expected


def test_a_users_file_needs_a_home_of_the_program() -> None:
    row = replace(THING, user_file=OwnFile(".thing/ME.md", kind="block", limit=4_000))
    home = str(HOME / ".thing")
    there = site(kinds={home: FileKind.DIRECTORY})
    full = site({str(HOME / ".thing/ME.md"): b"x" * 3_000}, kinds={home: FileKind.DIRECTORY})

    assert choose_global(row, site()) == ()
    (carrier,) = choose_global(row, there)
    assert carrier.path == HOME / ".thing/ME.md"
    assert (carrier.scope, carrier.local, carrier.create) == (Scope.GLOBAL, False, True)
    assert LEAST_BUDGET < carrier.budget < 4_000
    assert choose_global(row, full) == ()
    assert choose_global(THING, there) == ()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_only_for_those_who_use_it(row: Row) -> None:
    harness = RowHarness(row)
    ground = Ground(Project("id", ROOT), ROOT, env=ENV)

    assert harness.only_if_used
    assert (harness.name, harness.title) == (row.name, row.title)
    assert harness.projection_mode(Scope.PROJECT) is Mode.RENDER
    for path in (
        *harness.files_wanted(ground, {}),
        *harness.config_wanted(ground, {}),
        *harness.watch_places(site()),
    ):
        assert path.is_relative_to(ROOT) or path.is_relative_to(HOME)
    assert harness.carriers(replace(site(), project=None), Scope.PROJECT) == ()
    assert harness.notices(replace(site(), project=None)) == ()
    for carrier in harness.carriers(site(), Scope.PROJECT):
        assert carrier.local
        assert carrier.budget <= NO_LIMIT


def test_what_a_session_is_shown_is_cut_at_the_limit() -> None:
    row = replace(THING, limit=10)
    (read,) = RowHarness(row).reads(site({AGENTS: "é".encode() * 20}), ROOT)

    assert (read.size, read.shown, read.text) == (40, 20, "é" * 10)
    assert read.hidden == ""
