"""What is measured, each a function of a lab that returns rows of figures."""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Lab, fact_text

HERE = Path(__file__).parent
Row = dict[str, object]

REST_S = 0.03
"""Between two saves: a person's come one at a time, and what follows a save has ended by the next."""


def spread(values: list[float], unit: str = "ms") -> Row:
    """Median, 99th percentile (nearest rank) and maximum."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[math.ceil(0.99 * len(ordered)) - 1],
        "max": ordered[-1],
        "runs": len(ordered),
        "unit": unit,
    }


def aims(row: Row, **most: float) -> Row:
    """The row with the most that its figures may be: `aims(row, p50=3, p99=50)`."""
    return {**row, "most": most}


def ratio(name: str, one: Row, other: Row) -> Row:
    """How many times the one median is the other."""
    return {"name": name, "p50": number(one) / number(other), "unit": "×"}


def number(row: Row) -> float:
    """A row's median."""
    value = row["p50"]
    assert isinstance(value, float)
    return value


def wait_for(path: Path, needle: bytes, patience: float = 10.0) -> float | None:
    """The moment at which a file held `needle`; None if it never did."""
    deadline = time.monotonic() + patience
    seen = None
    while time.monotonic() < deadline:
        try:
            info = path.stat()
            if (info.st_ino, info.st_mtime_ns) != seen:
                moment = time.monotonic()
                if needle in path.read_bytes():
                    return moment
                seen = (info.st_ino, info.st_mtime_ns)
        except OSError:
            pass
        time.sleep(0.0001)
    return None


def save(entries: Path, target: Path, turn: int) -> float:
    """Milliseconds from the end of a save until the target holds it; the fact is pinned and the newest."""
    word = f"zeta{time.monotonic_ns()}"
    stamp = f"2026-02-01T00:{turn // 60 % 60:02d}:{turn % 60:02d}.{turn:03d}Z"
    text = fact_text(turn % 50, pinned=True, stamp=stamp, word=word)
    place = entries / f"20260101-{turn % 50:04d}-fact.md"
    if turn % 2:
        place.write_text(text)
    else:
        aside = entries / ".aside.tmp"
        aside.write_text(text)
        aside.replace(place)
    started = time.monotonic()
    ended = wait_for(target, word.encode())
    if ended is None:
        raise SystemExit(f"lost: {word} never reached {target}")
    return (ended - started) * 1000


def save_latency(lab: Lab, *, quick: bool) -> list[Row]:
    """Save to AGENTS.md replaced, in turns with the floor, with 200 and 1,000 facts."""
    rows = []
    for facts in (200, 1000):
        root = lab.project(f"latency{facts}", facts, pinned=True)
        entries, target = root / ".memory/entries", root / "AGENTS.md"
        with lab.service(), bare_loop(lab, entries, facts) as (copy, bare_target):
            ours, floor = [], []
            for turn in range(-5, 60 if quick else 200):
                time.sleep(REST_S)
                one = save(entries, target, turn % 200)
                time.sleep(REST_S)
                other = save(copy, bare_target, turn % 200)
                if turn >= 0:
                    ours.append(one)
                    floor.append(other)
            packed = [save(entries, target, turn) for turn in range(60 if quick else 200)]
            must_hold(root / "CLAUDE.md", block_of(target))
        bare = spread(floor)
        aimed = aims(spread(ours), p50=2 * number(bare) + 3, p99=50)
        rows += [
            {"name": f"save, {facts:,} facts", **aimed},
            {"name": "  the floor, in turns with it", **bare},
            ratio("  ours / floor", aimed, bare),
            {"name": "  save upon save, without a rest", **spread(packed)},
        ]
        lab.run(lab.program, "eject", "--yes", cwd=root)
    return rows


