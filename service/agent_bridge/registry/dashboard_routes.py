"""The dashboard's door: codes, the login that changes one for a cookie, and where the pages will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge.registry.answers import Answer, as_json, as_text
from agent_bridge.registry.dashboard_access import DashboardAccess, set_cookie
from agent_bridge.registry.security import UnauthorizedError

if TYPE_CHECKING:
    from agent_bridge.registry.calls import Call


class DashboardRoutes:
    """Handlers for a browser and for the command that opens it."""

    def __init__(self, access: DashboardAccess) -> None:
        self._access = access

    async def new_code(self, call: Call) -> Answer:
        """`POST /dashboard/codes`: 201 a code. With the token only: a cookie makes no further ones."""
        await call.body()
        if call.caller.by_cookie:
            raise UnauthorizedError("This needs the registry's token, not the dashboard's cookie")
        return as_json({"code": self._access.new_code()}, 201)

    async def login(self, call: Call) -> Answer:
        """`GET /dashboard/login?code=`: 303 to the dashboard, with the cookie."""
        cookie = self._access.login(call.query_text("code") or "")
        if cookie is None:
            raise UnauthorizedError(
                "This code doesn't hold", remedy="One holds for a minute and for one use; ask for another."
            )
        headers = ((b"location", b"/dashboard"), (b"set-cookie", set_cookie(cookie).encode()))
        return Answer(303, b"", headers)

    async def pages(self, _call: Call) -> Answer:
        """`GET /dashboard`: not there yet."""
        return as_text("The dashboard isn't part of this version of agent-bridge.\n", 503)
