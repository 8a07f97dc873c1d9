"""Runs the measurements that are asked for and prints them as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from channel import channel
from lab import Lab
from mcp_shim import mcp
from measure import ALL as MEMORY
from measure import Row

ALL = {**MEMORY, "channel": channel, "mcp": mcp}


def main() -> int:
    """Measure, print, and write the JSON file where one is asked for; 1 where an aim was missed."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure agent-bridge.")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there too")
    options = parser.parse_intermixed_args()
    results: dict[str, list[Row]] = {}
    for name in options.names or ALL:
        lab = Lab(options.program)
        try:
            results[name] = ALL[name](lab, quick=options.quick)
        finally:
            lab.close()
        for row in results[name]:
            show(row)
    missed = [
        f"{row['name']}".strip() + f": {figure} {row[figure]:.2f}, aim {most:.2f}"
        for rows in results.values()
        for row in rows
        for figure, most in row.get("most", {}).items()
        if row[figure] > most
    ]
    missed += [
        f"{row['name']}".strip() + f": {row['p50']:.2f}, aim at least {row['least']:.2f}"
        for rows in results.values()
        for row in rows
        if row["p50"] < row.get("least", 0)
    ]
    for line in missed:
        print(f"MISSED  {line}")
    if options.json:
        about = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "system": platform.release(),
        }
        Path(options.json).write_text(
            json.dumps({"about": about, "figures": results, "missed": missed}, indent=1) + "\n"
        )
    return 1 if missed else 0


def show(row: Row) -> None:
    """One line of the table."""
    figures = [f"{row[key]:>10.2f}" if key in row else " " * 10 for key in ("p50", "p99", "max")]
    aims = ", ".join(f"{figure} ≤ {most:.2f}" for figure, most in row.get("most", {}).items())
    if "least" in row:
        aims = f"p50 ≥ {row['least']:.2f}"
    print(f"{row['name']!s:<42}{''.join(figures)}  {row['unit']:<12}{aims}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
