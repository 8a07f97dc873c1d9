"""The registry as an ASGI application: the gate, then the routes, then whatever they raise as an answer.

`POST /channel/messages` is looked up before FastAPI's routing, since it is what most requests are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import GLOBAL_IDENTITY
from agent_bridge.registry import routes
from agent_bridge.registry.ag_ui import AgUiRoute
from agent_bridge.registry.answers import Answer, Receive, Scope, as_json
from agent_bridge.registry.answers import Send as SendBack
from agent_bridge.registry.calls import CALLER, Call, GoneError
from agent_bridge.registry.errors_on_wire import Refusals, closing
from agent_bridge.registry.mounted import MCP_METHODS, MCP_PATH
from agent_bridge.registry.openapi import document
from agent_bridge.registry.security import Caller
from agent_bridge.registry.sockets import Endpoint

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_bridge.config import Settings
    from agent_bridge.registry.hub import Hub
    from agent_bridge.registry.mounted import Mounted
    from agent_bridge.registry.security import Access

Answering = Callable[[Call, SendBack], Awaitable[None]]


def make_app(hub: Hub, access: Access, _settings: Settings, mounted: Mounted | None = None) -> Registry:
    """The application for uvicorn. How large a body may be stands in `access`, and may change.

    `mounted` answers `/mcp`."""
    return Registry(hub, access, mounted)


class Registry:
    """Lets in whom `access` lets in, and answers them; keeps count of what was refused or failed."""

    def __init__(self, hub: Hub, access: Access, mounted: Mounted | None = None) -> None:
        self.refusals = Refusals(hub.traffic)
        self._access = access
        endpoints = {
            (method, path): _Endpoint(_at_once(handler), self.refusals, access)
            for method, path, handler in routes.handlers(hub, access.dashboard)
        }
        endpoints["POST", routes.AG_UI] = _Endpoint(AgUiRoute(hub).run, self.refusals, access)
        if mounted is not None:
            tools = _Endpoint(_passed_on(mounted), self.refusals, access)
            endpoints |= {(method, MCP_PATH): tools for method in MCP_METHODS}
        self._send_message = endpoints["POST", routes.SEND]
        self._routed = _fastapi(endpoints, Endpoint(hub, identity_of))

    async def __call__(self, scope: Scope, receive: Receive, send: SendBack) -> None:
        """One request, or one WebSocket connection."""
        if scope["type"] == "lifespan":
            await self._routed(scope, receive, send)
            return
        try:
            scope[CALLER] = self._access.check(scope)
        except ChannelError as error:
            await _turn_away(scope, send, self.refusals.answer(error))
            return
        except Exception as error:  # noqa: BLE001 - told to the caller, the log and the status
            await _turn_away(scope, send, self.refusals.failed(error, "a request's head"))
            return
        # Routed by the path as it was sent: an id may hold a slash, which is %2F there.
        path = scope["path"] = scope["raw_path"].decode("latin-1")
        if path == routes.SEND and scope.get("method") == "POST":
            await self._send_message(scope, receive, send)
        else:
            await self._routed(scope, receive, send)

    def describe(self) -> dict[str, int]:
        """How often requests were refused, by code, for `status`. From any thread."""
        return self.refusals.describe()


def identity_of(scope: Scope) -> str | None:
    """The identity that a request or an upgrade named, `*` for all; None where it named none."""
    caller: Caller = scope[CALLER]
    return caller.identity


class _Endpoint:
    """A handler as an ASGI application of its own: nothing it raises gets any further."""

    def __init__(self, answer: Answering, refusals: Refusals, access: Access) -> None:
        self._answer = answer
        self._refusals = refusals
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: SendBack) -> None:
        begun = False

        async def sending(message: Any) -> None:  # noqa: ANN401 - an ASGI message
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._answer(Call(scope, receive, self._access.message_bytes), sending)
        except GoneError:
            return
        except ChannelError as error:
            answer = self._refusals.answer(error)
        except Exception as error:  # noqa: BLE001 - told to the caller, the log and the status
            answer = self._refusals.failed(error, f"{scope['method']} {scope['path']}")
        else:
            return
        if not begun:
            await answer.send(send)


def _at_once(handler: routes.Handler) -> Answering:
    async def answer(call: Call, send: SendBack) -> None:
        await (await handler(call)).send(send)

    return answer


def _passed_on(mounted: Mounted) -> Answering:
    async def answer(call: Call, send: SendBack) -> None:
        # A cookie that may see everything works in one identity here, as everybody else.
        identity = call.caller.writes_as or GLOBAL_IDENTITY
        await mounted.answer(call.scope, call.receive, send, identity, call.limit)

    return answer


def _fastapi(endpoints: dict[tuple[str, str], _Endpoint], sockets: Endpoint) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_exception_handler(HTTPException, _no_such_route)
    by_path: dict[str, dict[str, _Endpoint]] = {}
    for (method, path), endpoint in endpoints.items():
        by_path.setdefault(path, {})[method] = endpoint
    for path, methods in by_path.items():
        app.router.routes.append(Route(path, _ByMethod(methods), methods=list(methods)))
    app.router.routes.append(Route("/openapi.json", _Document(), methods=["GET"]))
    app.router.routes.append(WebSocketRoute("/ws", sockets))
    return app


class _ByMethod:
    """Several methods of one path: one route, so that a wrong method is told all that are right."""

    def __init__(self, methods: dict[str, _Endpoint]) -> None:
        self._methods = methods | ({"HEAD": methods["GET"]} if "GET" in methods else {})

    async def __call__(self, scope: Scope, receive: Receive, send: SendBack) -> None:
        await self._methods[scope["method"]](scope, receive, send)


class _Document:
    """`GET /openapi.json`; made when it is first asked for."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: SendBack) -> None:
        await as_json(document()).send(send)


async def _no_such_route(_request: Request, raised: Exception) -> Response:
    error = cast("HTTPException", raised)
    code = {404: "no_such_route", 405: "method_not_allowed"}.get(error.status_code, "invalid")
    return JSONResponse({"error": f"{error.detail}.", "code": code}, error.status_code, error.headers)


async def _turn_away(scope: Scope, send: SendBack, answer: Answer) -> None:
    if scope["type"] == "http":
        # Its body isn't read, so the connection can't go on to a next request.
        await closing(answer).send(send)
        return
    await answer.refuse_upgrade(send, can_say_why="websocket.http.response" in scope.get("extensions", {}))
