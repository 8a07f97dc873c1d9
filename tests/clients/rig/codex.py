"""Runs Codex against the fake Responses API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clients.rig.prompt import CodexPrompt, codex_prompt
from clients.rig.responses import FakeResponses
from clients.rig.script import Body, Script, Turn
from clients.rig.sealed import TIMEOUT_S, ClientError, Outcome, base_environment, run_sealed
from clients.rig.server import Request


@dataclass(frozen=True, slots=True)
class CodexRun:
    """One `codex exec` from start to end."""

    prompt: CodexPrompt
    requests: tuple[Request, ...]
    """The conversation's requests, without those that Codex makes for itself."""
    tool_results: tuple[str, ...]
    stdout: str
    """The final answer."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Codex:
    """Codex with a HOME of its own. `env` is added to its environment."""

    program: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, cwd: Path, text: str = "hi") -> CodexPrompt:
        """What a new session in `cwd` shows the model, Codex's own memories apart (it omits them here).

        Raises ClientError when the command fails.
        """
        model = FakeResponses(Script())

        def command(url: str) -> list[str]:
            return [str(self.program), *_flags(_provider(url)), "debug", "prompt-input", text]

        outcome = run_sealed(command, lambda _: self._environment(), cwd=cwd, model=model)
        if outcome.exit_code or outcome.elsewhere or model.requests:
            raise ClientError(f"codex debug prompt-input: {outcome.summary()}")
        return codex_prompt(json.loads(outcome.stdout))

    def exec(
        self,
        cwd: Path,
        script: Sequence[Turn] = (),
        *,
        text: str = "hi",
        profile: str | None = None,
        config: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        timeout: float = TIMEOUT_S,
    ) -> CodexRun:
        """Start a session with `text` and let the model say `script`; "done" ends it.

        `profile` layers `$CODEX_HOME/PROFILE.config.toml`; `config` are further `-c KEY=VALUE`, the value
        in TOML. The fake provider is given by flags: config.toml stays the test's own.

        Raises ClientError when Codex fails, stops before the script's end, or calls anybody else.
        """
        model = FakeResponses(Script(script))

        def command(url: str) -> list[str]:
            flags = _flags(_provider(url) | dict(config or {}))
            chosen = ["-p", profile] if profile else []
            return [str(self.program), "exec", "--skip-git-repo-check", *chosen, *flags, *arguments, text]

        outcome = run_sealed(command, lambda _: self._environment(), cwd=cwd, model=model, timeout=timeout)
        if model.script.failure is not None:
            raise model.script.failure
        requests = tuple(request for request in model.requests if not request.side)
        if outcome.exit_code or outcome.elsewhere or model.unknown or model.script.left or not requests:
            raise ClientError(f"codex exec: {outcome.summary()}; {model.summary()}")
        return CodexRun(
            prompt=codex_prompt(requests[0].body["input"]),
            requests=requests,
            tool_results=tool_results(requests[-1].body),
            stdout=outcome.stdout,
            outcome=outcome,
        )

    def _environment(self) -> dict[str, str]:
        if "CODEX_HOME" not in self.env:
            (self.home / ".codex").mkdir(exist_ok=True)
        return base_environment(self.home) | dict(self.env)


def tool_results(body: Body) -> tuple[str, ...]:
    """What the calls of the conversation so far came to, as a request tells it."""
    outputs = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    return tuple(text if isinstance(text, str) else json.dumps(text) for text in outputs)


def _flags(settings: Mapping[str, str]) -> list[str]:
    return [flag for key, value in settings.items() for flag in ("-c", f"{key}={value}")]


def _provider(url: str) -> dict[str, str]:
    provider = f'{{name="Fake",base_url="{url}/v1",wire_api="responses",requires_openai_auth=false}}'
    quiet = {"analytics.enabled": "false", "features.plugins": "false"}
    return {"model": '"fake-model"', "model_provider": '"fake"', "model_providers.fake": provider} | quiet
