"""`agent-bridge WORDS` in a process of its own whose imports are done already.

A command is mostly the start of Python and imports. Here one process a test worker imports the program once
and forks for each command: arguments, environment, directory, standard streams and exit code are the
command's own, as after a start. What a start itself does (interpreter settings, locale, what is imported
when) is for the tests that start the program: test_program.py, test_package.py, tests/system.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, ClassVar, NamedTuple, NoReturn

PROGRAM = (sys.executable, "-m", "agent_bridge.cli.entry")
_ROOMS = ("cli", "client", "files", "git", "harnesses", "memory", "projection")
_DAEMON = ("client", "control", "install", "lifecycle", "processes")
# What the interpreter reads when it starts: a command gets a process that started with the same.
_OF_THE_START = ("PYTHON", "LANG", "LC_")


class Ended(NamedTuple):
    """How a command ended; `code` is negative for a signal."""

    code: int
    out: bytes
    err: bytes


def run(
    *words: str,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
    program: str | None = None,
) -> Ended:
    """Run `WORDS` to their end; `program` is what the command takes for its own path (`sys.argv[0]`).

    Raises subprocess.TimeoutExpired after `timeout` s; the command is killed then.
    """
    environment = dict(os.environ if env is None else env)
    if _of_python(environment) - _of_python(os.environ):
        return _started(words, cwd, environment, stdin, timeout)
    order = {
        "words": words,
        "program": program,
        "cwd": os.fspath(cwd),
        "env": environment,
        "umask": _umask(),
    }
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        code = _Nursery.of(environment).fork(order, (given, out, err), timeout)
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read())


def _of_python(environment: Mapping[str, str]) -> set[tuple[str, str]]:
    return {(name, value) for name, value in environment.items() if name.startswith("PYTHON")}


def _started(
    words: Sequence[str], cwd: str | os.PathLike[str], env: Mapping[str, str], stdin: bytes, timeout: float
) -> Ended:
    """A test that changes how Python starts means a start."""
    done = subprocess.run(
        [*PROGRAM, *words], cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


class _Nursery:
    """A process that has imported everything, as its owner sees it. It ends with its owner."""

    _all: ClassVar[dict[object, _Nursery]] = {}

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> _Nursery:
        """The one of this process for commands in that environment."""
        start = {name: value for name, value in environment.items() if name.startswith(_OF_THE_START)}
        key = os.getpid(), tuple(sorted(start.items()))
        if key not in cls._all:
            cls._all[key] = cls(start)
        return cls._all[key]

    def __init__(self, start: Mapping[str, str]) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd="/",
                env=dict(start),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def fork(self, order: Mapping[str, object], streams: Sequence[IO[bytes]], timeout: float) -> int:
        """The exit code of a command that runs on these streams."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs, tempfile.TemporaryFile() as written:
            written.write(json.dumps(order).encode("ascii"))
            written.seek(0)
            descriptors = [written.fileno(), *(stream.fileno() for stream in streams), theirs.fileno()]
            socket.send_fds(self._ours, [b"fork"], descriptors)
            theirs.close()
            pid = int(ours.recv(64))
            ours.settimeout(timeout)
            try:
                return int(ours.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(f"agent-bridge {order['words']}", timeout) from None


def _nurse(owner: socket.socket) -> Callable[[], int]:
    """Import, then fork for each order. Returns in the child only: what it has to do."""
    from agent_bridge.cli import entry

    for room in _ROOMS:
        package = importlib.import_module(f"agent_bridge.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"agent_bridge.{room}."):
            importlib.import_module(module.name)
    for name in _DAEMON:
        importlib.import_module(f"agent_bridge.daemon.{name}")
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, descriptors, _flags, _address = socket.recv_fds(owner, 16, 5)
        if not asked:
            os._exit(0)
        if os.fork() == 0:
            owner.close()
            _become(*descriptors)
            return entry.main
        for descriptor in descriptors:
            os.close(descriptor)


def _become(order_file: int, stdin: int, stdout: int, stderr: int, report: int) -> None:
    """Be the command's process; its parent waits for it and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pid = os.fork()
    if pid:
        _tell_the_end(pid, report)
    with open(order_file, encoding="ascii") as written:
        order = json.load(written)
    for descriptor, number in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.close(report)
    os.environ.clear()
    os.environ.update(order["env"])
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    sys.argv = [order["program"] or str(sys.modules["agent_bridge.cli.entry"].__file__), *order["words"]]


def _tell_the_end(pid: int, report: int) -> NoReturn:
    with socket.socket(fileno=report) as owner:
        owner.send(b"%d" % pid)
        _pid, status = os.waitpid(pid, 0)
        owner.send(b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(_nurse(socket.socket(fileno=int(sys.argv[1])))())
