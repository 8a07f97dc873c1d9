"""The service's stores for the tools: many writers at once, in this process and in others."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import warm
from agent_bridge import projects
from agent_bridge.config import Settings
from agent_bridge.daemon.mcp_memory import ServiceMemory
from agent_bridge.errors import DuplicateError, LockTimeoutError, NotRunningError, UsageError
from agent_bridge.mcp.ports import StorePlace
from agent_bridge.memory.adding import Added
from agent_bridge.memory.draft import Draft
from agent_bridge.memory.store import Store

PATIENCE = 60.0


@pytest.fixture
def root(sealed_home: Path) -> Path:
    root = sealed_home.resolve() / "project"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".memory").mkdir()
    projects.add_project(projects.Project(projects.id_for(root), root))
    return root


@pytest.fixture
def memory(root: Path) -> Iterator[ServiceMemory]:
    memory = ServiceMemory(Settings())
    yield memory
    memory.close()


def place_of(memory: ServiceMemory, start: Path) -> StorePlace:
    place = memory.project(start)
    assert isinstance(place, StorePlace)
    return place


def test_sixteen_at_once_lose_nothing(memory: ServiceMemory, root: Path) -> None:
    place = place_of(memory, root)

    def client(number: int) -> list[Added]:
        texts = [f"Client {number} says {turn}, and nobody else does." for turn in range(12)]
        return [memory.add(place, Draft(text=text)).result(PATIENCE) for text in texts]

    with ThreadPoolExecutor(16) as clients:
        added = [one for each in clients.map(client, range(16)) for one in each]
    facts = Store(place.store.root, state=place.store.state).scan().facts
    assert len({one.fact.id for one in added}) == len(facts) == len(added) == 192
    assert len(list((root / ".memory/entries").iterdir())) == 192
    numbers = Counter(fact.id.split("-")[1] for fact in facts)
    assert set(numbers.values()) == {1}
    assert {fact.path for fact in facts} == {one.fact.path for one in added}


def test_what_waits_is_written_in_one_go_and_each_hears_of_its_own(memory: ServiceMemory, root: Path) -> None:
    place = place_of(memory, root)
    looks = 0
    scan = place.store.scan

    def counted() -> object:
        nonlocal looks
        looks += 1
        return scan()

    texts = ["The first of these texts.", "a\0b", "The first of  these texts.", "The second of these texts."]
    with pytest.MonkeyPatch.context() as patched:
        told: list[Future[Added]] = []

        def ask() -> None:
            told.extend(memory.add(place, Draft(text=text, private=text == texts[3])) for text in texts)

        memory.serialized(place, ask)  # nobody else's turn until all four are asked for
        patched.setattr(place.store, "scan", counted)
        first = told[0].result(PATIENCE)
        last = told[3].result(PATIENCE)
    assert isinstance(told[1].exception(PATIENCE), UsageError)
    duplicate = told[2].exception(PATIENCE)
    assert isinstance(duplicate, DuplicateError)
    assert duplicate.fact_id == first.fact.id
    assert [one.fact.id for one in last.similar] == [first.fact.id]
    assert (first.is_private, last.is_private) == (False, True)
    assert looks <= 2
    assert [fact.id for fact in place.store.scan().private] == [last.fact.id]


def test_a_command_adds_while_the_service_does(memory: ServiceMemory, root: Path) -> None:
    place = place_of(memory, root)
    stop = threading.Event()
    added: list[str] = []

    def service() -> None:
        while not stop.is_set():
            draft = Draft(text=f"The service says {len(added)}.")
            added.append(memory.add(place, draft).result(PATIENCE).fact.id)

    thread = threading.Thread(target=service)
    thread.start()
    try:
        ended = [warm.run("add", f"A person says {turn} here.", cwd=root) for turn in range(4)]
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [one.code for one in ended] == [0] * 4, ended
    facts = Store(place.store.root, state=place.store.state).scan().facts
    assert len(facts) == len(added) + 4
    assert len(added) >= 4
    assert len({fact.id for fact in facts}) == len(facts)


def test_a_store_that_somebody_holds_is_told_and_the_next_one_goes(root: Path) -> None:
    memory = ServiceMemory(Settings(lock_timeout_s=0.05))
    try:
        place = place_of(memory, root)
        other = Store(place.store.root, state=place.store.state)
        with other.locked("test"):
            error = memory.add(place, Draft(text="Too early.")).exception(PATIENCE)
        assert isinstance(error, LockTimeoutError)
        assert memory.add(place, Draft(text="In time.")).result(PATIENCE).fact.body == "In time."
    finally:
        memory.close()


def test_other_settings_hold_for_stores_that_are_in_use(memory: ServiceMemory, root: Path) -> None:
    place = place_of(memory, root)
    memory.add(place, Draft(text="Use port 5000 for tests.")).result(PATIENCE)
    memory.apply(Settings(similarity=0.9, lock_timeout_s=0.05))
    other = memory.add(place, Draft(text="Use port 4000 for tests.")).result(PATIENCE)
    assert other.similar == []
    with Store(place.store.root, state=place.store.state).locked("test"):
        error = memory.add(place, Draft(text="Too early.")).exception(PATIENCE)
    assert isinstance(error, LockTimeoutError)
    memory.apply(Settings(similarity=0.5))
    assert memory.add(place_of(memory, root), Draft(text="Use port 3000 for tests.")).result(PATIENCE).similar


def test_close_waits_for_what_was_asked_for(root: Path) -> None:
    memory = ServiceMemory(Settings())
    place = place_of(memory, root)
    told = [memory.add(place, Draft(text=f"Fact {number} of a few.")) for number in range(5)]
    memory.close()
    assert all(one.done() for one in told)
    assert len(Store(place.store.root, state=place.store.state).scan().facts) == 5
    with pytest.raises(NotRunningError):
        memory.add(place, Draft(text="Too late."))


def test_a_cancelled_one_is_not_written(memory: ServiceMemory, root: Path) -> None:
    place = place_of(memory, root)
    other = Store(place.store.root, state=place.store.state)
    with other.locked("test"):
        first = memory.add(place, Draft(text="Head of all."))
        while not first.running():  # the writer has taken it, and waits for the lock
            threading.Event().wait(0.001)
        lost, kept = (memory.add(place, Draft(text=text)) for text in ("Lost one.", "Kept one."))
        assert lost.cancel()
    assert kept.result(PATIENCE).fact.body == "Kept one."
    assert {fact.body for fact in place.store.scan().facts} == {"Head of all.", "Kept one."}


def test_forgetting_takes_the_fact_out_of_the_agents_files(root: Path) -> None:
    assert warm.run("init", "--yes", cwd=root).code == 0
    memory = ServiceMemory(Settings())
    try:
        place = place_of(memory, root)
        fact = memory.add(place, Draft(text="The old server is called hydra.")).result(PATIENCE).fact
        assert warm.run("sync", cwd=root).code == 0
        index = root / ".memory/MEMORY.md"
        assert fact.path in index.read_text()
        removed = memory.remove(place, fact.id)
        assert removed.fact.id == fact.id
        assert not any("still has it" in note for note in removed.notes)
        assert fact.path not in index.read_text()
        story = warm.run("history", fact.id, cwd=root)
        assert fact.id in story.out.decode()
    finally:
        memory.close()
