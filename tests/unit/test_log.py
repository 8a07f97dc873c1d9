"""The log: readable at a terminal, one JSON line an event elsewhere, priorities under the journal."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge import log
from agent_bridge.errors import ConfigError


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    log.reset()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_configures_nothing_keeps_standard_output_clean(capsys: pytest.CaptureFixture[str]) -> None:
    log.get_logger("client").info("connected")
    log.get_logger("client").warning("lost", detail="a line\nof text")

    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert json.loads(line) == {
        "event": "lost",
        "part": "client",
        "detail": "a line\nof text",
        "level": "warning",
    }


def test_so_does_a_new_process() -> None:
    code = "from agent_bridge import log; log.get_logger('client').warning('lost')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    assert json.loads(ran.stderr)["event"] == "lost"


def test_an_event_is_one_json_line() -> None:
    stream = io.StringIO()
    log.configure("info", stream=stream)
    log.get_logger("watch").info("changed\nhere", path=Path("/a/b"), odd="\udcff", é=1)
    [line] = lines(stream)
    assert (line["event"], line["part"], line["level"]) == ("changed\nhere", "watch", "info")
    assert (line["path"], line["odd"], line["é"]) == ("/a/b", "\udcff", 1)
    stream.getvalue().encode()  # it can be written, whatever a file is called
    assert str(line["timestamp"]).endswith("Z")


@pytest.mark.parametrize(("level", "heard"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_what_is_less_severe_is_not_logged(level: str, heard: int) -> None:
    stream = io.StringIO()
    log.configure(level, stream=stream)
    logger = log.get_logger("x")
    logger.debug("a")
    logger.info("b")
    logger.warning("c")
    logger.error("d")
    assert len(lines(stream)) == heard


@pytest.mark.parametrize("given_as", ["exc_info", "error", "exception"])
def test_an_error_of_ours_is_told_by_its_fields(given_as: str) -> None:
    stream = io.StringIO()
    log.configure("info", stream=stream)
    error = ConfigError("Title", detail="Detail", path="/f", remedy="Remedy")
    if given_as == "exception":
        try:
            raise error
        except ConfigError:
            log.get_logger("x").exception("failed")
    else:
        log.get_logger("x").error("failed", **{given_as: error})
    [line] = lines(stream)
    assert line["error"] == {
        "code": "config",
        "title": "Title",
        "detail": "Detail",
        "path": "/f",
        "remedy": "Remedy",
    }
    assert "exception" not in line


def test_any_other_error_has_its_traceback() -> None:
    stream = io.StringIO()
    log.configure("info", stream=stream)
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        log.get_logger("x").exception("failed")
    [line] = lines(stream)
    assert "Traceback" in str(line["exception"])


def test_libraries_log_the_same_way() -> None:
    stream = io.StringIO()
    log.configure("info", stream=stream)
    logging.getLogger("watchdog.observers").warning("queue is %s", "full")
    logging.getLogger("watchdog.observers").info("chatter")
    [line] = lines(stream)
    assert (line["event"], line["part"], line["level"]) == ("queue is full", "watchdog.observers", "warning")


def test_a_terminal_gets_readable_lines() -> None:
    stream = io.StringIO()
    log.configure("info", to_terminal=True, stream=stream)
    log.get_logger("watch").info("changed", path="/a")
    assert "changed" in stream.getvalue()
    assert "path=/a" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize("journal", [True, False])
def test_priorities_only_for_the_journal(journal: bool, tmp_path: Path) -> None:
    """JOURNAL_STREAM is inherited by every child; only the very stream that it names leads to the journal."""
    code = (
        "from agent_bridge import log; log.configure('debug'); x = log.get_logger('x');"
        "x.error('e'); x.warning('w'); x.info('i'); x.debug('d')"
    )
    with (tmp_path / "out").open("w") as output:
        info = os.fstat(output.fileno())
        stream = f"{info.st_dev}:{info.st_ino}" if journal else "1:1"
        env = os.environ | {"JOURNAL_STREAM": stream}
        subprocess.run([sys.executable, "-c", code], stderr=output, env=env, check=True)
    starts = [line[:3] for line in (tmp_path / "out").read_text().splitlines()]
    assert starts == (["<3>", "<4>", "<6>", "<7>"] if journal else ['{"e'] * 4)
