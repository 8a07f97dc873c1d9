"""`scripts/bench` measures in one run and says by its exit code whether an aim was missed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"


def test_a_quick_run_gives_table_and_json(tmp_path: Path) -> None:
    """How fast it is here says nothing: other tests run beside it."""
    file = tmp_path / "figures.json"
    done = subprocess.run(
        [BENCH, "--quick", "--json", file, "commands", "burst"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.stderr == ""
    told = json.loads(file.read_text())
    assert done.returncode == bool(told["missed"])
    assert list(told["figures"]) == ["commands", "burst"]
    rows = [row for rows in told["figures"].values() for row in rows]
    assert len(rows) >= 5
    for row in rows:
        assert row["p50"] > 0
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{row['name']:<42}")]
        assert f"{row['p50']:.2f}" in line
    assert [line.removeprefix("MISSED  ") for line in done.stdout.splitlines() if "MISSED" in line] == told[
        "missed"
    ]
