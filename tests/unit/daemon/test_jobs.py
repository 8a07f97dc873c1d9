"""Jobs by the clock, done by the loop."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from agent_bridge.daemon.jobs import Jobs, utc


@pytest.fixture
def posted() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def jobs(posted: queue.Queue[str]) -> Iterator[Jobs]:
    made = Jobs(posted.put)
    yield made
    made.stop()


def test_the_clock_only_posts_and_the_loop_works(jobs: Jobs, posted: queue.Queue[str]) -> None:
    done: list[int] = []
    jobs.add("early", 0.05, lambda: done.append(1))
    jobs.start()
    jobs.add("late", 0.05, lambda: None)
    seen = {posted.get(timeout=5)}
    while seen != {"early", "late"}:
        seen.add(posted.get(timeout=5))
    assert not done
    jobs.run("early")
    assert done == [1]
    early = next(job for job in jobs.describe() if job["name"] == "early")
    assert early["runs"] == 1
    assert early["failures"] == 0
    assert early["last_run"] < early["next_run"]


def test_a_failure_is_counted_and_raised(jobs: Jobs) -> None:
    def fail() -> None:
        raise ValueError("broken")

    jobs.add("bad", 60, fail)
    with pytest.raises(ValueError, match="broken"):
        jobs.run("bad")
    assert jobs.describe()[0]["failures"] == 1


def test_an_added_job_takes_the_place_of_its_namesake(jobs: Jobs, posted: queue.Queue[str]) -> None:
    jobs.add("job", 3600, lambda: None)
    jobs.start()
    jobs.add("job", 0.05, lambda: None)
    assert posted.get(timeout=5) == "job"
    assert [job["interval_s"] for job in jobs.describe()] == [0.05]


def test_times_are_utc() -> None:
    assert utc(0) == "1970-01-01T00:00:00.000Z"
    assert utc(None) is None
