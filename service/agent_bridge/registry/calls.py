"""One HTTP request as its handler sees it: who asks, what for, and the body, which is read within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote_to_bytes

from agent_bridge.channel import ids
from agent_bridge.channel.errors import ChannelError, InvalidError
from agent_bridge.channel.storage.answers import MAX_PAGE
from agent_bridge.registry import fields, wire
from agent_bridge.registry.answers import Receive, Scope
from agent_bridge.registry.security import Caller, too_large

QUERY_TEXT_LIMIT = 500
"""Characters that a text in a query may have."""
BODY_SECONDS = 20.0
"""What the body of a request may take to come, however large it is."""
CALLER = "agent_bridge.caller"
"""Where in the ASGI scope the `Caller` stands."""

_Word = TypeVar("_Word", bound=StrEnum)


class TooSlowError(ChannelError):
    """The body didn't come within `BODY_SECONDS`."""

    status: ClassVar[int] = 408
    code = "too_slow"


class GoneError(ChannelError):
    """The caller left before its request was complete; nobody reads the answer."""

    code = "gone"


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was let in. `scope["path"]` is the path as it was sent, percent signs and all."""

    scope: Scope
    receive: Receive
    limit: int

    @property
    def caller(self) -> Caller:
        """Who asks."""
        caller: Caller = self.scope[CALLER]
        return caller

    async def body(self) -> bytes:
        """The whole body. Raises TooLargeError, TooSlowError, GoneError."""
        async with asyncio.timeout(BODY_SECONDS) as patience:
            try:
                return await self._body()
            except asyncio.CancelledError:
                if patience.expired():
                    raise TooSlowError(f"The body took over {BODY_SECONDS:g} s to come") from None
                raise

    async def json(self) -> Mapping[str, Any]:
        """The object in the body. Raises what `body` does, and InvalidError."""
        body = await self.body()
        if len(body) <= wire.QUICK_BYTES:
            return wire.read(body)
        return await asyncio.to_thread(wire.read, body)

    def path_id(self, name: str, what: str) -> str:
        """An id from the path. Raises InvalidError."""
        return ids.checked_id(self._path_text(name, what), what)

    def query_id(self, name: str) -> str | None:
        """An id from the query, None where it isn't there."""
        value = self.caller.query.get(name)
        return None if value is None else ids.checked_id(value, name)

    def query_text(self, name: str) -> str | None:
        """A text from the query, None where it isn't there."""
        return fields.optional_text(self.caller.query, name, QUERY_TEXT_LIMIT)

    def query_flag(self, name: str) -> bool | None:
        """`true` or `false` from the query."""
        value = self.caller.query.get(name)
        if value not in (None, "true", "false"):
            raise InvalidError(f"{name} can't be used", detail="it must be true or false")
        return None if value is None else value == "true"

    def query_word(self, name: str, words: type[_Word]) -> _Word | None:
        """One of the words of an enumeration from the query."""
        return fields.word(self.caller.query, name, words) if name in self.caller.query else None

    def query_number(self, name: str, least: int = 0, largest: int = fields.LARGEST_TIME) -> int | None:
        """A whole number from the query."""
        value = self.caller.query.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 16 and least <= int(value) <= largest):
            raise InvalidError(
                f"{name} can't be used", detail=f"it must be a whole number from {least} to {largest}"
            )
        return int(value)

    def query_limit(self, default: int) -> int:
        """How many entries the caller wants, at most `MAX_PAGE`."""
        return self.query_number("limit", 1, MAX_PAGE) or default

    def _path_text(self, name: str, what: str) -> str:
        parameters: Mapping[str, Any] = self.scope["path_params"]
        try:
            return unquote_to_bytes(parameters[name]).decode()
        except UnicodeDecodeError:
            raise InvalidError(f"{what} can't be used", detail="it isn't UTF-8 text") from None

    async def _body(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._check_size(message["body"])
            return bytes(message["body"])
        body = bytearray()
        while message["type"] == "http.request":
            body += message["body"]
            self._check_size(body)
            if not message.get("more_body"):
                return bytes(body)
            message = await self.receive()
        raise GoneError("The caller left")

    def _check_size(self, body: bytes | bytearray) -> None:
        if len(body) > self.limit:
            raise too_large(self.limit)
