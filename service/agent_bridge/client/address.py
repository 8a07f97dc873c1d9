"""Where the registry of the running service answers, and the token that it asks for.

Both stand in files of the state directory: `registry.json`, `{"url", "pid"}`, and `registry.token`. A service
that starts again may have taken another port, so they are read for every new connection.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from agent_bridge import paths
from agent_bridge.errors import AgentBridgeError, NotRunningError, RefusedError

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_MOST = 64 * 1024
_TOKEN_MOST = 512


@dataclass(frozen=True, slots=True)
class Address:
    """`url` is `http://host:port` on this machine's loopback; the token is never shown."""

    url: str
    token: str = field(repr=False)

    @property
    def host(self) -> str:
        """The host without brackets."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The TCP port."""
        return urlsplit(self.url).port or 80

    @property
    def socket_url(self) -> str:
        """The WebSocket's URL, for a client that hears nothing before it has said who it is."""
        return f"ws{self.url.removeprefix('http')}/ws?events=none"


def find(env: Mapping[str, str] | None = None) -> Address:
    """The registry's address, from the files that the service wrote. `env` as in `paths`.

    Raises NotRunningError when there are none (the remedy: `agent-bridge up`), RefusedError for a token that
    others could have read or written, AgentBridgeError for files that can't be read or understood, and for a
    token that is gone while the registry is there.
    """
    url, place = _url(paths.registry_address(env)), paths.registry_token(env)
    try:
        return Address(url, read_token(place))
    except NotRunningError:
        _url(paths.registry_address(env))  # gone by now? Then so is the registry.
        raise AgentBridgeError(
            "The registry's token is gone",
            path=place,
            remedy="Restart the service for a new one: `agent-bridge service restart`.",
        ) from None


def read_token(path: Path) -> str:
    """The token in the file `path`, which must be this user's own and closed to everybody else."""
    text = _read(path, private=True).strip()
    if not text or len(text) > _TOKEN_MOST or not (text.isascii() and text.isprintable()) or " " in text:
        raise AgentBridgeError(
            "The registry's token can't be used",
            path=path,
            remedy="Remove the file and restart the service: `agent-bridge service restart`.",
        )
    return text


def not_running(detail: str = "") -> NotRunningError:
    """The error for a registry that isn't there."""
    return NotRunningError(
        "The registry isn't running.", detail=detail, remedy="Start it: `agent-bridge up`."
    )


def _url(path: Path) -> str:
    text = _read(path, private=False)
    try:
        document = json.loads(text)
        url = document["url"] if isinstance(document, dict) else None
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme != "http" or parts.hostname not in _LOOPBACK or not parts.port:
            raise ValueError("no URL on this machine's loopback")
    except (ValueError, KeyError, RecursionError) as error:
        raise AgentBridgeError(
            "The registry's address can't be understood",
            path=path,
            detail=str(error),
            remedy="Restart the service: `agent-bridge service restart`.",
        ) from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"http://{host}:{parts.port}"


def _read(path: Path, *, private: bool) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise not_running() from None
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        _check(os.fstat(descriptor), path, private=private)
        return os.read(descriptor, _MOST).decode("utf-8", "replace")
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def _check(found: os.stat_result, path: Path, *, private: bool) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        raise RefusedError(
            "This isn't a file of yours, so it isn't used",
            path=path,
            remedy="Remove it and restart the service: `agent-bridge service restart`.",
        )
    open_to = stat.S_IMODE(found.st_mode) & (0o077 if private else 0o022)
    if open_to:
        raise RefusedError(
            "Others may read or change this file, so it isn't used"
            if private
            else "Others may change this file",
            path=path,
            detail=f"mode {stat.S_IMODE(found.st_mode):04o}",
            remedy="Remove it and restart the service for a new one: `agent-bridge service restart`.",
        )


def _unreadable(path: Path, error: OSError) -> AgentBridgeError:
    return AgentBridgeError(
        "A file of the registry's can't be read", path=path, detail=error.strerror or str(error)
    )
