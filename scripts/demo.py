"""The main job, shown once: a fact is saved, and every agent's own place has it.

Everything happens in a throw-away home, which is removed at the end.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

FACT = "The staging database is reset every Monday at 06:00 UTC."
PATIENCE_S = 30.0


def main() -> int:
    """Run the demonstration; 0 when the fact arrived everywhere."""
    program = sys.argv[1]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # each step as it comes, also into a pipe
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    begun = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="agent-bridge-demo-")).resolve()
    try:
        code = demonstrate(program, base)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(f"All of it took {time.monotonic() - begun:.1f} s, and is removed again.")
    if code == 0:
        print("For a project of yours: scripts/start PROJECT")
    return code


def demonstrate(program: str, base: Path) -> int:
    """Set a project up below `base`, start the service, save a fact, watch it arrive."""
    home, project = base / "home", base / "home" / "shop"
    project.mkdir(parents=True)
    (home / ".claude").mkdir()  # as if Claude Code were in use here
    environment = sealed(home, base)
    run = runner(environment, project)
    run("git", "init", "-q")
    (project / "AGENTS.md").write_text("# Shop\n\nUse tabs.\n")
    (project / "CLAUDE.md").write_text("# Shop, for Claude\n\nBe brief.\n")
    run("git", "add", "-A")
    run("git", "commit", "-qm", "start")
    print(f"A project with an AGENTS.md and a CLAUDE.md: {project}")
    run(program, "init", "--yes")
    print("$ agent-bridge init --yes      (without --yes it shows its plan and asks)")
    service = subprocess.Popen(
        [program, "service", "run"],
        env=environment,
        cwd=base,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait(
            lambda: (
                json.loads(run(program, "status", "--json", check=False) or "{}").get("data", {}).get("state")
                == "ok"
            )
        )
        print("$ agent-bridge service run     (the service is ready)")
        return watch_a_fact(home, project)
    finally:
        service.terminate()
        try:
            service.wait(timeout=10)
        except subprocess.TimeoutExpired:
            service.kill()
            service.wait()


def watch_a_fact(home: Path, project: Path) -> int:
    """Save a fact as an editor would and report where it turns up, and how long each place took."""
    link = next((home / ".claude/projects").glob("*/memory"))
    places = {
        "AGENTS.md (Codex)": project / "AGENTS.md",
        "CLAUDE.md (Claude Code)": project / "CLAUDE.md",
        "MEMORY.md in Claude's memory directory": link / "MEMORY.md",
    }
    entry = project / ".memory" / "staging.md"
    started = time.monotonic()
    entry.write_text(f"---\ntags: [staging]\n---\n\n# Staging resets\n\n{FACT}\n")
    print(f"Saved {entry.relative_to(project)}: {FACT!r}")
    took = dict(arrivals({**places, "its own file there": link / entry.name}, started))
    for name, seconds in took.items():
        print(f"  {seconds * 1000:7.1f} ms  {name}")
    print(f"Claude's memory directory is {link} -> {link.readlink()}")
    missing = [name for name in places if name not in took]
    for name in missing:
        print(f"  MISSING after {PATIENCE_S:.0f} s: {name}", file=sys.stderr)
    return 1 if missing else 0


def arrivals(places: dict[str, Path], started: float) -> Iterator[tuple[str, float]]:
    """Each place and the seconds after which it had the fact."""
    waiting = dict(places)
    while waiting and time.monotonic() - started < PATIENCE_S:
        for name, path in list(waiting.items()):
            if path.exists() and ("Staging resets" in path.read_text() or FACT in path.read_text()):
                del waiting[name]
                yield name, time.monotonic() - started
        time.sleep(0.0005)


def sealed(home: Path, base: Path) -> dict[str, str]:
    """An environment in which nothing of the user's own can be touched."""
    runtime = base / "run"
    runtime.mkdir(mode=0o700)
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": str(runtime),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Demo" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "demo@example.invalid" for who in ("AUTHOR", "COMMITTER")},
    }


def runner(environment: dict[str, str], cwd: Path) -> Callable[..., str]:
    """A function that runs a program in `cwd` and returns what it printed."""

    def run(*words: str, check: bool = True) -> str:
        done = subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True)
        if check and done.returncode != 0:
            sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    return run


def wait(condition: Callable[[], bool]) -> None:
    """Until a condition holds, or the program's patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"The service wasn't ready after {PATIENCE_S:.0f} s.")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
