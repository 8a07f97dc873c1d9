"""Many users at once, or one alone."""

from __future__ import annotations

import threading
import time

import pytest

from agent_bridge.channel.storage.gate import Gate

PATIENCE = 10.0


def test_users_are_there_together() -> None:
    gate = Gate()
    both = threading.Barrier(2, timeout=PATIENCE)

    def use() -> None:
        with gate.shared():
            both.wait()

    _run_all([use, use])


def test_nobody_is_there_with_one_alone() -> None:
    gate = Gate()
    inside = 0
    seen: list[int] = []
    lock = threading.Lock()

    def use() -> None:
        nonlocal inside
        for _ in range(200):
            with gate.shared():
                with lock:
                    inside += 1
                time.sleep(0)
                with lock:
                    inside -= 1

    def close() -> None:
        for _ in range(50):
            with gate.alone():
                seen.append(inside)
                time.sleep(0)
                seen.append(inside)

    _run_all([use, use, use, close, close])
    assert len(seen) == 200
    assert set(seen) == {0}


def test_one_who_waits_to_be_alone_goes_before_new_users() -> None:
    gate = Gate()
    order: list[str] = []
    waits = threading.Event()

    def close() -> None:
        waits.set()
        with gate.alone():
            order.append("alone")

    def use() -> None:
        with gate.shared():
            order.append("user")

    with gate.shared():
        closer = threading.Thread(target=close)
        closer.start()
        waits.wait(PATIENCE)
        while not gate._closed:
            time.sleep(0.001)
        user = threading.Thread(target=use)
        user.start()
    closer.join(PATIENCE)
    user.join(PATIENCE)
    assert order == ["alone", "user"]


def test_patience_has_an_end_and_leaves_the_gate_open() -> None:
    gate = Gate()
    with gate.shared():
        with pytest.raises(TimeoutError), gate.alone(0.01):
            pass
        _run_all([lambda: gate.shared().__enter__()])
    with gate.shared():
        pass


def test_a_failure_inside_opens_it_again() -> None:
    gate = Gate()
    for enter in (gate.shared, gate.alone):
        try:
            with enter():
                raise ValueError
        except ValueError:
            pass
    with gate.alone():
        pass


def _run_all(works: list[object]) -> None:
    threads = [threading.Thread(target=work) for work in works]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
