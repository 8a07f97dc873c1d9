"""What is measured, each a function of a lab that returns rows of figures."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lab import Lab, fact_text

HERE = Path(__file__).parent
Row = dict[str, object]


def spread(values: list[float], unit: str = "ms") -> Row:
    """Median, 99th percentile and maximum."""
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    return {
        "p50": statistics.median(ordered),
        "p99": p99,
        "max": ordered[-1],
        "runs": len(ordered),
        "unit": unit,
    }


def wait_for(path: Path, needle: bytes, patience: float = 10.0) -> float | None:
    """The moment at which a file held `needle`; None if it never did."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            if needle in path.read_bytes():
                return time.monotonic()
        except OSError:
            pass
        time.sleep(0.0001)
    return None


def saves(entries: Path, target: Path, count: int) -> list[float]:
    """Milliseconds from the end of each save until the target holds it; facts are pinned and newest first."""
    took = []
    for number in range(count):
        word = f"zeta{time.monotonic_ns()}"
        stamp = f"2026-02-01T00:{number // 60 % 60:02d}:{number % 60:02d}.{number:03d}Z"
        text = fact_text(number % 50, pinned=True, stamp=stamp, word=word)
        place = entries / f"20260101-{number % 50:04d}-fact.md"
        if number % 2:
            place.write_text(text)
        else:
            aside = entries / ".aside.tmp"
            aside.write_text(text)
            aside.replace(place)
        started = time.monotonic()
        ended = wait_for(target, word.encode())
        if ended is None:
            raise SystemExit(f"lost: {word} never reached {target}")
        took.append((ended - started) * 1000)
    return took


def save_latency(lab: Lab, *, quick: bool) -> list[Row]:
    """Save to AGENTS.md replaced, beside the floor, with 200 and 1,000 facts."""
    rows = []
    for facts in (200, 1000):
        root = lab.project(f"latency{facts}", facts, pinned=True)
        count = 60 if quick else 200
        with lab.service():
            saves(root / ".memory/entries", root / "AGENTS.md", 10)
            ours = saves(root / ".memory/entries", root / "AGENTS.md", count)
        copy, target = lab.base / f"floor{facts}", lab.base / f"floor{facts}.md"
        shutil.copytree(root / ".memory/entries", copy)
        floor = subprocess.Popen(
            [sys.executable, str(HERE / "floor.py"), str(copy), str(target)], stdout=subprocess.PIPE
        )
        try:
            assert floor.stdout is not None
            floor.stdout.readline()
            bare = saves(copy, target, count)
        finally:
            floor.kill()
            floor.wait()
        one, other = spread(ours), spread(bare)
        rows += [{"name": f"save, {facts} facts", **one}, {"name": f"  floor, {facts} facts", **other}]
        rows.append(
            {"name": "  ours p50 / floor p50", "p50": float(one["p50"]) / float(other["p50"]), "unit": "×"}
        )  # type: ignore[arg-type]
        lab.run(lab.program, "eject", "--yes", cwd=root)
    return rows


def burst(lab: Lab, *, quick: bool) -> list[Row]:
    """200 facts written at once until the last of them is projected."""
    took = []
    for turn in range(2 if quick else 5):
        root = lab.project(f"burst{turn}", 0)
        with lab.service():
            entries = root / ".memory/entries"
            names = [f"20260101-{number:04d}-b.md" for number in range(200)]
            index = root / ".memory/MEMORY.md"
            started = time.monotonic()
            for number, name in enumerate(names):
                (entries / name).write_text(fact_text(number, stamp=f"2026-01-01T00:00:00.{number:03d}Z"))
            deadline = started + 20
            while time.monotonic() < deadline:
                text = index.read_text() if index.exists() else ""
                if text.count("20260101-") >= 190 and b"Part 199 " in (root / "AGENTS.md").read_bytes():
                    break
                time.sleep(0.001)
            else:
                raise SystemExit("lost: not all of the burst were projected")
            took.append((time.monotonic() - started) * 1000)
        lab.run(lab.program, "eject", "--yes", cwd=root)
    return [{"name": "burst of 200 facts, all projected", **spread(took)}]


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
            {"name": "RSS, 20 projects", "p50": rss_mib(process.pid), "unit": "MiB"},
            {"name": f"CPU at rest, {idle:.0f} s", "p50": 100 * used / idle, "unit": "% of a core"},
            {"name": "threads, 20 projects", "p50": threads(process.pid), "unit": ""},
            {"name": "watches a project", "p50": watches(process.pid) / len(roots), "unit": ""},
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
            {"name": "watches there", "p50": watches(process.pid), "unit": ""},
            {"name": "threads there", "p50": threads(process.pid), "unit": ""},
        ]
        rows.append({"name": "save there", **spread(saves_one(root, 20))})
    lab.run(lab.program, "eject", "--yes", cwd=root)
    shutil.rmtree(root)
    return rows


def saves_one(root: Path, count: int) -> list[float]:
    """Saves of pinned facts in a small store."""
    return saves(root / ".memory/entries", root / "AGENTS.md", count)


def commands(lab: Lab, *, quick: bool) -> list[Row]:
    """Wall time of the quick commands beside a bare Python start, in turns."""
    lab.project("quick", 20)
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
    bare = float(figures["bare python start"]["p50"])  # type: ignore[arg-type]
    rows: list[Row] = [{"name": name, **row} for name, row in figures.items()]
    for name in ("agent-bridge --version", "agent-bridge status"):
        rows.append({"name": f"  {name} / bare", "p50": float(figures[name]["p50"]) / bare, "unit": "×"})  # type: ignore[arg-type]
    return rows


def big_store(lab: Lab, *, quick: bool) -> list[Row]:
    """`add` and `search` with 10,000 facts."""
    root = lab.project("store", 2000 if quick else 10000)
    lab.run(lab.program, "search", "port", cwd=root)
    add, search = [], []
    for turn in range(5 if quick else 10):
        begun = time.monotonic()
        lab.run(
            lab.program, "add", f"A new fact number {turn} about zebras and {time.monotonic_ns()}", cwd=root
        )
        add.append((time.monotonic() - begun) * 1000)
        begun = time.monotonic()
        lab.run(lab.program, "search", "zebras", cwd=root)
        search.append((time.monotonic() - begun) * 1000)
    warm = [float(line) for line in lab.run(sys.executable, str(HERE / "warm_search.py"), cwd=root).split()]
    lab.run(lab.program, "eject", "--yes", cwd=root)
    return [
        {"name": "add, whole command, 10,000 facts", **spread(add)},
        {"name": "search, whole command, 10,000 facts", **spread(search)},
        {"name": "search, warm, inside a process", **spread(warm)},
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
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    """Resident memory in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def threads(pid: int) -> int:
    """Threads of a process."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


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
