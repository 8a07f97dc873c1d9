"""Runs one program with an environment made from nothing and no way out but to a fake model server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clients.rig.server import FakeModel, served, walled

TIMEOUT_S = 90.0
"""A start takes one to three seconds; two cores shared by several tests may need many times that."""

_LAUNCHER = Path(__file__).with_name("launch.py")


class ClientError(Exception):
    """A client program failed, hung, or went somewhere that it must not go."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program printed and how it ended. `network` is how it was shut in (see launch.py)."""

    stdout: str
    stderr: str
    exit_code: int
    network: str
    elsewhere: tuple[str, ...]
    """First lines of requests that were not for the fake server: they met the wall."""

    def summary(self) -> str:
        """The end of what was printed, for an error message."""
        printed = f"stdout: …{self.stdout[-1000:]!r}, stderr: …{self.stderr[-1000:]!r}"
        return f"exit code {self.exit_code}, went elsewhere: {list(self.elsewhere)}, {printed}"


def base_environment(home: Path) -> dict[str, str]:
    """The environment of a fresh login of a user whose home is `home`, and nothing of ours."""
    temporary = home.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/sh",
        "USER": "tester",
        "TMPDIR": str(temporary),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def run_sealed(
    argv_of: Callable[[str], Sequence[str]],
    env_of: Callable[[str], Mapping[str, str]],
    *,
    cwd: Path,
    model: FakeModel,
    timeout: float = TIMEOUT_S,
) -> Outcome:
    """Run a program to its end in `cwd`, with standard input empty.

    `argv_of` and `env_of` get the fake server's base URL (`http://127.0.0.1:PORT`). The network is a
    namespace with loopback only where the kernel allows it; everywhere the proxy variables lead to a
    wall that writes down who came. `timeout` is in seconds; the process group is killed in any case.

    Raises ClientError when the time is up or the program never started.
    """
    with sealed(argv_of, env_of, cwd=cwd, model=model) as running:
        try:
            stdout, stderr = running.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as problem:
            raise ClientError(f"{problem}\n{_last_words(running.process)}") from problem
    code = running.process.returncode
    return Outcome(_decoded(stdout), _decoded(stderr), code, running.network, tuple(running.elsewhere))


@dataclass(frozen=True, slots=True)
class Running:
    """A sealed program at work; `network` and `elsewhere` as in `Outcome`."""

    process: subprocess.Popen[bytes]
    network: str
    elsewhere: list[str]


@contextmanager
def sealed(
    argv_of: Callable[[str], Sequence[str]],
    env_of: Callable[[str], Mapping[str, str]],
    *,
    cwd: Path,
    model: FakeModel,
    errors: IO[bytes] | None = None,
) -> Iterator[Running]:
    """Run a program as `run_sealed` does, until the block ends; then its process group is killed.

    `errors` takes its standard error in place of a pipe, which a program that runs for long would fill.
    Raises ClientError when the program never started.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno()), "2"],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if errors is None else errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            heard: list[str] = []
            try:
                how, listeners = _receive(ours)
            except (OSError, IndexError, ValueError) as problem:
                raise ClientError(f"{problem}\n{_last_words(process)}") from problem
            with served(listeners[0], model), walled(listeners[1], heard):
                url, wall = (f"http://127.0.0.1:{place.getsockname()[1]}" for place in listeners)
                order = {"argv": list(argv_of(url)), "env": {**_proxies(wall), **env_of(url)}}
                try:
                    ours.sendall(json.dumps(order).encode())
                    ours.shutdown(socket.SHUT_WR)
                except OSError as problem:
                    raise ClientError(f"{problem}\n{_last_words(process)}") from problem
                yield Running(process, how, heard)
        finally:
            _kill_group(process)


def _receive(channel: socket.socket) -> tuple[str, list[socket.socket]]:
    how, descriptors, _, _ = socket.recv_fds(channel, 100, 2)
    return how.decode(), [socket.socket(fileno=descriptor) for descriptor in descriptors]


def _proxies(wall: str) -> dict[str, str]:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    proxies = {spelled: wall for name in names for spelled in (name, name.lower())}
    return proxies | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """Kill it and read what it had printed, unless somebody outside its group holds the pipes open."""
    _kill_group(process)
    try:
        return "\n".join(_decoded(text or b"")[-2000:] for text in process.communicate(timeout=10))
    except subprocess.TimeoutExpired:
        return "a process that left the group still holds its output"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
