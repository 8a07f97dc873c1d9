"""Which handler answers which method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent_bridge.registry.agents_routes import AgentsRoutes
from agent_bridge.registry.answers import Answer, as_json
from agent_bridge.registry.channel_routes import ChannelRoutes
from agent_bridge.registry.dashboard_routes import DashboardRoutes

if TYPE_CHECKING:
    from agent_bridge.registry.calls import Call
    from agent_bridge.registry.dashboard_access import DashboardAccess
    from agent_bridge.registry.hub import Hub

Handler = Callable[["Call"], Awaitable[Answer]]

AG_UI = "/agents/{agent}/ag-ui"
SEND = "/channel/messages"


def handlers(hub: Hub, dashboard: DashboardAccess) -> list[tuple[str, str, Handler]]:
    """Method, path and handler of every route that is answered at once; `AG_UI` and `/ws` stand apart."""
    agents, channel, pages = AgentsRoutes(hub), ChannelRoutes(hub), DashboardRoutes(dashboard)
    one, message = "/channel/conversations/{conversation}", "/channel/messages/{conversation}/{message}"
    return [
        ("GET", "/health", _health(hub)),
        ("GET", "/agents", agents.rows),
        ("POST", "/agents", agents.register),
        ("GET", "/agents/{agent}", agents.row),
        ("DELETE", "/agents/{agent}", agents.remove),
        ("POST", "/agents/{agent}/heartbeat", agents.heartbeat),
        ("POST", "/agents/{agent}/message", agents.message),
        ("POST", "/events", agents.task_update),
        ("POST", SEND, channel.send),
        ("GET", f"{SEND}/{{message}}", channel.message),
        ("POST", "/channel/acks", channel.acknowledge),
        ("GET", "/channel/inbox", channel.inbox),
        ("GET", "/channel/events", channel.events),
        ("GET", "/channel/conversations", channel.conversations),
        ("GET", one, channel.conversation),
        ("POST", f"{one}/suppress", channel.suppress),
        ("DELETE", f"{one}/suppress", channel.revive),
        ("POST", f"{message}/retry", channel.retry),
        ("POST", "/notify-claude", channel.notify_claude),
        ("POST", "/dashboard/codes", pages.new_code),
        ("GET", "/dashboard/login", pages.login),
        ("GET", "/dashboard", pages.pages),
    ]


def _health(hub: Hub) -> Handler:
    async def health(call: Call) -> Answer:
        if not call.caller.is_trusted:
            return as_json({"status": "ok"})
        identified, opened = hub.socket_counts(call.caller.sees)
        return as_json(
            {
                "status": "ok",
                "agents": len(hub.directory.rows(call.caller.sees)),
                "wsConnections": identified,
                "wsDashboardClients": opened,
                "timestamp": hub.stamp().decode(),
            }
        )

    return health
