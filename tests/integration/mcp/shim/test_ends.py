"""The shim's end: within a second, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.mcp.shim.rig import SHIM, Service, Shim, Wire, answer, call

Start = Callable[..., Shim]


def test_ends_with_its_input_and_gives_the_answers_that_come(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    peer = service.accept()
    peer.greet()
    client.say(call(1))
    assert peer.hear() == call(1)
    assert client.process.stdin is not None
    client.process.stdin.close()
    peer.say(answer(1, {}))

    assert client.hear() == answer(1, {})
    assert client.process.wait(1) == 0


def test_ends_though_a_call_is_never_answered(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    peer = service.accept()
    peer.greet()
    client.say(call(1))
    assert peer.hear() == call(1)
    code, took, _ = client.end()

    assert code == 0
    assert took < 1.2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ends_by_signal_without_a_traceback(sealed_home: Path, shim: Start, number: signal.Signals) -> None:
    client = shim()
    client.begin()
    client.process.send_signal(number)

    assert client.process.wait(1) != 0
    assert client.errors() == b""


def test_ends_when_nobody_reads_its_output(sealed_home: Path, shim: Start) -> None:
    client = shim()
    client.begin()
    assert client.process.stdout is not None
    client.process.stdout.close()

    assert client.process.wait(1) == 0
    assert client.errors() == b""


@pytest.mark.parametrize("tells", [True, False], ids=["pidfd", "looking"])
def test_ends_with_its_parent_though_the_pipe_is_held(sealed_home: Path, tmp_path: Path, tells: bool) -> None:
    """The pipes are this test's, the parent is a program in between, which is killed."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    program = tmp_path / "shim.py"
    program.write_text(
        ("" if tells else "import os; os.__dict__.pop('pidfd_open', None)\n")
        + "from agent_bridge.mcp.shim.main import main\nmain(['--no-auto'])\n"
    )
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.call(sys.argv[1:])",
            sys.executable,
            program,
        ],
        stdin=in_read,
        stdout=out_write,
    )
    os.close(out_write)
    os.close(in_read)
    try:
        os.write(in_write, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        heard = Wire(out_read)
        assert heard.hear()["id"] == 1
        parent.kill()
        parent.wait()
        started = time.monotonic()
        assert heard.hear(2) == {}
        assert time.monotonic() - started < 1
    finally:
        parent.kill()
        parent.wait()
        os.close(in_write)
        os.close(out_read)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1, 2"])
def test_ends_in_order_with_standard_streams_closed(sealed_home: Path, closed: str) -> None:
    """Closed before Python starts, as a careless client leaves them."""
    descriptors = " ".join(f"{number}>&-" for number in closed.split(", "))
    done = subprocess.run(
        ["sh", "-c", f"exec {' '.join(SHIM)} --no-auto {descriptors}"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=10,
    )

    assert b"Traceback" not in done.stderr
    assert done.stdout == (b'{"jsonrpc":"2.0","id":1,"result":{}}\n' if closed == "2" else b"")
    assert done.returncode == (1 if "1" in closed else 0)


def test_client_that_does_not_read_is_not_remembered_without_bound(sealed_home: Path, shim: Start) -> None:
    """It asks for the tools again and again and reads nothing: the shim stops reading, too."""
    client = shim()
    client.begin()
    assert client.process.stdin is not None
    os.set_blocking(client.process.stdin.fileno(), False)
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 20
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            os.write(client.process.stdin.fileno(), line)
        except BlockingIOError:
            time.sleep(0.05)
    resident = Path(f"/proc/{client.process.pid}/statm")
    if sys.platform == "linux":
        assert int(resident.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") < 30 * 1024 * 1024
    started = time.monotonic()
    client.process.stdin.close()
    client.process.wait(2)
    assert time.monotonic() - started < 1.2
