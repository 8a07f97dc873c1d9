"""Who may talk to the registry: checked before anything else sees a request or a WebSocket upgrade.

A web page that the user has open can send requests to this port, and can have its own name lead to it, so
`Host` and `Origin` must be ours and no CORS header is ever sent. Other users of this machine can connect too:
everything but `/health` asks for the token, or for the dashboard's cookie. Nothing of a refused request is
read further than its head.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from agent_bridge.channel import ids
from agent_bridge.channel.errors import ChannelError, InvalidError, TooLargeError, WrongIdentityError
from agent_bridge.channel.model import ALL_IDENTITIES, GLOBAL_IDENTITY
from agent_bridge.registry.dashboard_access import COOKIE, DashboardAccess
from agent_bridge.registry.token import TokenError, TokenFile

OPEN_PATHS = frozenset({b"/health", b"/dashboard/login"})
"""What answers without the token; the first says no more than that it is there."""
IDENTITY_HEADER = "X-Agent-Bridge-Identity"
HEADERS_LIMIT = 100
HEADER_BYTES = 32 * 1024
TARGET_BYTES = 16 * 1024
"""Bytes that a path and its query may have."""
_QUERY_FIELDS = 50
_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_SINGLE = (b"host", b"origin", b"authorization", b"x-agent-bridge-identity", b"content-length", b"cookie")
# A page of another origin can have the browser fetch something without an Origin header, as an image.
_OWN_SITE = (b"same-origin", b"none")


class UnauthorizedError(ChannelError):
    """Neither the token nor a cookie that holds."""

    status: ClassVar[int] = 401
    code = "unauthorized"


class ForeignHostError(ChannelError):
    """The request is for a name that isn't this machine's loopback with our port."""

    status: ClassVar[int] = 403
    code = "foreign_host"


class ForeignOriginError(ChannelError):
    """The request comes from a web page that isn't ours."""

    status: ClassVar[int] = 403
    code = "foreign_origin"


class TargetTooLongError(ChannelError):
    """Path and query are longer than any of ours."""

    status: ClassVar[int] = 414
    code = "target_too_long"


