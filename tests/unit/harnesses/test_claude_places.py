"""The slug, against directories that Claude Code 2.1.332 made itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.base import Ground
from agent_bridge.harnesses.claude_places import memory_directory, slug
from agent_bridge.projects import Project


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/x/.hidden", "-x--hidden"),
        ("/a/b.c", "-a-b-c"),
        ("/a/b_c", "-a-b-c"),
        ("/a b/(c)~d", "-a-b--c--d"),
        ("/p\u00e9", "-p-"),
        ("/pe\u0301", "-pe-"),
        ("/p\U0001f600", "-p--"),
        ("/tmp/hn/Pr0j-1", "-tmp-hn-Pr0j-1"),
    ],
)
def test_each_other_code_unit_becomes_a_dash(path: str, expected: str) -> None:
    assert slug(path) == expected


def java_hash(text: str) -> int:
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8) + data[at + 1]) % 2**32
    return value if value < 2**31 else value - 2**32


def test_a_slug_of_200_units_stays_and_a_longer_one_is_cut_and_hashed() -> None:
    exact = "/" + "a" * 199
    assert slug(exact) == "-" + "a" * 199
    longer = slug(exact + "b")
    assert longer[:201] == "-" + "a" * 199 + "-"
    assert int(longer[201:], 36) == abs(java_hash(exact + "b"))


LONG = "/tmp/hn/long/" + "/".join(f"directory-number-{number:02}" for number in range(12))


def test_the_hash_is_the_one_that_claude_computes() -> None:
    assert slug(LONG).rpartition("-")[2] == "4wtd1i"


@given(st.text(min_size=1, max_size=500))
def test_every_path_gives_one_plain_name(path: str) -> None:
    name = slug("/" + path)
    assert name.isascii()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
    assert len(name) <= 200 + 1 + 7


def test_a_worktree_shares_the_main_checkouts_directory_and_home_stays_as_spelled(tmp_path: Path) -> None:
    home = tmp_path / "real"
    home.mkdir()
    link = tmp_path / "link"
    link.symlink_to(home)
    project = Project("0" * 16, Path("/srv/main"))
    ground = Ground(project, Path("/srv/tree"), is_main=False, env={"HOME": str(link)})
    assert memory_directory(ground) == link / ".claude/projects/-srv-main/memory"
    moved = Ground(project, Path("/srv/main"), env={"HOME": str(link), "CLAUDE_CONFIG_DIR": "/conf"})
    assert memory_directory(moved) == Path("/conf/projects/-srv-main/memory")
