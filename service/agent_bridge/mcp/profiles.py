"""Which kind of client a program is, by the name that it gives itself in `initialize`.

Claude Code 2.1.332 says `claude-code`, Codex 0.171.0 `codex-mcp-client`, OpenCode 1.18.33 `opencode`, Gemini
CLI 0.61.0 `gemini-cli-mcp-client-v1`, Antigravity `antigravity-client`.
"""

from __future__ import annotations

UNKNOWN = "unknown"


def profile_of(client_name: str) -> str:
    """`claude-code`, `codex`, `opencode`, `gemini`, `antigravity` or `unknown`."""
    name = client_name.casefold()
    if name in ("claude-code", "claude"):
        return "claude-code"
    if name == "agy":
        return "antigravity"
    for kind in ("codex", "opencode", "gemini", "antigravity"):
        if kind in name:
            return kind
    return UNKNOWN
