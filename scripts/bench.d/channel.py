"""The channel: our registry in a running service beside the bare floor, loaded from another process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import Lab
from measure import Row, aims, ratio, rss_mib, spread

HERE = Path(__file__).parent
CONNECTIONS = 16
SOCKETS = 4
WINDOW = 64
"""Messages under way on each socket."""
WAL_MIB = 64.0
"""What the write-ahead log may grow to under load."""


def channel(lab: Lab, *, quick: bool) -> list[Row]:
    """Post to received, throughput, inboxes in small and large databases, memory of many clients."""
    lab.environment |= {
        "AGENT_BRIDGE_SEND_RATE_PER_S": "1000000",
        "AGENT_BRIDGE_SEND_BURST": "1000000",
        "AGENT_BRIDGE_INBOX_LIMIT": "1000000",
        "AGENT_BRIDGE_REGISTRY_PORT": "47990",
    }
    with lab.service(), floor(lab) as bare:
        ours = registry(lab)
        rows = [*message_latency(ours, bare, quick=quick), *throughput(ours, bare, quick=quick)]
        log = database(lab).with_name(f"{database(lab).name}-wal")
        rows.append(
            aims({"name": "the write-ahead log after it", "p50": mib(log), "unit": "MiB"}, p50=WAL_MIB)
        )
    rows += sweeps(lab, quick=quick)
    rows += inboxes(lab, quick=quick)
    rows += many_clients(lab, 200 if quick else 1000)
    return rows


def message_latency(ours: Row, bare: Row, *, quick: bool) -> list[Row]:
    """From a post to its frame on the target's socket."""
    took = load("latency", servers={"ours": ours, "floor": bare}, turns=200 if quick else 1000)
    here, least = aims(spread(took["ours"]), p50=3), spread(took["floor"])
    return [
        {"name": "post to the target's socket", **here},
        {"name": "  the floor, in turns with it", **least},
        aims(ratio("  ours / floor", here, least), p50=1.5),
    ]


def throughput(ours: Row, bare: Row, *, quick: bool) -> list[Row]:
    """Messages a second, each answered after its commit: short rounds of all three, compared by round."""
    seconds, rounds = (2.0, 3) if quick else (3.0, 9)
    rates: dict[str, list[float]] = {"floor": [], "http": [], "socket": []}
    for _ in range(rounds):
        for name, server in (("floor", bare), ("http", ours)):
            done = load("http", server=server, connections=CONNECTIONS, seconds=seconds)
            rates[name].append(done["rate"])
        done = load("sockets", server=ours, connections=SOCKETS, window=WINDOW, seconds=seconds)
        rates["socket"].append(done["rate"])
    return [
        {"name": "the floor over HTTP", **per_second(rates["floor"])},
        {"name": "messages over HTTP", **per_second(rates["http"])},
        {"name": "  ours / floor", **times(rates["http"], rates["floor"]), "least": 0.6},
        {"name": "messages over WebSockets", **per_second(rates["socket"])},
        {"name": "  ours / the floor over HTTP", **times(rates["socket"], rates["floor"]), "least": 2.0},
    ]


def sweeps(lab: Lab, *, quick: bool) -> list[Row]:
    """A write's wait, 500 messages a second coming in, alone and beside the sweeps of old conversations."""
    clear(lab)
    conversations = 5_000 if quick else 30_000
    store(lab, "age", conversations)
    found = json.loads(store(lab, "sweep", 3 if quick else 10))
    if found["swept"]["terminal"] != conversations or found["swept"]["retention"] != 2 * conversations:
        raise SystemExit(f"The sweeps left something: {found['swept']}")
    return [
        {"name": "a write's wait, 500 messages/s", **spread(found["alone"])},
        aims({"name": f"  while {conversations:,} are swept", **spread(found["beside"])}, p99=50),
        {"name": "  archiving and deleting them", "p50": found["seconds"], "unit": "s"},
        aims(
            {"name": "  the write-ahead log at most", "p50": found["log"] / 2**20, "unit": "MiB"}, p50=WAL_MIB
        ),
    ]


