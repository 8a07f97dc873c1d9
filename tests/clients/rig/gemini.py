"""Runs Gemini CLI against the fake Gemini API."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients.rig.gemini_api import FakeGemini
from clients.rig.prompt import GeminiPrompt, gemini_prompt
from clients.rig.script import Call, Script, Turn
from clients.rig.sealed import TIMEOUT_S, ClientError, Outcome, base_environment, run_sealed
from clients.rig.server import Request

USER_SETTINGS = ".gemini/settings.json"
"""The user's settings, below the home."""

_SETTINGS: Mapping[str, object] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}
"""What a user who has used it before has in ~/.gemini/settings.json, and silence."""


_QUIET = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True)
class GeminiResult:
    """What a tool call of the model came to."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class GeminiRun:
    """One `gemini -p` from start to end."""

    prompt: GeminiPrompt
    requests: tuple[Request, ...]
    """The conversation's requests, without those that Gemini makes for itself."""
    tool_results: tuple[GeminiResult, ...]
    stdout: str
    """The final answer."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Gemini:
    """Gemini CLI with a HOME of its own. `env` is added to its environment.

    `program` is a script for Node. Every directory is trusted unless `env` says otherwise: a session
    without a person refuses to start in one that isn't.
    """

    program: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def settings(self, values: Mapping[str, object]) -> None:
        """Write the user's settings: these, and how to sign in without a person."""
        path = self.home / USER_SETTINGS
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**values, **_SETTINGS}, indent=2), "utf-8")

    def prompt(self, cwd: Path, text: str = "hi") -> GeminiPrompt:
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
    ) -> GeminiRun:
        """Start a session with `text` and let the model say `script`; "done" ends it.

        Tools that write are offered with `arguments=WRITES` only.
        Raises ClientError when Gemini fails, stops before the script's end, or calls anybody else.
        """
        model = FakeGemini(Script(script))
        if not (self.home / USER_SETTINGS).exists():
            self.settings({})

        def environment(url: str) -> dict[str, str]:
            place = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "no-key-needed"}
            return base_environment(self.home) | place | _QUIET | dict(self.env)

        node = shutil.which("node") or "/usr/bin/node"
        command = [node, str(self.program), "-m", "gemini-2.5-flash", *arguments, "-p", text]
        outcome = run_sealed(lambda _: command, environment, cwd=cwd, model=model, timeout=timeout)
        if model.script.failure is not None:
            raise model.script.failure
        requests = tuple(request for request in model.requests if not request.side)
        if outcome.exit_code or outcome.elsewhere or model.unknown or model.script.left or not requests:
            raise ClientError(f"gemini -p: {outcome.summary()}; {model.summary()}")
        return GeminiRun(
            prompt=gemini_prompt(requests[0].body),
            requests=requests,
            tool_results=tuple(tool_results(requests[-1].body)),
            stdout=outcome.stdout.strip(),
            outcome=outcome,
        )


WRITES = ("--approval-mode", "yolo")
"""Arguments with which the model may write files and run commands without a person."""


def write_file(path: Path, content: str) -> Call:
    """Gemini's write_file: create or replace a whole file."""
    return Call("write_file", {"file_path": str(path), "content": content})


def read_file(path: Path) -> Call:
    """Gemini's read_file."""
    return Call("read_file", {"file_path": str(path)})


def tool_results(body: Mapping[str, Any]) -> Iterator[GeminiResult]:
    """What the calls of the conversation so far came to, as a request tells it."""
    for content in body["contents"]:
        for part in content["parts"]:
            if answer := part.get("functionResponse"):
                yield GeminiResult(answer["name"], _text(answer["response"]))


def _text(response: Mapping[str, Any]) -> str:
    said = response.get("output", response.get("error"))
    return said if isinstance(said, str) else json.dumps(response)
