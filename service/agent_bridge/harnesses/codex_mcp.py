"""How Codex starts our MCP server. Pure.

Source: Codex 0.171.0, by running it. Servers stand in `[mcp_servers.NAME]` of `$CODEX_HOME/config.toml`, for
all projects. A server gets PATH, HOME and a few more variables, and those that `env_vars` names as far as
they are set: not even CODEX_HOME without it. `codex mcp add` and `remove` write all of these tables anew and
take comments out of them. Our tools need no approval there by what they say of themselves.
"""

from __future__ import annotations

from pathlib import Path

from agent_bridge.harnesses import codex_config, mcp_command
from agent_bridge.harnesses.base import Json, KeyEdit, Notice, Site

KEY = ("mcp_servers", mcp_command.SERVER)


def edits(site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
    """The server, key by key; () where Codex doesn't trust the project or its settings can't be read."""
    layer = codex_config.user_layer(site)
    if not site.is_main or layer.problem or codex_config.trust(site) == "untrusted":
        return ()
    return server(layer.path, command)


def server(path: Path, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
    """The server in the settings file `path`."""
    values: list[tuple[str, Json]] = [("command", command[0])]
    if command[1:]:
        values.append(("args", list(command[1:])))
    values.append(("env_vars", list(mcp_command.ENVIRONMENT)))
    return tuple(
        KeyEdit(
            path=path,
            format="toml",
            key=(*KEY, name),
            value=value,
            why="Codex starts our MCP server, which has the memory's and the channel's tools",
        )
        for name, value in values
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """That the server is switched off by its user."""
    layer = codex_config.user_layer(site)
    if layer.get(*KEY, "enabled") is not False:
        return ()
    text = f"Codex doesn't start our MCP server, by {'.'.join(KEY)}.enabled in {layer.path}."
    return (Notice("info", "codex-mcp-off", text, layer.path),)
