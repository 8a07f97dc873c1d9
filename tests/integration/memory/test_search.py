"""The cache on a real disk: kept in step, private, rebuilt when it is broken, and not needed."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_bridge.memory.search import Search
from agent_bridge.memory.store import Store

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture
def store(tmp_path: Path, sealed_home: Path) -> Store:
    one = Store(tmp_path / ".memory", state=tmp_path / "state")
    one.create()
    return one


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return Search(tmp_path / "cache" / "index.sqlite")


def file_of(search: Search) -> Path:
    """Its cache."""
    assert search.cache_file is not None
    return search.cache_file


def found(search: Search, store: Store, *words: str) -> list[str]:
    return sorted(hit.fact.body for hit in search.query(store.scan(), words))


def cached(search: Search, words: str) -> list[str]:
    """Bodies in the cache itself that hold `words`."""
    with sqlite3.connect(file_of(search)) as database:
        return [
            row[0] for row in database.execute("SELECT body FROM texts WHERE body LIKE ?", (f"%{words}%",))
        ]


def test_an_edited_file_is_found_by_its_new_text_only(store: Store, search: Search) -> None:
    path = store.root / store.add("The harbour is north").fact.path
    assert found(search, store, "harbour") == ["The harbour is north"]
    path.write_text(path.read_text().replace("harbour", "airport"))
    assert found(search, store, "harbour") == []
    assert found(search, store, "airport") == ["The airport is north"]
    assert cached(search, "harbour") == []


def test_a_removed_fact_leaves_the_cache(store: Store, search: Search) -> None:
    fact = store.add("The harbour is north").fact
    store.add("Something else")
    found(search, store, "harbour")
    store.remove(fact.id)
    assert found(search, store, "harbour") == []
    assert b"harbour" not in file_of(search).read_bytes()


def test_cache_is_private(store: Store, search: Search) -> None:
    store.add("The harbour is north")
    found(search, store, "harbour")
    assert cached(search, "harbour") == ["the harbour is north"]
    assert stat.S_IMODE(file_of(search).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(search).parent.stat().st_mode) == 0o700


def test_a_secret_is_found_but_not_cached(store: Store, search: Search) -> None:
    store.add(f"The harbour's token is {SECRET}")
    store.add("The harbour is north")
    assert found(search, store, "harbour") == ["The harbour is north", f"The harbour's token is {SECRET}"]
    assert found(search, store, "north") == ["The harbour is north"]
    assert cached(search, "token") == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"this is no database" * 100),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:3000]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096)),
        lambda path: sqlite3.connect(path).executescript("DROP TABLE facts").close(),
        lambda path: sqlite3.connect(path).executescript("PRAGMA user_version = 99").close(),
    ],
    ids=["garbage", "emptied", "cut off", "overwritten", "a table missing", "another version"],
)
def test_a_broken_cache_is_rebuilt(store: Store, search: Search, damage: object) -> None:
    store.add("The harbour is north")
    found(search, store, "harbour")
    assert callable(damage)
    damage(file_of(search))
    assert found(search, store, "harbour") == ["The harbour is north"]
    assert cached(search, "harbour") == ["the harbour is north"]


@pytest.mark.parametrize("obstacle", ["a file for its directory", "a directory for its file"])
def test_without_a_cache_the_facts_are_enough(store: Store, search: Search, obstacle: str) -> None:
    store.add("The harbour is north")
    if obstacle == "a file for its directory":
        file_of(search).parent.write_text("")
    else:
        file_of(search).mkdir(parents=True)
    assert found(search, store, "harbour") == ["The harbour is north"]


def test_a_cache_that_another_process_holds(
    store: Store, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_bridge.memory.search._BUSY_S", 0.05)
    store.add("The harbour is north")
    found(search, store, "harbour")
    holder = sqlite3.connect(file_of(search), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert found(search, store, "harbour") == ["The harbour is north"]
    holder.close()
    assert file_of(search).exists()


def test_many_processes_at_once(store: Store, search: Search) -> None:
    for number in range(40):
        (store.root / f"fact{number}.md").write_text(f"harbour {number}")
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from agent_bridge.memory.search import Search\nfrom agent_bridge.memory.store import Store\n"
        "root, state, cache = map(Path, sys.argv[1:])\n"
        "for number in range(5):\n"
        "    (root / f'{cache.name}-{sys.argv[2][-1]}.md').write_text(f'other {number}')\n"
        "    hits = Search(cache).query(Store(root, state=state).scan(), ['harbour'], 100)\n"
        "    assert len(hits) == 40, len(hits)\n"
    )
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                script,
                str(store.root),
                str(store.state.with_name(f"state{one}")),
                str(file_of(search)),
            ],
            stderr=subprocess.PIPE,
        )
        for one in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    assert len(cached(search, "harbour")) == 40
