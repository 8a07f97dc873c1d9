"""The service's own log: only where nobody else keeps what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import own_log

SPEAK = (
    "import os, sys; from agent_bridge.daemon.own_log import keep_own_log; kept = keep_own_log();"
    "print('out', kept, flush=True); os.write(2, b'from below\\n'); raise SystemExit('the end')"
)


def _speak(*, out: int, err: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SPEAK]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True, check=False)


def test_what_would_be_thrown_away_is_kept(sealed_home: Path) -> None:
    for _ in range(2):
        _speak(out=subprocess.DEVNULL, err=subprocess.DEVNULL)
    assert paths.log_file().read_text() == "out True\nfrom below\nthe end\n" * 2
    assert paths.log_file().stat().st_mode & 0o777 == 0o600


def test_what_somebody_reads_is_left_alone(sealed_home: Path) -> None:
    assert _speak(out=subprocess.PIPE, err=subprocess.DEVNULL).stdout == "out True\n"
    assert paths.log_file().read_text() == "from below\nthe end\n"
    said = _speak(out=subprocess.PIPE, err=subprocess.PIPE)
    assert (said.stdout, said.stderr) == ("out False\n", "from below\nthe end\n")


def test_a_long_log_is_put_aside(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_log, "KEPT_BYTES", 10)
    log = paths.log_file()
    log.parent.mkdir(parents=True)
    own_log.put_aside_when_long()
    for text, left in (("0123456789", "0123456789"), ("0123456789A", ""), ("the one after", "")):
        log.write_text(text)
        own_log.put_aside_when_long()
        assert log.read_text() == left
    assert log.with_name("service.log.1").read_text() == "the one after"


def test_one_that_is_open_already_is_put_aside_at_a_start(sealed_home: Path) -> None:
    log = paths.log_file()
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * (own_log.KEPT_BYTES + 1))
    with log.open("ab") as opened:
        _speak(out=subprocess.DEVNULL, err=opened.fileno())
    assert log.read_text() == "from below\nthe end\n"
    assert log.with_name("service.log.1").stat().st_size == own_log.KEPT_BYTES + 1


def test_on_a_mac_it_lies_where_logs_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    expected = Path("/Users/someone/Library/Logs/agent-bridge/agent-bridge.log")
    assert paths.log_file({"HOME": "/Users/someone"}) == expected
    env = {"HOME": "/Users/someone", "AGENT_BRIDGE_STATE_DIR": "/elsewhere"}
    assert paths.log_file(env) == Path("/elsewhere/service.log")
