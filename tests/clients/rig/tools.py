"""The tools of our MCP server as each client shows them to its model, and scripts that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from clients.rig import claude, codex, gemini, opencode
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.script import Again, Body, Call, Turn

Client: TypeAlias = Claude | Codex | Gemini | OpenCode

Step: TypeAlias = Call | Callable[[str], Call | Again]
"""A call of one of our tools by its plain name; a function computes it from what the call before came to."""

PREFIX = {Claude: "mcp__agent-bridge__", Codex: "", Gemini: "mcp_agent-bridge_", OpenCode: "agent-bridge_"}
"""What stands before the plain names in requests; Codex has a namespace of its own for a server's tools."""

NAMESPACE = "mcp__agent_bridge"


@dataclass(frozen=True, slots=True)
class Used:
    """A session: our tools in its first request, by their plain names, and what the calls came to."""

    offered: frozenset[str]
    results: tuple[str, ...]


def use_tools(client: Client, cwd: Path, steps: Sequence[Step]) -> Used:
    """Run a session whose model makes these calls, one after the other.

    Raises ClientError when the client fails, and AssertionError when it keeps its model from using a tool.
    """
    turns = [_turn(client, step) for step in steps]
    if isinstance(client, Codex):
        heard = client.exec(cwd, turns)
        return Used(offered(client, heard.requests[0].body), heard.tool_results)
    run = client.run(cwd, turns)
    assert not getattr(run, "denied", ()), f"Claude Code refused {run}"
    return Used(offered(client, run.requests[0].body), tuple(one.text for one in run.tool_results))


def offered(client: Client, body: Body) -> frozenset[str]:
    """Our tools in a request, by their plain names."""
    prefix = PREFIX[type(client)]
    return frozenset(name.removeprefix(prefix) for name in _names(client, body) if name.startswith(prefix))


def _names(client: Client, body: Body) -> list[str]:
    if isinstance(client, Claude):
        # A tool that is only named, to be looked for first, has the flag and no schema in the prompt.
        return [tool["name"] for tool in body["tools"] if not tool.get("defer_loading")]
    if isinstance(client, Codex):
        groups = [tool["tools"] for tool in body["tools"] if tool.get("name") == NAMESPACE]
        return [tool["name"] for group in groups for tool in group]
    if isinstance(client, Gemini):
        return [tool["name"] for group in body["tools"] for tool in group["functionDeclarations"]]
    return [tool["function"]["name"] for tool in body["tools"]]


def _turn(client: Client, step: Step) -> Turn:
    def said(body: Body) -> Call | Again:
        results = _results(client, body)
        wanted = step(results[-1] if results else "") if callable(step) else step
        if isinstance(wanted, Again):
            return Again(_named(client, wanted.call))
        return _named(client, wanted)

    return said


def _named(client: Client, call: Call) -> Call:
    return Call(PREFIX[type(client)] + call.name, call.input)


def _results(client: Client, body: Mapping[str, object]) -> tuple[str, ...]:
    if isinstance(client, Codex):
        return codex.tool_results(body)
    rig = {Claude: claude, Gemini: gemini, OpenCode: opencode}[type(client)]
    return tuple(one.text for one in rig.tool_results(body))
