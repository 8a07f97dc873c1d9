"""The service's log: readable lines at a terminal, JSON lines with a priority everywhere else.

A process that configures nothing logs warnings to standard error: standard output is for answers.

Under systemd each line begins with `<N>` (sd-daemon(3)), which the journal takes off and keeps as the line's
priority. Errors of ours are logged by their fields, without a traceback; anything else with one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger

from agent_bridge.errors import AgentBridgeError

Event = MutableMapping[str, Any]

_PRIORITIES = {"critical": 2, "exception": 3, "error": 3, "warning": 4, "info": 6, "debug": 7}
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(
    level: str = "info",
    *,
    to_terminal: bool | None = None,
    stream: TextIO | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Set up logging for the process.

    `level`: the least severe that is logged: debug, info, warning, error.
    `to_terminal`: readable lines rather than JSON; None asks the stream. `stream`: standard error if None.
    Python's `logging`, which our libraries use, goes the same way.
    """
    output = sys.stderr if stream is None else stream
    readable = output.isatty() if to_terminal is None else to_terminal
    journal = not readable and _is_journal(output, os.environ if env is None else env)
    least = _LEVELS[level]
    renderer: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=output.isatty())]
        if readable
        else [structlog.processors.format_exc_info, _OneLine(with_priority=journal)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _tell_our_errors,
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.WriteLoggerFactory(file=output),
        cache_logger_on_first_use=False,
    )
    _take_in_libraries(least)


def reset() -> None:
    """Log as a process does that has configured nothing: warnings, to what is standard error by then."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _tell_our_errors,
            structlog.processors.format_exc_info,
            _OneLine(with_priority=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS["warning"]),
        logger_factory=lambda *_names: structlog.WriteLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of one part of the program. `name` stands in each line as `part`."""
    return cast(FilteringBoundLogger, structlog.get_logger(part=name))


class _OneLine:
    """Renders an event as one line of JSON, behind a priority where the journal reads it."""

    def __init__(self, *, with_priority: bool) -> None:
        self._with_priority = with_priority

    def __call__(self, _logger: object, method: str, event: Event) -> str:
        line = json.dumps({"event": event.pop("event", ""), **event}, default=str, ensure_ascii=False)
        line = line.encode("utf-8", "backslashreplace").decode()  # names of files may be no UTF-8
        return f"<{_PRIORITIES.get(method, 6)}>{line}" if self._with_priority else line


def _tell_our_errors(_logger: object, _method: str, event: Event) -> Event:
    """Put an error of ours, given as `exc_info` or `error`, into fields: they say all there is to say."""
    error = event.get("exc_info") or event.get("error")
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, AgentBridgeError):
        event.pop("exc_info", None)
        event["error"] = error.as_dict()
    return event


def _is_journal(output: TextIO, env: Mapping[str, str]) -> bool:
    """Whether `output` is what systemd connected to the journal (JOURNAL_STREAM is device:inode)."""
    try:
        info = os.fstat(output.fileno())
    except (OSError, ValueError):
        return False
    return env.get("JOURNAL_STREAM", "") == f"{info.st_dev}:{info.st_ino}"


def _take_in_libraries(least: int) -> None:
    import logging

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                level = min(max(record.levelno // 10 * 10, 10), 50)
                logger = get_logger(record.name)
                logger.log(
                    level, record.getMessage(), **({"exc_info": record.exc_info} if record.exc_info else {})
                )
            except Exception:  # noqa: BLE001 - what logging's contract asks of a handler
                self.handleError(record)

    # Libraries report what concerns us as warnings; their chatter is for debugging only.
    logging.basicConfig(
        handlers=[Forward()], level=least if least <= logging.DEBUG else max(least, 30), force=True
    )


# structlog's own default is standard output.
reset()