def inboxes(lab: Lab, *, quick: bool) -> list[Row]:
    """A page of an inbox and of the list, in the process and over HTTP, in databases of several sizes."""
    clear(lab)
    rows: list[Row] = []
    stored, turns = 0, 100 if quick else 500
    for count in (1_000, 25_000) if quick else (1_000, 100_000, 1_000_000):
        recipients = min(200, count // 100)
        rate = float(store(lab, "fill", count - stored, recipients))
        stored = count
        pages, lists = zip(
            *(map(float, line.split()) for line in store(lab, "query", turns, recipients).splitlines()),
            strict=True,
        )
        with lab.service():
            agents = [f"agent-{number}" for number in range(recipients)]
            over = load("inbox", server=registry(lab), agents=agents, turns=turns)
        rows += [
            {"name": f"inbox, {count:,} messages", **aims(spread(list(pages)), p50=2)},
            {"name": "  over HTTP", **spread(over)},
            {"name": "  a page of conversations", **spread(list(lists))},
            {"name": "  writes to fill it, in one process", "p50": rate, "unit": "/s"},
        ]
    return rows


def many_clients(lab: Lab, count: int) -> list[Row]:
    """What the service grows by with many connected clients."""
    clear(lab)
    with lab.service() as (process, _):
        server = registry(lab)
        load("latency", servers={"ours": server}, turns=50)
        before = rss_mib(process.pid)
        words = json.dumps({"task": "clients", "server": server, "count": count})
        command = [sys.executable, str(HERE / "channel_load.py"), words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
            assert held.stdout is not None
            if held.stdout.readline().strip() != "ready":
                raise SystemExit("The clients couldn't connect.")
            grown = rss_mib(process.pid) - before
            held.communicate("")
            if held.returncode:
                raise SystemExit("Some clients were cut off.")
    return [
        {"name": "RSS with the registry at work", "p50": before, "unit": "MiB"},
        {"name": f"  for {count:,} clients more, per 1,000", "p50": grown * 1000 / count, "unit": "MiB"},
    ]


@contextmanager
def floor(lab: Lab) -> Iterator[Row]:
    """The floor at work on a database in the same file system."""
    words = [sys.executable, str(HERE / "channel_floor.py"), str(lab.base / "floor.sqlite")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield {"port": int(process.stdout.readline())}
        finally:
            process.terminate()


def registry(lab: Lab) -> Row:
    """Where the running service's registry answers, and its token."""
    found = lab.status()["registry"]
    assert isinstance(found, dict)
    port = int(str(found["url"]).rsplit(":", 1)[1])
    return {"port": port, "token": Path(found["token_file"]).read_text().strip()}


def database(lab: Lab) -> Path:
    """The file with the messages."""
    return lab.home / ".local/state/agent-bridge/channel/channel.sqlite"


def clear(lab: Lab) -> None:
    """Forget all messages."""
    for path in database(lab).parent.iterdir():
        path.unlink()


def store(lab: Lab, *words: object) -> str:
    """What `channel_store.py` prints."""
    return lab.run(sys.executable, str(HERE / "channel_store.py"), *map(str, words))


def load(task: str, **what: object) -> Any:  # noqa: ANN401 - a task's own figures
    """The figures of one task of the load, in a process of its own."""
    words = [sys.executable, str(HERE / "channel_load.py"), json.dumps({"task": task, **what})]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The load failed:\n{done.stderr}")
    return json.loads(done.stdout)


def per_second(rates: list[float]) -> Row:
    """The median of some rates, with the highest."""
    return {"p50": statistics.median(rates), "max": max(rates), "runs": len(rates), "unit": "messages/s"}


def times(ours: list[float], floor: list[float]) -> Row:
    """How many times the one is the other: the median of the rounds, so that a slow moment hits both."""
    rounds = [one / other for one, other in zip(ours, floor, strict=True)]
    return {"p50": statistics.median(rounds), "max": max(rounds), "runs": len(rounds), "unit": "×"}


def mib(path: Path) -> float:
    """A file's size in MiB, 0 where it isn't there."""
    return path.stat().st_size / 2**20 if path.exists() else 0.0
