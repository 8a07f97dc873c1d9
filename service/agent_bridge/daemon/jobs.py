"""Jobs that run by the clock. APScheduler only says when; the main loop does the work, as all work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(slots=True)
class Job:
    """One job: what to do, how often, and how it went."""

    name: str
    interval: float
    work: Callable[[], None]
    runs: int = 0
    failures: int = 0
    last_run: float | None = None
    next_run: float | None = None


@dataclass(slots=True)
class Jobs:
    """The registry of jobs. `post` hands a job's name to the main loop, which calls `run` with it."""

    post: Callable[[str], None]
    _jobs: dict[str, Job] = field(default_factory=dict)
    _scheduler: Any = None

    def add(self, name: str, interval: float, work: Callable[[], None]) -> None:
        """Run `work` on the main loop every `interval` seconds; a job of that name is replaced."""
        self._jobs[name] = Job(name, interval, work)
        if self._scheduler is not None:
            self._schedule(self._jobs[name])

    def start(self) -> None:
        """Let the clock run."""
        from apscheduler.schedulers.background import BackgroundScheduler

        # Its log would report a job for each pass, and a missed one after each suspend.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler = BackgroundScheduler(timezone=UTC)
        for job in self._jobs.values():
            self._schedule(job)
        self._scheduler.start()

    def run(self, name: str) -> None:
        """Do a job's work now, on the calling thread; its failure is counted and raised."""
        job = self._jobs[name]
        job.last_run = time.time()
        job.next_run = job.last_run + job.interval
        job.runs += 1
        try:
            job.work()
        except Exception:
            job.failures += 1
            raise

    def describe(self) -> list[dict[str, Any]]:
        """The jobs for the status."""
        return [
            {
                "name": job.name,
                "interval_s": job.interval,
                "last_run": utc(job.last_run),
                "next_run": utc(job.next_run),
                "runs": job.runs,
                "failures": job.failures,
            }
            for job in self._jobs.values()
        ]

    def stop(self) -> None:
        """Stop the clock."""
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None

    def _schedule(self, job: Job) -> None:
        job.next_run = time.time() + job.interval
        self._scheduler.add_job(
            self.post,
            "interval",
            seconds=job.interval,
            args=[job.name],
            id=job.name,
            replace_existing=True,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )


def utc(moment: float | None) -> str | None:
    """A time.time() value as UTC in ISO 8601 with milliseconds."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
