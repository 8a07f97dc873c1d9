"""How the watching stands, in the words of the status document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_bridge.watch.watches import WatchReport, WatchSet, WatchState


def describe_watching(watches: WatchSet, *, overflows: int, missed: int) -> dict[str, Any]:
    """The document's `watch`."""
    reports = watches.reports()
    return {
        "backend": watches.backend,
        "watches": sum(report.state is WatchState.WATCHED for report in reports),
        "polled": sum(report.state is WatchState.POLLED for report in reports),
        "overflows": overflows,
        "rebuilt": watches.rebuilt,
        "missed": missed,
    }


def reasons_to_poll(watches: WatchSet) -> list[str]:
    """Sentences about what should be watched and can't be; [] when nothing is amiss.

    Polling that was set, or that a remote file system needs, works as it should and is no reason.
    """
    if watches.problem:
        return [f"{watches.problem}."]
    refused = [report for report in watches.reports() if report.reason.startswith("can't be watched")]
    return [_refusal(refused)] if refused else []


def _refusal(refused: Iterable[WatchReport]) -> str:
    first, *others = refused
    more = f", and {len(others)} more" if others else ""
    remedy = (
        " Raise fs.inotify.max_user_watches." if "space" in first.reason or "limit" in first.reason else ""
    )
    return f"{first.path}{more}: {first.reason}; polled instead.{remedy}"
