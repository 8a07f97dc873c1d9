"""What answers the clients of the tools, made when the first of them comes, whichever way it comes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.daemon.mcp_memory import ServiceMemory
    from agent_bridge.daemon.registry_host import RegistryHost
    from agent_bridge.mcp.brain import Brain
    from agent_bridge.mcp.server import McpServer


class McpParts:
    """The tools with the service's stores and channel, and the SDK's server. From any thread."""

    def __init__(self, catalogue: Mapping[str, Any], settings: Settings, registry: RegistryHost) -> None:
        self.catalogue = catalogue
        self._settings = settings
        self._registry = registry
        self._memory: ServiceMemory | None = None
        self._brain: Brain | None = None
        self._server: McpServer | None = None
        self._making = threading.Lock()

    def brain(self) -> Brain:
        """The tools and sessions. Blocks for some 100 ms the first time."""
        with self._making:
            if self._brain is None:
                from agent_bridge.daemon.mcp_channel import ServiceChannel
                from agent_bridge.daemon.mcp_memory import ServiceMemory
                from agent_bridge.mcp.brain import Brain
                from agent_bridge.mcp.tools import all_tools

                settings = self._settings
                self._memory = ServiceMemory(settings)
                if self._settings is not settings:
                    self._memory.apply(self._settings)
                channel = ServiceChannel(self._registry)
                self._brain = Brain(all_tools(), self.catalogue, self._memory, channel)
            return self._brain

    def server(self) -> McpServer:
        """The SDK's server. Blocks for some 500 ms the first time, to load it."""
        brain = self.brain()
        with self._making:
            if self._server is None:
                from agent_bridge.mcp import sdk

                sdk.load()
                from agent_bridge.mcp.server import McpServer

                self._server = McpServer(brain)
            return self._server

    def made(self) -> Brain | None:
        """The tools and sessions if anybody has come yet."""
        return self._brain

    def apply(self, settings: Settings) -> None:
        """Take new settings; waits for nothing that is being loaded."""
        self._settings = settings
        if (memory := self._memory) is not None:
            memory.apply(settings)

    def close(self) -> None:
        """Wait until what was asked to be remembered is written."""
        if self._memory is not None:
            self._memory.close()
