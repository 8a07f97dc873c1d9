"""The least that the official SDK can be: a stdio server with one tool."""

import asyncio

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import ListToolsResult, Tool


async def main() -> None:
    """Serve until standard input ends."""

    async def tools(_context: object, _params: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="nothing", input_schema={"type": "object"})])

    server = Server("minimal", on_list_tools=tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
