"""Many clients at once: calls of `remember` through real shims into one service."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import Lab
from mcp_client import Client
from measure import Row, aims, cpu_seconds, rss_mib, spread

CLIENTS = 16
CALLS = 200
SECONDS = 30.0
"""Within which all of them are to be answered, on two quiet cores."""


@dataclass(slots=True)
class _Done:
    """What the clients saw: milliseconds of each call, and what wasn't an answer as it should be."""

    took: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def many_clients(lab: Lab, shim: str, *, quick: bool) -> list[Row]:
    """Sixteen clients that remember 200 facts each, as fast as they are answered."""
    root = lab.project("many")
    calls = 25 if quick else CALLS
    with lab.service() as (service, _):
        clients = [Client([shim], lab.environment, root) for _ in range(CLIENTS)]
        for client in clients:
            client.shake_hands()
        done = [_Done() for _ in clients]
        threads = [
            threading.Thread(target=_remember, args=(client, number, calls, done[number]))
            for number, client in enumerate(clients)
        ]
        cpu = cpu_seconds(service.pid)
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begun
        cpu = cpu_seconds(service.pid) - cpu
        for client in clients:
            client.close()
        resident = rss_mib(service.pid)
    took = [one for client in done for one in client.took]
    wrong = [one for client in done for one in client.wrong]
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(took)} calls went wrong, the first: {wrong[0]}")
    _check(root, calls)
    whole: Row = {"name": f"{CLIENTS} × {calls} remember, 0 errors", "p50": seconds, "unit": "s"}
    return [
        whole if quick else aims(whole, p50=SECONDS),
        {"name": "  files, one a fact", "p50": len(took), "unit": ""},
        {"name": "  CPU of the service for it", "p50": cpu, "unit": "s"},
        {"name": "  RSS of the service after it", "p50": resident, "unit": "MiB"},
        {"name": "  one of these calls", **aims(spread(took), p50=100)},
    ]


def text_of(client: int, call: int) -> str:
    """A fact of its own: what holds for one client's call, in words that others don't use."""
    words = hashlib.sha256(f"{client}.{call}".encode()).hexdigest()
    return " ".join(["Part", *(words[at : at + 8] for at in range(0, 64, 8)), f"is {client}-{call}."])


def _remember(client: Client, number: int, calls: int, done: _Done) -> None:
    for call in range(calls):
        begun = time.monotonic()
        answer = client.call("remember", text=text_of(number, call))
        done.took.append((time.monotonic() - begun) * 1000)
        if answer.get("isError") or not answer["content"][0]["text"].startswith("Remembered:"):
            done.wrong.append(str(answer))


def _check(root: Path, calls: int) -> None:
    """One file for each fact, none lost and none double."""
    files = sorted((root / ".memory/entries").glob("*.md"))
    texts = [path.read_text() for path in files]
    wanted = {text_of(client, call) for client in range(CLIENTS) for call in range(calls)}
    found = {one for text in texts for one in wanted & {text.strip().rpartition("\n")[2]}}
    if len(files) != len(wanted) or found != wanted:
        raise SystemExit(f"{len(files)} files with {len(found)} of {len(wanted)} facts")
