"""A user with a home, repositories and the installed agent-bridge; everything runs as they run it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bridge.harnesses.claude_places import slug
from clients.rig.product import Product
from clients.rig.sealed import base_environment

AGENTS = "# Rules\n\nUse tabs.\n"
CLAUDE = "# For Claude\n\nBe brief.\n"

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
}

PROGRAM = str(Path(sysconfig.get_path("scripts")) / "agent-bridge")
SETTLED_S = 20.0
_POLL_S = 0.02

Entry = tuple[str, int, bytes]
"""One name below a directory: file, link or directory; its mode; bytes, or where the link points."""


@dataclass(frozen=True)
class User:
    """The user whose home is `home`; `product` is agent-bridge as they have it."""

    home: Path

    @property
    def product(self) -> Product:
        """The command and the service of this user."""
        return Product(self.home)

    def run(self, *words: str, cwd: Path, exit_codes: Sequence[int] = (0,)) -> Mapping[str, Any]:
        """Run agent-bridge; its envelope."""
        return self.product.run(*words, cwd=cwd, exit_codes=exit_codes)

    def add(self, root: Path, text: str, *options: str) -> Mapping[str, Any]:
        """Save a fact by the command; what it said of the fact."""
        fact: Mapping[str, Any] = self.run("add", text, *options, cwd=root)["data"]["fact"]
        return fact

    def init(self, root: Path, *options: str) -> Mapping[str, Any]:
        """Set a project up without being asked."""
        return self.run("init", "--yes", *options, cwd=root)

    def git(self, cwd: Path, *words: str, ok: bool = True, env: Mapping[str, str] | None = None) -> str:
        """Run Git and return all that it printed; with `ok` it has to succeed."""
        done = subprocess.run(
            ["git", *words],
            cwd=cwd,
            env=base_environment(self.home) | _IDENTITY | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        printed = done.stdout.decode("utf-8", "replace")
        assert not ok or done.returncode == 0, f"git {' '.join(words)}: {done.returncode}\n{printed}"
        return printed

    def repository(self, name: str, files: Mapping[str, str] | None = None) -> Path:
        """A repository with one commit; without `files` it holds AGENTS.md and CLAUDE.md."""
        root = self.home / name
        root.mkdir()
        self.git(root, "init", "-q", "-b", "main")
        for path, text in ({"AGENTS.md": AGENTS, "CLAUDE.md": CLAUDE} if files is None else files).items():
            write(root / path, text)
        self.git(root, "add", "-A")
        self.git(root, "commit", "-q", "-m", "Start", "--allow-empty")
        return root

    def commit(self, root: Path, message: str = "More") -> None:
        """Commit everything that Git takes."""
        self.git(root, "add", "-A")
        self.git(root, "commit", "-q", "--allow-empty", "-m", message)

    def index_texts(self, root: Path) -> bytes:
        """Every name in the index and every byte of the files there."""
        names = self.git(root, "-c", "core.quotePath=false", "ls-files").splitlines()
        parts = [name.encode() for name in names]
        parts += [self.git(root, "show", f":{name}").encode() for name in names]
        return b"\n".join(parts)

    def claude_memory(self, root: Path) -> Path:
        """Claude's own memory directory for a project."""
        return self.home / ".claude/projects" / slug(str(root)) / "memory"


@contextmanager
def serving(user: User) -> Iterator[Served]:
    """Run the user's service; it has compared everything when the block begins."""
    log = user.home.parent / "service.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [PROGRAM, "service", "run"],
            cwd="/",
            env=user.product.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    served = Served(user, process)
    try:
        served.until(lambda: served.answers() and served.status()["state"] != "starting", lambda: "not ready")
        yield served
    finally:
        process.terminate()
        process.wait(10)