class HeadersTooLargeError(ChannelError):
    """Too many headers, or too long ones."""

    status: ClassVar[int] = 431
    code = "headers_too_large"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and the query of the request (each name once).

    `identity`: the one that the request named, `*` for all (with the cookie only), None where it named none.
    """

    identity: str | None = None
    is_trusted: bool = False
    by_cookie: bool = False
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def sees(self) -> str:
        """The identity whose things this caller sees; `*` sees all."""
        return self.identity or GLOBAL_IDENTITY

    @property
    def writes_as(self) -> str | None:
        """The identity that what is written must have; None: what it says itself counts."""
        return None if self.identity == ALL_IDENTITIES else self.identity


class Access:
    """The checks, in the order in which they are made. `port` is the one we answer on."""

    def __init__(
        self, token: TokenFile, port: int, *, message_bytes: int, dashboard: DashboardAccess | None = None
    ) -> None:
        self.token = token
        self.dashboard = dashboard or DashboardAccess()
        self.message_bytes = message_bytes
        with_port = [f"{host}:{port}" for host in _HOSTS]
        self._hosts = frozenset(name.encode() for name in (*_HOSTS, *with_port))
        own = with_port if port != 80 else [*_HOSTS, *with_port]
        self._origins = frozenset(f"http://{host}".encode() for host in own)

    def check(self, scope: Mapping[str, Any]) -> Caller:
        """The caller of an ASGI scope. Raises ChannelError for one that is turned away."""
        headers = _headers(scope)
        path: bytes = scope["raw_path"]
        query_string: bytes = scope["query_string"]
        if len(path) + len(query_string) > TARGET_BYTES:
            raise TargetTooLongError("Path and query are too long", detail=f"over {TARGET_BYTES} bytes")
        self._check_where(headers)
        by_cookie = self._check_who(headers, path, is_read=scope.get("method") in ("GET", "HEAD"))
        self._check_length(headers)
        query = _query(query_string) if query_string else {}
        return Caller(
            identity=_identity(headers.get(b"x-agent-bridge-identity"), query, by_cookie=by_cookie is True),
            is_trusted=by_cookie is not None,
            by_cookie=by_cookie is True,
            query=query,
        )

    def _check_where(self, headers: Mapping[bytes, bytes]) -> None:
        host = headers.get(b"host")
        if host is None or host.lower() not in self._hosts:
            raise ForeignHostError("This registry answers to localhost and 127.0.0.1 only")
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in self._origins:
            raise ForeignOriginError("Pages of other origins may not use this registry")
        if headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
            raise ForeignOriginError("Pages of other sites may not use this registry")

    def _check_who(self, headers: Mapping[bytes, bytes], path: bytes, *, is_read: bool) -> bool | None:
        """True for the cookie, False for the token; None for neither, on a path that is open to all."""
        try:
            if self._has_token(headers.get(b"authorization")):
                return False
        except TokenError:
            if path not in OPEN_PATHS:
                raise
        if self._has_cookie(headers.get(b"cookie")):
            # A browser adds the cookie to whatever any page makes it send; that page has to be ours.
            if not is_read and b"origin" not in headers:
                raise ForeignOriginError("A request with the dashboard's cookie must name its Origin")
            return True
        if path in OPEN_PATHS:
            return None
        raise UnauthorizedError(
            "This needs the registry's token",
            remedy="Send `Authorization: Bearer` with it; `agent-bridge status --json` names its file.",
        )

    def _has_token(self, authorization: bytes | None) -> bool:
        token = self.token.current()
        if authorization is None:
            return False
        scheme, _blank, given = authorization.partition(b" ")
        return hmac.compare_digest(given.strip(), token) and scheme.lower() == b"bearer"

    def _has_cookie(self, cookies: bytes | None) -> bool:
        for pair in (cookies or b"").split(b";"):
            name, _equals, value = pair.strip().partition(b"=")
            if name == COOKIE.encode() and self.dashboard.holds(value.decode("latin-1")):
                return True
        return False

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and (len(length) > 18 or int(length) > self.message_bytes):
            raise too_large(self.message_bytes)


def too_large(limit: int) -> TooLargeError:
    """The error for a body over `limit` bytes."""
    return TooLargeError(
        f"The body is over {limit} bytes", remedy="Raise message_bytes in the settings, or send less."
    )


def _headers(scope: Mapping[str, Any]) -> Mapping[bytes, bytes]:
    pairs: list[tuple[bytes, bytes]] = scope["headers"]
    if len(pairs) > HEADERS_LIMIT or sum(len(name) + len(value) for name, value in pairs) > HEADER_BYTES:
        raise HeadersTooLargeError(
            "The headers are too large",
            detail=f"{HEADERS_LIMIT} of them and {HEADER_BYTES} bytes in all may come",
        )
    headers = dict(pairs)
    if len(headers) != len(pairs):
        names = [name for name, _value in pairs]
        for name in _SINGLE:
            if names.count(name) > 1:
                raise InvalidError(f"The header {name.decode()} may come once only")
    return headers


def _query(query_string: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_QUERY_FIELDS,
        )
    except ValueError:
        raise InvalidError("The query can't be read") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        raise InvalidError("The query names something twice")
    return query


def _identity(header: bytes | None, query: Mapping[str, str], *, by_cookie: bool) -> str | None:
    named = query.get("identity")
    if header is not None:
        in_header = header.decode("latin-1")
        if named is not None and named != in_header:
            raise InvalidError(f"{IDENTITY_HEADER} and identity= name two different identities")
        named = in_header
    if named is None:
        return None
    if named == ALL_IDENTITIES:
        if by_cookie:
            return named
        raise WrongIdentityError("Only the dashboard may ask for all identities")
    return ids.checked_identity(named)
