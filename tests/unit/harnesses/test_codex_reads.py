"""Which files Codex shows and what it cuts, on a disk that is a dictionary."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.base import FileKind, InstructionFile, Read, Site
from agent_bridge.harnesses.codex_reads import Disk, reads
from agent_bridge.projects import Project

ROOT = Path("/w/project")
HOME = Path("/h/.codex")
CONFIG = "~/config.toml"


def _place(name: str) -> Path:
    return HOME / name[2:] if name.startswith("~/") else ROOT / name


def _reads(
    files: dict[str, str | FileKind], start: str = ".", *, markers: tuple[str, ...] = (".git",)
) -> tuple[Read, ...]:
    found = {_place(name): text for name, text in files.items()}

    def look(path: Path) -> InstructionFile:
        text = found.get(path)
        if isinstance(text, FileKind):
            return InstructionFile(str(path), path, path, text)
        kind = FileKind.ABSENT if text is None else FileKind.FILE
        return InstructionFile(str(path), path, path, kind, (text or "").encode())

    exists = {ROOT / marker for marker in markers}.__contains__
    config = files.get(CONFIG, "")
    site = Site(
        Project("0" * 16, ROOT),
        ROOT,
        env={"HOME": "/h"},
        config={str(HOME / "config.toml"): str(config).encode()},
    )
    return reads(site, ROOT / start, Disk(look, exists))


def _shown(found: tuple[Read, ...]) -> list[tuple[str, str]]:
    return [(_name(read.path), read.text) for read in found if not read.hidden]


def _hidden(found: tuple[Read, ...]) -> dict[str, str]:
    return {_name(read.path): read.hidden for read in found if read.hidden}


def _name(path: Path) -> str:
    return f"~/{path.relative_to(HOME)}" if path.is_relative_to(HOME) else str(path.relative_to(ROOT))


def test_the_users_file_then_from_the_root_down() -> None:
    files = {"~/AGENTS.md": "\nmine \n", "AGENTS.md": "root\n", "sub/AGENTS.md": "sub\n", "x/AGENTS.md": "x"}

    assert _shown(_reads(files, "sub/deep")) == [
        ("~/AGENTS.md", "mine"),
        ("AGENTS.md", "root\n"),
        ("sub/AGENTS.md", "sub\n"),
    ]
    assert _shown(_reads(files)) == [("~/AGENTS.md", "mine"), ("AGENTS.md", "root\n")]


def test_an_override_hides_the_file_beside_it_even_when_it_is_empty() -> None:
    files = {"AGENTS.md": "root", "AGENTS.override.md": "", "sub/AGENTS.md": "sub"}

    found = _reads(files, "sub")

    assert _shown(found) == [("sub/AGENTS.md", "sub")]
    assert "AGENTS.override.md hides it" in _hidden(found)["AGENTS.md"]
    assert _hidden(found)["AGENTS.override.md"] == "nothing stands in it"


def test_an_empty_override_of_the_users_hides_nothing() -> None:
    assert _shown(_reads({"~/AGENTS.md": "mine", "~/AGENTS.override.md": " \n"})) == [("~/AGENTS.md", "mine")]
    found = _reads({"~/AGENTS.md": "mine", "~/AGENTS.override.md": "instead"})
    assert _shown(found) == [("~/AGENTS.override.md", "instead")]
    assert "hides it" in _hidden(found)["~/AGENTS.md"]


@pytest.mark.parametrize("kind", [FileKind.DANGLING, FileKind.DIRECTORY])
def test_what_is_no_file_is_passed_over(kind: FileKind) -> None:
    files: dict[str, str | FileKind] = {
        "AGENTS.md": kind,
        "TEAM.md": "team",
        CONFIG: 'project_doc_fallback_filenames = ["TEAM.md"]',
    }

    found = _reads(files)

    assert _shown(found) == [("TEAM.md", "team")]
    assert kind.value in _hidden(found)["AGENTS.md"]
    assert "project_doc_fallback_filenames in /h/.codex/config.toml" in found[1].why


def test_the_file_that_crosses_the_limit_is_cut_and_later_ones_are_skipped() -> None:
    files = {
        "AGENTS.md": "a" * 60,
        "sub/AGENTS.md": "b" * 60,
        "sub/deep/AGENTS.md": "c",
        "~/AGENTS.md": "g" * 500,
    }
    found = _reads({**files, CONFIG: "project_doc_max_bytes = 100"}, "sub/deep")

    assert [(_name(read.path), read.size, read.shown) for read in found if not read.hidden] == [
        ("~/AGENTS.md", 500, 500),
        ("AGENTS.md", 60, 60),
        ("sub/AGENTS.md", 60, 40),
    ]
    assert [read.cut for read in found if read.cut] == [
        "the last 20 bytes: project_doc_max_bytes is 100 in /h/.codex/config.toml"
    ]
    assert "no bytes are left" in _hidden(found)["sub/deep/AGENTS.md"]


def test_a_character_that_is_cut_in_two_becomes_the_replacement_character() -> None:
    [read] = _reads({"AGENTS.md": "aü", CONFIG: "project_doc_max_bytes = 2"})

    assert (read.text, read.shown, read.size) == ("a\ufffd", 2, 3)


def test_white_space_costs_nothing() -> None:
    files = {"AGENTS.md": " " * 90, "sub/AGENTS.md": "b" * 60, CONFIG: "project_doc_max_bytes = 60"}

    found = _reads(files, "sub")

    assert _shown(found) == [("sub/AGENTS.md", "b" * 60)]
    assert not any(read.cut for read in found)


def test_a_root_marker_ends_the_way_up() -> None:
    files = {"AGENTS.md": "root", "sub/AGENTS.md": "sub", "../AGENTS.md": "above"}

    assert _shown(_reads(files, "sub", markers=("sub/.git",))) == [("sub/AGENTS.md", "sub")]
    assert _shown(_reads(files, "sub", markers=())) == [("sub/AGENTS.md", "sub")]
    marked = {**files, CONFIG: 'project_root_markers = [".x"]'}
    assert _shown(_reads(marked, "sub", markers=(".x", "sub/.git"))) == [
        ("AGENTS.md", "root"),
        ("sub/AGENTS.md", "sub"),
    ]
    found = _reads({"AGENTS.md": "root", "sub/AGENTS.md": "sub"}, "sub", markers=("sub/.git",))
    assert "above /w/project/sub, the project's root" in _hidden(found)["AGENTS.md"]


def test_an_untrusted_project_shows_the_users_file_alone() -> None:
    files = {"AGENTS.md": "root", "sub/AGENTS.md": "sub", "~/AGENTS.md": "mine"}
    untrusted = '[projects."{}"]\ntrust_level = "untrusted"\n'.format

    root = _reads({**files, CONFIG: untrusted(ROOT)}, "sub")
    assert _shown(root) == [("~/AGENTS.md", "mine")]
    assert "/w/project untrusted" in _hidden(root)["AGENTS.md"]
    below = {**files, CONFIG: untrusted(ROOT / "sub")}
    assert len(_shown(_reads(below))) == 2
    assert _shown(_reads(below, "sub")) == [("~/AGENTS.md", "mine")]


def test_a_trusted_projects_settings_count_the_nearest_first() -> None:
    trusted = f'[projects."{ROOT}"]\ntrust_level = "trusted"\n'
    files = {"AGENTS.md": "abc", ".codex/config.toml": "project_doc_max_bytes = 2"}

    [read] = _reads({**files, CONFIG: trusted})
    assert read.text == "ab"
    assert "/w/project/.codex/config.toml" in read.cut
    nearer = {**files, CONFIG: trusted, "sub/.codex/config.toml": "project_doc_max_bytes = 1"}
    assert [one.text for one in _reads(nearer, "sub")] == ["a"]
    assert [one.text for one in _reads(files)] == ["abc"]  # not trusted: its settings don't count


@given(
    st.lists(st.binary(max_size=30).map(lambda data: data.decode("latin-1")), min_size=1, max_size=5),
    st.integers(0, 80),
)
def test_no_more_is_shown_than_the_limit_allows(texts: list[str], limit: int) -> None:
    place = ["a"] * len(texts)
    files: dict[str, str | FileKind] = {
        "/".join([*place[:depth], "AGENTS.md"]): text for depth, text in enumerate(texts)
    }
    found = _reads({**files, CONFIG: f"project_doc_max_bytes = {limit}"}, "/".join(place))

    assert sum(read.shown for read in found) <= limit
    assert all(bool(read.cut) == (read.shown < read.size) for read in found if not read.hidden)