@contextmanager
def bare_loop(lab: Lab, entries: Path, facts: int) -> Iterator[tuple[Path, Path]]:
    """The floor at work on a copy of the facts: their directory, and the file that it keeps."""
    copy, target = lab.base / f"floor{facts}", lab.base / f"floor{facts}.md"
    shutil.copytree(entries, copy)
    words = [sys.executable, str(HERE / "floor.py"), str(copy), str(target)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as floor:
        try:
            assert floor.stdout is not None
            floor.stdout.readline()
            yield copy, target
        finally:
            floor.kill()


def block_of(path: Path) -> bytes:
    """The managed block of a file."""
    data = path.read_bytes()
    return data[data.index(b"<!-- agent-bridge:memory:start") : data.rindex(b"agent-bridge:memory:end")]


def must_hold(path: Path, needle: bytes) -> None:
    """Wait until a file holds `needle`; the measurement ends where it never does."""
    if wait_for(path, needle) is None:
        raise SystemExit(f"lost: {path} never got what was expected")


def burst(lab: Lab, *, quick: bool) -> list[Row]:
    """200 facts written at once until each of them stands in both instruction files."""
    took = []
    lab.environment["AGENT_BRIDGE_BLOCK_BUDGET"] = "30000"
    for turn in range(3 if quick else 10):
        root = lab.project(f"burst{turn}", 0)
        entries = root / ".memory/entries"
        needles = [f"\nb{number:03d} is {number}.\n".encode() for number in range(200)]
        with lab.service():
            time.sleep(0.5)
            started = time.monotonic()
            for number, needle in enumerate(needles):
                (entries / f"b{number:03d}.md").write_bytes(b"# Burst\n" + needle)
            for name in ("AGENTS.md", "CLAUDE.md"):
                while not holds_all(root / name, needles):
                    if time.monotonic() > started + 20:
                        raise SystemExit(f"lost: not all of the burst reached {name}")
                    time.sleep(0.002)
            took.append((time.monotonic() - started) * 1000)
        lab.run(lab.program, "eject", "--yes", cwd=root)
    del lab.environment["AGENT_BRIDGE_BLOCK_BUDGET"]
    return [{"name": "burst of 200 facts, all projected", **aims(spread(took), p50=500)}]


def holds_all(path: Path, needles: list[bytes]) -> bool:
    """Whether a file holds each of these."""
    data = path.read_bytes()
    return all(needle in data for needle in needles)


def start(lab: Lab, *, quick: bool) -> list[Row]:
    """Service start to ready with 20 projects, then its size at rest, its CPU, watches and threads."""
    roots = [lab.project(f"p{number}", 20) for number in range(20)]
    took = []
    for _ in range(2 if quick else 4):
        with lab.service() as (_process, seconds):
            took.append(seconds * 1000)
    with lab.service() as (process, seconds):
        took.append(seconds * 1000)
        time.sleep(3)
        before = cpu_seconds(process.pid)
        idle = 20.0 if quick else 60.0
        time.sleep(idle)
        used = cpu_seconds(process.pid) - before
        rows: list[Row] = [
            {"name": "start to ready, 20 projects", **spread(took)},
            aims({"name": "RSS, 20 projects", "p50": rss_mib(process.pid), "unit": "MiB"}, p50=60),
            aims(
                {"name": f"CPU at rest, {idle:.0f} s", "p50": 100 * used / idle, "unit": "% of a core"},
                p50=0.1,
            ),
            {"name": "threads, 20 projects", "p50": len(tasks(process.pid)), "unit": ""},
            aims({"name": "watches a project", "p50": watches(process.pid) / len(roots), "unit": ""}, p50=50),
        ]
    for root in roots:
        lab.run(lab.program, "eject", "--yes", cwd=root)
    return rows


def big_tree(lab: Lab, *, quick: bool) -> list[Row]:
    """Watches in a repository with 50,000 directories below node_modules."""
    root = lab.project("big", 20)
    (root / ".gitignore").write_text("node_modules/\n")
    for outer in range(50 if quick else 500):
        for inner in range(100):
            (root / "node_modules" / f"m{outer}" / f"d{inner}").mkdir(parents=True)
    with lab.service() as (process, seconds):
        rows: list[Row] = [
            {"name": "start to ready, 50,000 directories", "p50": seconds * 1000, "unit": "ms"},
            aims({"name": "watches there", "p50": watches(process.pid), "unit": ""}, p50=50),
            {"name": "threads there", "p50": len(tasks(process.pid)), "unit": ""},
        ]
        took = []
        for turn in range(20):
            time.sleep(REST_S)
            took.append(save(root / ".memory/entries", root / "AGENTS.md", turn))
        rows.append({"name": "save there", **spread(took)})
    lab.run(lab.program, "eject", "--yes", cwd=root)
    shutil.rmtree(root)
    return rows


def commands(lab: Lab, *, quick: bool) -> list[Row]:
    """Wall time of the quick commands beside a bare Python start, in turns."""
    root = lab.project("quick", 20)
    program, python = lab.program, sys.executable
    turns = 8 if quick else 25
    with lab.service():
        figures = in_turns(
            lab,
            turns,
            {
                "bare python start": [python, "-c", "pass"],
                "agent-bridge --version": [program, "--version"],
                "agent-bridge status": [program, "status"],
            },
        )
        added = adds(lab, root, turns)
    bare, version, status = figures.values()
    return [
        *({"name": name, **row} for name, row in figures.items()),
        ratio("  --version / bare", version, bare),
        aims(ratio("  status / bare", status, bare), p50=4),
        {"name": "agent-bridge add, 20 facts, a service running", **spread(added)},
    ]


def adds(lab: Lab, root: Path, turns: int) -> list[float]:
    """Milliseconds of each of some `add` commands."""
    took = []
    for turn in range(turns):
        text = f"Zebra {turn} of {time.monotonic_ns()} has stripes."
        begun = time.monotonic()
        lab.run(lab.program, "add", text, cwd=root)
        took.append((time.monotonic() - begun) * 1000)
    return took


def big_store(lab: Lab, *, quick: bool) -> list[Row]:
    """`add` and `search` with 10,000 facts."""
    count = 2000 if quick else 10000
    root = lab.project("store", count)
    lab.run(lab.program, "search", "port", cwd=root)
    turns = 5 if quick else 10
    add, search = [], []
    with lab.service():
        for _ in range(turns):
            add += adds(lab, root, 1)
            begun = time.monotonic()
            lab.run(lab.program, "search", "zebra", cwd=root)
            search.append((time.monotonic() - begun) * 1000)
    alone = adds(lab, root, turns)
    timed = lab.run(sys.executable, str(HERE / "warm_search.py"), cwd=root).splitlines()
    warm, compared = zip(*(map(float, line.split()) for line in timed), strict=True)
    lab.run(lab.program, "eject", "--yes", cwd=root)
    return [
        {"name": f"add, whole command, {count:,} facts", **spread(add)},
        {"name": "  without a service, so it projects itself", **spread(alone)},
        {"name": f"search, whole command, {count:,} facts", **spread(search)},
        {"name": "search, warm, inside a process", **aims(spread(list(warm)), p50=50)},
        {"name": "  comparing the store with its files before", **spread(list(compared))},
    ]


def in_turns(lab: Lab, turns: int, commands_: dict[str, list[str]]) -> dict[str, Row]:
    """Run commands alternately, so that drift of the machine hits all alike."""
    took: dict[str, list[float]] = {name: [] for name in commands_}
    for _ in range(turns):
        for name, words in commands_.items():
            begun = time.monotonic()
            lab.run(*words)
            took[name].append((time.monotonic() - begun) * 1000)
    return {name: spread(values) for name, values in took.items()}


def cpu_seconds(pid: int) -> float:
    """CPU time of a process's threads, and of the processes that it has waited for (Git), so far."""
    threads_ns = [int((task / "schedstat").read_text().split()[0]) for task in tasks(pid)]
    waited_for = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[13:15]
    return sum(threads_ns) / 1e9 + sum(map(int, waited_for)) / os.sysconf("SC_CLK_TCK")


def tasks(pid: int) -> list[Path]:
    """The threads of a process, as the kernel shows them."""
    return list(Path(f"/proc/{pid}/task").iterdir())


def rss_mib(pid: int) -> float:
    """Resident memory in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def watches(pid: int) -> int:
    """inotify watches that a process holds."""
    count = 0
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            count += info.read_text().count("inotify wd:")
        except OSError:
            continue
    return count


ALL: dict[str, Callable[..., list[Row]]] = {
    "save": save_latency,
    "burst": burst,
    "start": start,
    "tree": big_tree,
    "commands": commands,
    "store": big_store,
}
