"""What a shim says of itself and of the program that started it, before the first line of its client.

One line of JSON, `{"hello": {…}}`; the service answers with one, `{"welcome": {…}}` or `{"refused": {…}}`.
Everything after that is MCP, a message a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HELLO_VERSION = 1
RENAMED = "notifications/agent-bridge/renamed"
"""A notification for the shim alone: `agentId` in its params is what it is to say in a next hello in place of
the welcome's. A client's roots are asked for after the welcome, and decide on the project and so on the id.
"""
ENVIRONMENT = (
    "AGENT_BRIDGE_PROJECT",
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCODE",
    "OPENCODE_PID",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)
"""Variables of its environment that the shim passes on where they are set. No token is among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A shim's hello, parsed and bounded (`mcp.hello_parse`).

    `nonce` names the shim (32 hexadecimal digits) and stays the same when it connects anew. `agent_id` is
    what an earlier welcome gave it, or a later `RENAMED`; "" before. `replayed`: ids of requests that it
    sends again because the service ended before it had answered; each as JSON text, since `1` and `"1"`
    differ.
    """

    nonce: str
    pid: int
    parent_pid: int
    cwd: str
    project: str = ""
    identity: str = "global"
    client_name: str = ""
    client_version: str = ""
    agent_id: str = ""
    replayed: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
