"""The MCP server: what the official SDK (mcp 2.3) asks of us, answered by the tools and the stores.

Importing this loads the SDK: some 25 MB and half a second, spent when the first client connects. There is one
server; each connection is served with its own `Connected` as the state that handlers see.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp import resources
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.places import first_root, root_of, told_start
from agent_bridge.mcp.running import FAILED, run_tool
from agent_bridge.mcp.tool import Answer

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    from agent_bridge.mcp.brain import Brain
    from agent_bridge.mcp.sessions import Connected

    Context = ServerRequestContext["Connected", Any]

ROOTS_SECONDS = 5.0
"""What a client gets to tell its roots; until then its calls wait, and then it works where it was started."""
MOST_CALLS = 256
"""Calls of one client that may be under way at a time."""
HIDES_TEXT = frozenset({"claude-code", "codex"})
"""Kinds of clients whose model sees the data of a result in place of its text, where there are both (Claude
Code 2.1.332, Codex 0.171.0, by running them). The text is what is written for a model: it says whose words it
quotes, what was left out and what to do next. These get the text alone, which both show whole."""
_NO_SUCH_RESOURCE = -32002
_log = get_logger("mcp")
# The SDK logs each request at level info.
logging.getLogger("mcp").setLevel(logging.WARNING)


class McpServer:
    """Serves connections; one for the whole service."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._tools = {tool.name: tool for tool in brain.tools}
        listed = [types.Tool.model_validate(entry) for entry in brain.catalogue["tools"]]
        self._listed = types.ListToolsResult(tools=listed)
        about = brain.catalogue["serverInfo"]
        self._server: Server[Connected] = Server(
            about["name"],
            version=about["version"],
            title=about["title"],
            instructions=brain.catalogue["instructions"],
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )
        self._server.middleware.clear()  # spans of OpenTelemetry, which nobody reads here
        for method in ("notifications/initialized", "notifications/roots/list_changed"):
            self._server.add_notification_handler(method, types.NotificationParams, self._place)
        self._options = self._server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def serve(
        self,
        connected: Connected,
        read: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
    ) -> None:
        """Serve one connection until its streams end."""
        await serve_loop(self._server, read, write, lifespan_state=connected, init_options=self._options)

    async def _list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listed

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        connected = context.lifespan_context
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool {params.name[:100]!r}.")
        if connected.in_flight >= MOST_CALLS:
            return _result(Answer(f"{MOST_CALLS} calls are under way already. Wait for some.", is_error=True))
        connected.in_flight += 1
        request_id = json.dumps(context.request_id)
        is_replay = request_id in connected.session.hello.replayed
        call = Call(connected.session, request_id, is_replay)
        try:
            await self._placed(connected)
            answer = await run_tool(tool, call, params.arguments, self._brain.counts)
            return _result(answer, with_data=connected.session.profile not in HIDES_TEXT)
        finally:
            connected.in_flight -= 1

    async def _list_resources(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource.model_validate(entry) for entry in resources.LISTED]
        )

    async def _list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        connected = context.lifespan_context
        await self._placed(connected)
        uri = str(params.uri)
        try:
            text = await asyncio.to_thread(resources.read, uri, connected.session)
        except AgentBridgeError as error:
            raise MCPError(code=_NO_SUCH_RESOURCE, message=error.sentence()) from None
        except Exception as error:  # noqa: BLE001 - told to the client, the log and the status
            self._brain.counts.failed(f"A resource can't be read: {type(error).__name__}.")
            _log.error("a resource can't be read", uri=uri[:200], exc_info=error)
            raise MCPError(code=types.INTERNAL_ERROR, message=FAILED) from None
        content = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[content])

    async def _placed(self, connected: Connected) -> None:
        """Wait until it is known where the client works; not long for one that never is initialized."""
        if not connected.is_placed.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(connected.is_placed.wait(), ROOTS_SECONDS)
            connected.is_placed.set()

    async def _place(self, context: Context, _params: types.NotificationParams) -> None:
        """The client is initialized, or has other roots now: ask for them where nobody told the project."""
        connected = context.lifespan_context
        connected.moves += 1
        if connected.moves > 1:
            return  # one question at a time: whoever has asked before asks again
        try:
            asked_after = 0
            while asked_after != connected.moves:
                asked_after = connected.moves
                if told_start(connected.session.hello) is None and _declares_roots(context):
                    await self._take_roots(connected, await _roots(context))
        finally:
            connected.moves = 0
            connected.is_placed.set()
            self._brain.presence.begin(connected)

    async def _take_roots(self, connected: Connected, uris: list[str]) -> None:
        start = first_root(uris)
        if start is None:
            return
        before = connected.session.agent_id
        root = await asyncio.to_thread(root_of, start)
        if self._brain.sessions.move(connected, start, root):
            if connected.tell_id is not None:
                connected.tell_id(connected.session.agent_id)
            await self._brain.presence.moved(connected, before)


def _result(answer: Answer, *, with_data: bool = True) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=dict(answer.data) if with_data and not answer.is_error else None,
        is_error=answer.is_error,
    )


def _declares_roots(context: Context) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


async def _roots(context: Context) -> list[str]:
    """The client's roots; none where it can't tell them in time."""
    try:
        answer = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_SECONDS
        )
    except (MCPError, ValidationError) as error:
        _log.warning("a client's roots aren't known", reason=type(error).__name__)
        return []
    return [str(root.uri) for root in answer.roots]
