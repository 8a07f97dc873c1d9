"""Several processes and threads on one store."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_bridge.errors import DuplicateError
from agent_bridge.memory import scan
from agent_bridge.memory.adding import EDITS_WITHIN_S
from agent_bridge.memory.draft import Draft
from agent_bridge.memory.scan import Known
from agent_bridge.memory.store import Store

ADDER = """
import sys
from pathlib import Path
from agent_bridge.errors import DuplicateError
from agent_bridge.memory.store import Store

store = Store(Path(sys.argv[1]), state=Path(sys.argv[2]))
refused = 0
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    try:
        store.add(sys.argv[3].format(number))
    except DuplicateError:
        refused += 1
print(refused)
"""


def _two_adders(root: Path, state: Path, texts: tuple[str, str]) -> list[int]:
    """Run two processes that add 200 facts each, begun at the same moment; how many each was refused."""
    adders = [
        subprocess.Popen(
            [sys.executable, "-c", ADDER, str(root), str(state), text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for text in texts
    ]
    for adder in adders:
        assert adder.stdout is not None
        assert adder.stdout.readline() == "ready\n"
    for adder in adders:
        assert adder.stdin is not None
        adder.stdin.write("go\n")
        adder.stdin.flush()
    answers = [adder.communicate(timeout=240)[0] for adder in adders]
    assert [adder.returncode for adder in adders] == [0, 0]
    return [int(answer) for answer in answers]


def test_two_processes_add_200_facts_each(tmp_path: Path) -> None:
    root, state = tmp_path / ".memory", tmp_path / "state"
    assert _two_adders(root, state, ("The first says {}.", "The second says {}.")) == [0, 0]
    found = Store(root, state=state).scan()
    assert len(list((root / "entries").glob("*.md"))) == 400
    assert len({fact.id for fact in found.facts}) == 400
    assert len({fact.id[:13] for fact in found.facts}) == 400
    assert found.problems == ()
    assert [path.name for path in root.rglob("*.tmp")] == []


def test_of_two_processes_with_the_same_200_texts_each_text_is_added_once(tmp_path: Path) -> None:
    root, state = tmp_path / ".memory", tmp_path / "state"
    refused = _two_adders(root, state, ("The fact {}.", "The  fact {}."))
    assert sum(refused) == 200
    assert len({fact.text_hash for fact in Store(root, state=state).scan().facts}) == 200
    assert len(list((root / "entries").glob("*.md"))) == 200


def test_eight_writers_straight_into_the_directory(sealed_home: Path, tmp_path: Path) -> None:
    project = sealed_home / "project"
    root = project / ".memory"
    (root / "entries").mkdir(parents=True)
    store = Store(root, state=tmp_path / "state")

    def write(writer: int) -> None:
        for number in range(100):
            (root / "entries" / f"{writer}-{number}.md").write_text(f"Writer {writer}, fact {number}.")

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(write, writer) for writer in range(8)]
        while not all(job.done() for job in jobs):
            store.scan()
        for job in jobs:
            job.result()
    assert len(store.scan().facts) == 800
    command = [sys.executable, "-m", "agent_bridge.cli.entry", "list", "--json", "--project", str(project)]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert len({fact["id"] for fact in listed["data"]["facts"]}) == 800


def test_one_text_by_many_threads(tmp_path: Path) -> None:
    def add(_: int) -> bool:
        try:
            Store(tmp_path / ".memory", state=tmp_path / "state").add("The only one.")
        except DuplicateError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1


def _foreign(root: Path, name: str, text: str) -> None:
    """A file as somebody writes it who takes no lock and replaces what was there."""
    aside = root / "entries" / f".{name}.tmp"
    aside.write_text(f"---\nname: x\n---\n\n{text}\n")
    aside.replace(root / "entries" / name)


def test_who_adds_fact_upon_fact_sees_at_once_what_others_write(tmp_path: Path) -> None:
    root = tmp_path / ".memory"
    store = Store(root, state=tmp_path / "state")
    store.add("The first of all.")
    _foreign(root, "theirs.md", "Written by somebody else.")
    with pytest.raises(DuplicateError):
        store.add("Written by somebody else.")
    _foreign(root, "theirs.md", "Replaced by somebody else.")
    with pytest.raises(DuplicateError):
        store.add("Replaced by somebody else.")
    assert store.add("Written by somebody else.").fact.body == "Written by somebody else."
    (root / "entries" / "theirs.md").unlink()
    assert store.add("Replaced by somebody else.").fact.body == "Replaced by somebody else."


def test_what_is_edited_in_place_is_seen_within_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".memory"
    store = Store(root, state=tmp_path / "state")
    path = root / store.add("The first of all.").fact.path
    with path.open("a") as file:
        file.write("And more.\n")
    later = time.monotonic() + EDITS_WITHIN_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(DuplicateError):
        store.add("The first of all. And more.")


def test_facts_upon_facts_are_not_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".memory"
    store = Store(root, state=tmp_path / "state")
    store.add_all([Draft(text=f"Word{number} by itself.") for number in range(50)])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    store.scan()
    looked: list[str] = []
    read = scan.read

    def reading(root: str, path: str, real: str | None, before: Known | None) -> Known | None:
        looked.append(path)
        return read(root, path, real, before)

    monkeypatch.setattr(scan, "read", reading)
    for number in range(50, 60):
        store.add(f"Word{number} by itself.")
    assert len(looked) == 10  # of which each was new
    assert len(store.scan().facts) == 60
