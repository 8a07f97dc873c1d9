"""Refusals and failures as answers: `{"error": "<sentence>", "code": "<code>"}`, and never more than that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agent_bridge.channel.errors import ChannelError, TooManyError
from agent_bridge.log import get_logger
from agent_bridge.registry import rates
from agent_bridge.registry.answers import Answer, Header, as_json
from agent_bridge.registry.token import TokenError

if TYPE_CHECKING:
    from agent_bridge.registry.traffic import Traffic

_log = get_logger("registry")

# The rest of such a request isn't waited for.
_CLOSING = (408, 413, 431)
_CLOSE: Header = (b"connection", b"close")


class Refusals:
    """How often something was refused or failed, for `status`; used on the loop's thread."""

    def __init__(self, traffic: Traffic) -> None:
        self._by_code: Counter[str] = Counter()
        self._traffic = traffic

    def answer(self, error: ChannelError) -> Answer:
        """The answer for a refusal."""
        self._by_code[error.code] += 1
        return answer_for(error)

    def failed(self, error: Exception, what: str) -> Answer:
        """The answer for an exception that nobody foresaw: logged with its traceback, counted, not shown."""
        self._traffic.failures += 1
        _log.error("A request failed", what=what, exc_info=error)
        return as_json(
            {"error": "Something went wrong here; the service's log says what.", "code": "internal"}, 500
        )

    def describe(self) -> dict[str, int]:
        """How often each code was answered. From any thread."""
        return dict(self._by_code)


def answer_for(error: ChannelError) -> Answer:
    """What the caller of a refused request is told."""
    headers: list[Header] = []
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooManyError):
        headers.append((b"retry-after", str(rates.whole_seconds(error)).encode()))
    if error.status in _CLOSING:
        headers.append(_CLOSE)
    # Whoever has no token yet isn't told where anything lies.
    sentence = f"{error.title}." if isinstance(error, TokenError) else error.sentence()
    body = {"error": sentence.encode("utf-8", "replace").decode(), "code": error.code}
    return as_json(body, error.status, tuple(headers))


def closing(answer: Answer) -> Answer:
    """The same answer, after which the connection is closed."""
    if _CLOSE in answer.headers:
        return answer
    return Answer(answer.status, answer.body, (*answer.headers, _CLOSE))
