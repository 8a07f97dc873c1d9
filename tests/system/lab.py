"""The lab: a real systemd user manager on a machine where systemd isn't the first process. Needs root.

lab.sh is its first process and says what is set up. It is up in about a second; killing `unshare` ends all of
it. Two labs at once don't meet.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from system.seat import PATIENCE, Seat

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "systemctl",
    "systemd-analyze",
    "journalctl",
    "dbus-daemon",
    "mount",
    "unshare",
    "nsenter",
    "setpriv",
)
_REFUSED = 77


class NotPossibleError(Exception):
    """No lab here: the kernel refuses namespaces or mounts, or only its owner may read the checkout."""


class Lab(Seat):
    """A lab that is up."""

    def __init__(self) -> None:
        self.user = "labrat"
        self.uid = _free_uid()
        self.home = Path("/home") / self.user
        self.program = Path(sys.prefix) / "bin/agent-bridge"
        self._tag = f"agent-bridge-lab-{secrets.token_hex(4)}"
        self._place = Path(tempfile.mkdtemp(prefix="ablab", dir="/tmp"))
        self._place.chmod(0o755)
        self._process: subprocess.Popen[bytes] | None = None
        self._first = 0

    def open(self) -> None:
        """Bring it up; raises NotPossibleError."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End everything in it and take its traces away."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        _remove_cgroups(Path("/sys/fs/cgroup") / self._tag)
        _remove_cgroups(Path("/sys/fs/cgroup/unified") / self._tag)
        shutil.rmtree(self._place, ignore_errors=True)

    @property
    def units(self) -> Path:
        return self.home / ".config/systemd/user"

    def command(self, words: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
        settings = {
            "HOME": str(self.home),
            "USER": self.user,
            "LOGNAME": self.user,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "XDG_RUNTIME_DIR": f"/run/user/{self.uid}",
        } | dict(env)
        clean = ["env", "-i", *(f"{name}={value}" for name, value in settings.items())]
        ids = ["--reuid", str(self.uid), "--regid", str(self.uid), "--init-groups"]
        return [*self._enter(), "setpriv", *ids, *clean, "sh", "-c", 'cd && exec "$@"', "sh", *words]

    def as_root(self, *words: str) -> None:
        """Run a command inside as root."""
        subprocess.run([*self._enter(), *words], check=True, capture_output=True)

    def restart_manager(self) -> None:
        """What logging out and in again does: the manager ends with all its services; another starts."""
        before = (self._place / "manager").read_text()
        self.as_root("sh", "-c", f"kill -TERM {before.strip()}")
        self.wait("another manager", lambda: (self._place / "manager").read_text() not in ("", before))
        answers = ("running", "degraded")
        self.wait("an answer", lambda: self.systemctl("is-system-running", check=False) in answers)

    def _start(self) -> None:
        lab = [str(Path(__file__).with_name("lab.sh")), str(self._place), self._tag, self.user, str(self.uid)]
        # Whatever ends the tests ends unshare, and with it everything in the lab.
        bound = ["setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--kill-child=KILL"]
        said = self._place / "said"
        with said.open("wb") as out:
            self._process = subprocess.Popen(
                [*bound, "--mount", "--pid", "--ipc", "--uts", "bash", *lab, *map(str, _needed())],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        deadline = time.monotonic() + PATIENCE
        while not (self._place / "ready").exists():
            code = self._process.poll()
            if code is not None:
                refused = code == _REFUSED or said.read_text().startswith("unshare:")
                raise (NotPossibleError if refused else RuntimeError)(said.read_text().strip())
            if time.monotonic() >= deadline:
                raise RuntimeError(f"the lab's manager never answered:\n{said.read_text()}")
            time.sleep(0.02)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        self._first = int(children.read_text().split()[0])
        tried = self.run(str(self.program), "--version", check=False)
        if tried.returncode:
            raise NotPossibleError(f"its user can't run this checkout's program: {tried.stderr.strip()}")

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", str(self._first), "--mount", "--pid", "--ipc", "--uts"]


def _needed() -> list[Path]:
    """What the user of the lab must be able to read: this checkout's program and the Python that runs it."""
    places = [Path(sys.prefix), ROOT / "service", ROOT / "systemd", ROOT / "launchd"]
    python = {Path(sys.base_prefix), Path(os.path.realpath(sys.base_prefix))}
    places += [prefix for prefix in python if prefix != Path("/usr")]
    return sorted(places, key=lambda path: len(path.parts))


def _free_uid() -> int:
    """An id that journald keeps a journal of its own for (1000 to 60000) and nobody has."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(24000, 25000) if uid not in taken)


def _remove_cgroups(top: Path) -> None:
    deadline = time.monotonic() + 5.0
    for folder in [*sorted(top.rglob("*/"), key=lambda path: -len(path.parts)), top]:
        while folder.is_dir():
            try:
                folder.rmdir()
            except OSError:
                if time.monotonic() >= deadline:
                    return
                time.sleep(0.02)
