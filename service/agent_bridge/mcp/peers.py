"""What kind of program a row of the directory is, and what it is called. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.ids import DASHBOARD_ID
from agent_bridge.channel.plain import one_line

_UNKNOWN = "unknown"
_MOST = 60


@dataclass(frozen=True, slots=True)
class Peer:
    """`kind` is a word for programs, `label` one for people; `is_hidden`: no list names it."""

    kind: str
    label: str
    is_hidden: bool = False


def peer_of(row: AgentRow) -> Peer:
    """The kind of that row; the first that fits."""
    name = (row.client_name or "").casefold()
    if row.agent_id == DASHBOARD_ID:
        return Peer("dashboard-ui", "Dashboard", is_hidden=True)
    if name in ("claude-code", "claude"):
        return Peer("claude-code", "Claude Code")
    if row.client_version == "opencode-plugin-bridge":
        return Peer("opencode-bridge", "OpenCode bridge", is_hidden=True)
    if "opencode" in name:
        return Peer("opencode-code", "OpenCode")
    if row.client_version == "app-server-bridge":
        return Peer("codex-bridge", "Codex bridge", is_hidden=True)
    if "codex" in name:
        return Peer("codex-inner", "Codex")
    if "antigravity" in name or name == "agy":
        return Peer("antigravity-inner", "Antigravity")
    if "gemini" in name:
        return Peer("gemini", "Gemini CLI")
    return Peer(_UNKNOWN, one_line(row.client_name or "", _MOST) or _UNKNOWN)
