"""Runs Claude Code against the fake Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients.rig.anthropic import FakeAnthropic
from clients.rig.prompt import ClaudePrompt, claude_prompt
from clients.rig.script import Script, Turn
from clients.rig.sealed import TIMEOUT_S, ClientError, Outcome, base_environment, run_sealed
from clients.rig.server import Request

_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_BUG_COMMAND": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call of the model came to."""

    name: str
    input: Mapping[str, Any]
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class ClaudeRun:
    """One `claude -p` from start to end."""

    prompt: ClaudePrompt
    requests: tuple[Request, ...]
    """The conversation's requests, without those that Claude makes for itself."""
    tool_results: tuple[ToolResult, ...]
    denied: tuple[str, ...]
    """Names of the tools that Claude Code refused to run for lack of permission (its own report)."""
    stdout: str
    """The final answer."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Claude:
    """Claude Code with a HOME of its own. `env` is added to its environment."""

    program: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, cwd: Path, text: str = "hi") -> ClaudePrompt:
        """What a new session in `cwd` shows the model."""
        return self.run(cwd, text=text).prompt

    def run(
        self,
        cwd: Path,
        script: Sequence[Turn] = (),
        *,
        text: str = "hi",
        arguments: Sequence[str] = (),
        timeout: float = TIMEOUT_S,
    ) -> ClaudeRun:
        """Start a session with `text` and let the model say `script`; "done" ends it.

        Raises ClientError when Claude fails, stops before the script's end, or calls anybody else.
        """
        model = FakeAnthropic(Script(script))

        def environment(url: str) -> dict[str, str]:
            place = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "no-key-needed"}
            return base_environment(self.home) | _QUIET | place | dict(self.env)

        command = [str(self.program), "-p", "--output-format", "json", *arguments, text]
        outcome = run_sealed(lambda _: command, environment, cwd=cwd, model=model, timeout=timeout)
        if model.script.failure is not None:
            raise model.script.failure
        requests = tuple(request for request in model.requests if not request.side)
        if outcome.exit_code or outcome.elsewhere or model.unknown or model.script.left or not requests:
            raise ClientError(f"claude -p: {outcome.summary()}; {model.summary()}")
        report = json.loads(outcome.stdout)
        return ClaudeRun(
            prompt=claude_prompt(requests[0].body),
            requests=requests,
            tool_results=tuple(tool_results(requests[-1].body)),
            denied=tuple(denial["tool_name"] for denial in report["permission_denials"]),
            stdout=report["result"],
            outcome=outcome,
        )


def tool_results(body: Mapping[str, Any]) -> Iterator[ToolResult]:
    """What the calls of the conversation so far came to, as a request tells it."""
    calls: dict[str, Mapping[str, Any]] = {}
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result":
                call = calls[block["tool_use_id"]]
                text = _text(block.get("content", ""))
                yield ToolResult(call["name"], call["input"], text, bool(block.get("is_error")))


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)
