"""Refusals and failures as answers: `{"error": "<sentence>", "code": "<code>"}`, and never more than that."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent_bridge.channel.errors import ChannelError, TooManyError
from agent_bridge.log import get_logger
from agent_bridge.registry import rates
from agent_bridge.registry.answers import Answer, Header, as_json
from agent_bridge.registry.token import TokenError

_log = get_logger("registry")

# The rest of such a request isn't waited for.
_CLOSING = (408, 413, 431)


class Refusals:
    """How often something was refused or failed, for `status`; used on the loop's thread."""

    def __init__(self) -> None:
        self._by_code: Counter[str] = Counter()
        self.failures = 0
        """Requests that ended in an exception of ours that nobody foresaw."""

    def answer(self, error: ChannelError) -> Answer:
        """The answer for a refusal."""
        self._by_code[error.code] += 1
        return answer_for(error)

    def failed(self, error: Exception, what: str) -> Answer:
        """The answer for an exception that nobody foresaw: logged with its traceback, counted, not shown."""
        self.failures += 1
        _log.error("A request failed", what=what, exc_info=error)
        return as_json(
            {"error": "Something went wrong here; the service's log says what.", "code": "internal"}, 500
        )

    def describe(self) -> dict[str, Any]:
        """Figures for `status`. From any thread."""
        return {"failures": self.failures, "refused": dict(self._by_code)}


def answer_for(error: ChannelError) -> Answer:
    """What the caller of a refused request is told."""
    headers: list[Header] = []
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooManyError):
        headers.append((b"retry-after", str(rates.whole_seconds(error)).encode()))
    if error.status in _CLOSING:
        headers.append((b"connection", b"close"))
    # Whoever has no token yet isn't told where anything lies.
    sentence = f"{error.title}." if isinstance(error, TokenError) else error.sentence()
    body = {"error": sentence.encode("utf-8", "replace").decode(), "code": error.code}
    return as_json(body, error.status, tuple(headers))