@dataclass(frozen=True)
class Served:
    """A user whose service runs."""

    user: User
    process: subprocess.Popen[bytes]

    def answers(self) -> bool:
        """Whether the service listens by now."""
        try:
            self.status()
        except OSError:
            return False
        return True

    def status(self) -> Mapping[str, Any]:
        """The service's status, asked for over its socket: a process for each look would cost too much."""
        address = self.user.home.parent / "run/agent-bridge/status.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(SETTLED_S)
            peer.connect(str(address))
            peer.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        status: Mapping[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return status

    def state(self, root: Path) -> Mapping[str, Any]:
        """One project's part of the status."""
        return _project(self.status(), root)

    @contextmanager
    def change(self, root: Path) -> Iterator[None]:
        """Change something of a project in the block; after it the service has acted on it."""
        before = self.state(root)["generation"]
        yield

        def acted() -> bool:
            time.sleep(_POLL_S)  # an event that is on its way is in the queue by then
            status = self.status()
            return bool(_project(status, root)["generation"] > before and status["queue"] == 0)

        self.until(acted, self.status)

    def project(self, name: str, *options: str, files: Mapping[str, str] | None = None) -> Path:
        """A repository that is set up (`options` are those of `init`) and known to the service."""
        root = self.user.repository(name, files)
        self.user.init(root, *options)
        self.until_known(root)
        return root

    def until_known(self, root: Path) -> None:
        """Wait until the service cares for a project."""

        def known() -> bool:
            projects = self.status()["projects"]
            return any(one["root"] == str(root) and one["generation"] > 0 for one in projects)

        self.until(known, self.status)

    def until(self, reached: Callable[[], bool], complaint: Callable[[], object]) -> None:
        """Wait until something holds that the service brings about."""
        deadline = time.monotonic() + SETTLED_S
        while not reached():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, f"{complaint()}\n{self.log()}"
            time.sleep(_POLL_S)

    def until_in(self, path: Path, *texts: str) -> None:
        """Wait until each text stands in a file exactly once."""

        def there() -> bool:
            found = path.read_text() if path.exists() else ""
            return all(found.count(text) == 1 for text in texts)

        self.until(there, lambda: f"not once each in {path}: {texts}\n{path.exists() and path.read_text()}")

    def until_not_in(self, path: Path, text: str) -> None:
        """Wait until a text is gone from a file, or the file is."""
        self.until(
            lambda: not path.exists() or text not in path.read_text(),
            lambda: f"{text!r} is still in {path}:\n{path.read_text()}",
        )

    def settle(self, root: Path) -> None:
        """Wait until the service has acted on everything that happened so far: a fact is added and removed.

        Their events come after all earlier ones of that directory.
        """
        with self.change(root):
            marker = write_fact(root, f"marker-{time.monotonic_ns()}.md", "Marker.")
        with self.change(root):
            marker.unlink()

    def commit(self, root: Path, message: str = "More") -> None:
        """Commit everything, once the service has let Git have what is to be shared."""
        self.settle(root)
        self.user.commit(root, message)

    def log(self) -> str:
        """The end of what the service logged."""
        return (self.user.home.parent / "service.log").read_text("utf-8", "replace")[-4000:]

    def until_told(self, root: Path, code: str) -> Mapping[str, Any]:
        """Wait until a project's status tells a notice; that notice."""
        found: list[Mapping[str, Any]] = []

        def told() -> bool:
            found[:] = [one for one in self.state(root)["notices"] if one["code"] == code]
            return bool(found)

        self.until(told, lambda: self.state(root))
        return found[0]


def _project(status: Mapping[str, Any], root: Path) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [one for one in status["projects"] if one["root"] == str(root)]
    assert len(found) == 1, status
    return found[0]


def write(path: Path, text: str | bytes) -> Path:
    """Write a file, its directories too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_fact(root: Path, name: str, text: str, /, **keys: str) -> Path:
    """A fact's file, written at once and put into place by a rename, as editors do."""
    head = "".join(f"{key}: {value}\n" for key, value in keys.items())
    place = root / ".memory" / name
    aside = write(
        place.with_name(f".{place.name}.tmp"), f"---\n{head}---\n\n{text}\n" if head else f"{text}\n"
    )
    aside.replace(place)
    return place


def tree(top: Path) -> dict[str, Entry]:
    """Everything below a directory; what goes meanwhile (a lock's note of its holder) is left out."""
    found: dict[str, Entry] = {}
    for path in sorted(top.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            found[path.relative_to(top).as_posix()] = _entry(path)
    return found


def _entry(path: Path) -> Entry:
    mode = path.lstat().st_mode & 0o7777
    if path.is_symlink():
        return ("link", 0, str(path.readlink()).encode())
    if path.is_dir():
        return ("directory", mode, b"")
    if path.is_file():
        return ("file", mode, path.read_bytes())
    return ("other", mode, b"")
