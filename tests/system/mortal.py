"""Runs agent-bridge and dies in the middle, as by `kill -9`, at a step that the test names. Run as a program.

Orders come as JSON on standard input, one a line; each is carried out by a child of its own:

    {"words": [...], "cwd": "...", "die_at": N}    dies right before its Nth change to the file system
    {"words": [...], "cwd": "...", "torn_at": N}   dies when byte N of a file written in place is reached

Without either it runs to its end. The answer, a line of JSON: `code` (negative: the signal), and `steps`, the
changes that were begun.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import struct
import sys
from typing import Any

_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def main() -> None:
    """Carry out orders until there are no more."""
    import agent_bridge.cli.app
    import agent_bridge.cli.entry
    import agent_bridge.daemon.engines
    import agent_bridge.daemon.reactor
    import agent_bridge.daemon.service
    import agent_bridge.projection.setup  # noqa: F401 (imported once, not in every child)

    steps = mmap.mmap(-1, 4)
    for line in sys.stdin:
        order = json.loads(line)
        steps[:] = bytes(4)
        child = os.fork()
        if child == 0:
            _be(order, steps)
        _, status = os.waitpid(child, 0)
        answer = {"code": os.waitstatus_to_exitcode(status), "steps": struct.unpack("i", steps)[0]}
        print(json.dumps(answer), flush=True)


def _be(order: dict[str, Any], steps: mmap.mmap) -> None:
    from agent_bridge.cli.entry import main as bridge

    os.chdir(order["cwd"])
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    sys.argv = ["agent-bridge", *order["words"]]
    if "torn_at" in order:
        _tear(order["torn_at"])
    else:
        _count(steps, order.get("die_at"))
    code = 1
    try:
        code = bridge()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(code)


def _count(steps: mmap.mmap, die_at: int | None) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and _writes(*arguments)) or event == "subprocess.Popen":
            (count,) = struct.unpack("i", steps)
            steps[:] = struct.pack("i", count + 1)
            if count + 1 == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _writes(path: object, mode: object, flags: object) -> bool:
    return path != os.devnull and isinstance(flags, int) and bool(flags & _WRITING)


def _tear(size: int) -> None:
    """Once old and new bytes are safe in their journal, let the kernel end this process at a file size."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    journals: list[object] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open":
            return
        path, _, flags = arguments
        if str(path).endswith(".journal"):
            journals.append(path)
        elif journals and flags & os.O_DIRECTORY:
            # The journal is made durable: next the file itself is written.
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
