"""A throw-away home with projects and a service, for measuring."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 120.0


class Lab:
    """One sealed home; `run` runs a program in it, `service` a service."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.base = Path(tempfile.mkdtemp(prefix="abb", dir="/tmp")).resolve()
        self.home = self.base / "home"
        runtime = self.base / "run"
        self.home.mkdir()
        runtime.mkdir(mode=0o700)
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(runtime),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            **{f"GIT_{who}_NAME": "Bench" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "bench@example.invalid" for who in ("AUTHOR", "COMMITTER")},
        }

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.base, ignore_errors=True)

    def run(self, *words: str, cwd: Path | None = None, check: bool = True) -> str:
        """A program's standard output."""
        done = subprocess.run(
            words, env=self.environment, cwd=cwd or self.home, capture_output=True, text=True, check=False
        )
        if check and done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        return done.stdout

    def project(self, name: str, facts: int = 0, *, pinned: bool = False) -> Path:
        """A repository with instruction files and `facts` facts, set up."""
        root = self.home / name
        root.mkdir()
        self.run("git", "init", "-q", cwd=root)
        (root / "AGENTS.md").write_text(f"# {name}\n\nUse tabs.\n")
        (root / "CLAUDE.md").write_text(f"# {name}\n\nBe brief.\n")
        self.run("git", "add", "-A", cwd=root)
        self.run("git", "commit", "-qm", "start", cwd=root)
        entries = root / ".memory" / "entries"
        entries.mkdir(parents=True)
        for number in range(facts):
            (entries / f"20260101-{number:04d}-fact.md").write_text(fact_text(number, pinned=pinned))
        self.run(self.program, "init", "--yes", cwd=root)
        return root

    @contextmanager
    def service(self) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
        """A running service and the seconds it took to be ready."""
        started = time.monotonic()
        log = (self.base / "service.log").open("ab")
        process = subprocess.Popen(
            [self.program, "service", "run"], env=self.environment, cwd=self.base, stdout=log, stderr=log
        )
        try:
            while self.status().get("state") not in ("ok", "degraded"):
                if process.poll() is not None or time.monotonic() - started > PATIENCE_S:
                    raise SystemExit(
                        f"The service didn't become ready:\n{(self.base / 'service.log').read_text()}"
                    )
                time.sleep(0.005)
            yield process, time.monotonic() - started
        finally:
            process.terminate()
            process.wait(20)

    def status(self) -> dict[str, object]:
        """The status document, {} while there is none."""
        import http.client
        import socket

        path = self.base / "run" / "agent-bridge" / "status.sock"
        connection = http.client.HTTPConnection("localhost", timeout=5)
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(path))
            connection.request("GET", "/v1/status")
            found = json.loads(connection.getresponse().read())
            return found if isinstance(found, dict) else {}
        except OSError:
            return {}
        finally:
            connection.close()


def fact_text(
    number: int, *, pinned: bool = False, stamp: str = "2026-01-01T00:00:00.000Z", word: str = ""
) -> str:
    """A fact of about 200 bytes in the store's own format."""
    mark = "  pinned: true\n" if pinned else ""
    return (
        f"---\nname: fact-{number}\ndescription: What holds for part {number}.\n"
        f"metadata:\n  type: project\n{mark}  created_at: {stamp}\n---\n\n"
        f"Part {number} of the system listens on port {20000 + number} {word}.\n"
    )
