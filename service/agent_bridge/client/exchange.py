"""One question and answer over HTTP, apart from who carries it: the plain client or the async one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agent_bridge.client import address as addresses
from agent_bridge.client.answers import AnswerError, refusal
from agent_bridge.errors import NotRunningError

if TYPE_CHECKING:
    import ssl

    from agent_bridge.client.address import Address

IDENTITY_HEADER = "X-Agent-Bridge-Identity"
ANSWER_BYTES = 256 * 1024 * 1024
"""Bytes that an answer may have: a page of messages, each as large as the settings allow."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer; header names are in lower case."""

    status: int
    data: Any
    headers: Mapping[str, str]

    def number(self, header: str) -> int | None:
        """A header that holds a whole number, None where it is missing or doesn't."""
        value = self.headers.get(header, "")
        return int(value) if value.isascii() and value.isdigit() else None


class Collected:
    """An answer's body as it comes in: too long or too late (`deadline`, steady s) ends it."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes, now: float) -> None:
        """Take the next part. Raises AnswerError or NotRunningError."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > ANSWER_BYTES:
            raise AnswerError(
                "The registry's answer is too long.",
                detail=f"It has more than {ANSWER_BYTES} bytes.",
                remedy="Ask for less.",
            )
        if now > self._deadline:
            raise unanswered(TimeoutError("its answer took too long"))

    def all(self) -> bytes:
        """The whole body."""
        return b"".join(self._parts)


def headers(address: Address, identity: str) -> dict[str, str]:
    """What every request says: the token and the identity; and that no answer is to be compressed."""
    return {
        "Authorization": f"Bearer {address.token}",
        IDENTITY_HEADER: identity,
        "Accept-Encoding": "identity",
    }


def path(*parts: str) -> str:
    """A path of these parts, each quoted: an id may hold anything printable, or be `..`."""
    return "".join(f"/{_quoted(part)}" for part in parts)


def _quoted(part: str) -> str:
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def no_tls() -> ssl.SSLContext:
    """A context without certificates: loading them takes longer than a request, and none is ever used."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def settle(status: int, told: Mapping[str, str], body: bytes) -> Answer:
    """What the answer says. Raises the ChannelError that it tells of, or AnswerError."""
    try:
        data = json.loads(body) if body else None
    except (ValueError, RecursionError):
        if 200 <= status < 300:
            raise not_ours(status) from None
        data = None
    if 200 <= status < 300:
        return Answer(status, data, {name.lower(): value for name, value in told.items()})
    if 300 <= status < 400:
        raise not_ours(status)
    raise refusal(data, status)


def unanswered(error: Exception) -> NotRunningError:
    """The error for a request that httpx could not carry out."""
    import httpx

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return addresses.not_running(str(error))
    return NotRunningError(
        "The registry doesn't answer.",
        detail=str(error) or type(error).__name__,
        remedy="If that lasts, restart it: `agent-bridge service restart`.",
    )


def not_ours(status: int) -> AnswerError:
    """The error for an answer that the registry never gives."""
    return AnswerError(
        "What answers on the registry's port isn't the registry.",
        detail=f"status {status}",
        remedy="Restart the service: `agent-bridge service restart`.",
    )
