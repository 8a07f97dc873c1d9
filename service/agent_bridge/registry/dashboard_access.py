"""How a browser gets in: a code, made by somebody who has the token, is changed once for a cookie.

A browser can't send the token by itself, and an address that holds it would stay in the history. Codes hold
for a minute and for one use; cookies until the service ends, or for a week. A cookie may ask for all
identities (`*`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

COOKIE = "agent_bridge_dashboard"
CODE_SECONDS = 60.0
COOKIE_SECONDS = 7 * 86_400
_MOST = 100
"""Codes, and cookies, that hold at once; past that the oldest no longer does."""


class DashboardAccess:
    """The codes and cookies that hold. Used on one thread; `clock` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._cookies: dict[str, float] = {}

    def new_code(self) -> str:
        """A code for one login within the next minute."""
        return self._new(self._codes, CODE_SECONDS)

    def login(self, code: str) -> str | None:
        """The cookie's value for a code that holds; the code is used up. None for any other."""
        until = self._codes.pop(code, None)
        if until is None or self._clock() >= until:
            return None
        return self._new(self._cookies, COOKIE_SECONDS)

    def holds(self, cookie: str) -> bool:
        """Whether this is the value of a cookie that was given out."""
        return self._clock() < self._cookies.get(cookie, float("-inf"))

    def _new(self, kept: dict[str, float], seconds: float) -> str:
        # 256 random bits can't be found by trying, nor by how long a dictionary takes to look them up.
        made = secrets.token_urlsafe(32)
        while len(kept) >= _MOST:
            del kept[next(iter(kept))]
        kept[made] = self._clock() + seconds
        return made


def set_cookie(value: str) -> str:
    """The `Set-Cookie` header for a cookie's value."""
    return f"{COOKIE}={value}; Max-Age={COOKIE_SECONDS}; Path=/; HttpOnly; SameSite=Strict"
