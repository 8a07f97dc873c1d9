"""The cache between processes: used when it is right, rebuilt when it isn't, never the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge.memory import fact_cache, scan
from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.memory.store import Store


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of 100 facts that have been at rest for long."""
    root = tmp_path / ".memory"
    root.mkdir()
    for number in range(100):
        (root / f"{number}.md").write_text(f"---\ntags: [a, b]\n---\nFact {number}.")
    now = (root / "99.md").stat().st_ctime_ns
    monkeypatch.setattr("agent_bridge.memory.scan.time.time_ns", lambda: now + 10 * scan.RACY_NS)
    (tmp_path / "state").mkdir()
    return root


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are parsed from now on."""
    paths: list[str] = []

    def parse_and_tell(path: str, data: bytes) -> Fact:
        paths.append(path)
        return parse_fact(path, data)

    monkeypatch.setattr(scan, "parse_fact", parse_and_tell)
    return paths


def test_a_second_process_parses_only_what_changed(root: Path, tmp_path: Path, parsed: list[str]) -> None:
    first = Store(root, state=tmp_path / "state").scan()
    assert len(parsed) == 100
    parsed.clear()
    assert Store(root, state=tmp_path / "state").scan() == first
    assert parsed == []
    (root / "7.md").write_text("Changed.")
    (root / "8.md").unlink()
    found = Store(root, state=tmp_path / "state").scan()
    assert parsed == ["7.md"]
    assert len(found.facts) == 99
    assert fact_cache.cache_path(tmp_path / "state").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("broken", [
    b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000,
    b'{"header": null, "files": []}',
])  # fmt: skip
def test_a_broken_cache_is_built_again(root: Path, tmp_path: Path, parsed: list[str], broken: bytes) -> None:
    first = Store(root, state=tmp_path / "state").scan()
    cache = fact_cache.cache_path(tmp_path / "state")
    good = cache.read_bytes()
    cache.write_bytes(broken)
    parsed.clear()
    assert Store(root, state=tmp_path / "state").scan() == first
    assert len(parsed) == 100
    assert cache.read_bytes() == good


@pytest.mark.parametrize(
    "row", [[], ["x.md"], ["x.md", 1, 2, 3, 4, "d", []], ["x.md", 1, 2, 3, 4, "d", None], 5]
)
def test_a_row_that_is_none_drops_the_cache(
    root: Path, tmp_path: Path, parsed: list[str], row: object
) -> None:
    first = Store(root, state=tmp_path / "state").scan()
    cache = fact_cache.cache_path(tmp_path / "state")
    raw = json.loads(cache.read_bytes())
    cache.write_text(json.dumps({**raw, "files": [*raw["files"], row]}))
    parsed.clear()
    assert Store(root, state=tmp_path / "state").scan() == first
    assert len(parsed) == 100


def test_the_cache_of_another_place_or_version_is_not_used(
    root: Path, tmp_path: Path, parsed: list[str]
) -> None:
    Store(root, state=tmp_path / "state").scan()
    cache = fact_cache.cache_path(tmp_path / "state")
    raw = json.loads(cache.read_bytes())
    for key in ("root", "version", "rules", "fields"):
        cache.write_text(json.dumps({**raw, "header": {**raw["header"], key: "other"}}))
        parsed.clear()
        Store(root, state=tmp_path / "state").scan()
        assert len(parsed) == 100


def test_a_cache_that_cannot_be_written_keeps_nobody_from_reading(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state" / "cache").write_text("in the way")
    assert len(Store(root, state=tmp_path / "state").scan().facts) == 100


def test_reading_makes_no_cache_where_there_is_no_state(root: Path, tmp_path: Path) -> None:
    Store(root, state=tmp_path / "none").scan()
    assert not (tmp_path / "none").exists()


def test_a_secret_does_not_outlive_its_removal_in_the_cache(root: Path, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "a1B2" * 9
    (root / "7.md").write_text(f"The token is {secret}.")
    (withheld,) = Store(root, state=tmp_path / "state").scan().withheld
    assert withheld.path == "7.md"
    kept = fact_cache.cache_path(tmp_path / "state").read_text()
    assert "Fact 8." in kept
    assert secret not in kept
