"""Runs OpenCode against the fake chat completions API."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clients.rig.chat import PLAIN_MODEL, FakeChat
from clients.rig.prompt import OpenCodePrompt, opencode_prompt
from clients.rig.script import Script, Turn
from clients.rig.sealed import ClientError, Outcome, Running, base_environment, run_sealed, sealed
from clients.rig.server import Request

TIMEOUT_S = 150.0
"""A start takes 2 to 30 seconds."""

_PASSAGE = Path(__file__).with_name("passage.py")
_MODEL = "fake-1"
_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call of the model came to."""

    name: str
    input: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class OpenCodeRun:
    """What one message of a person set off, from its first request to the last answer."""

    prompt: OpenCodePrompt
    """The first request."""
    requests: tuple[Request, ...]
    """The conversation's requests, without those for titles and summaries."""
    titles: tuple[Request, ...]
    summaries: tuple[Request, ...]
    tool_results: tuple[ToolResult, ...]
    """All of the session so far."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the model was offered."""
        return tuple(tool["function"]["name"] for tool in self.requests[0].body["tools"])


@dataclass(frozen=True, slots=True)
class OpenCodeExit(OpenCodeRun):
    """One `opencode run` from start to end. `installs`: what it asked the package registry for, in vain."""

    stdout: str
    installs: tuple[str, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class OpenCode:
    """OpenCode with a HOME of its own. `env` is added to its environment.

    The provider is given by the environment: every configuration file is the test's own. The package
    registry is a fake that has nothing, so that an install fails at once, and can be seen.
    """

    program: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, cwd: Path, text: str = "hi") -> OpenCodePrompt:
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
    ) -> OpenCodeExit:
        """Start a session with `text` and let the model say `script`; "done" ends it.

        Raises ClientError when OpenCode fails, stops before the script's end, or calls anybody else.
        """
        model = FakeChat(Script(script))
        command = [str(self.program), "run", *arguments, text]
        outcome = run_sealed(lambda _: command, self._environment, cwd=cwd, model=model, timeout=timeout)
        _check(model, outcome.elsewhere, outcome.summary())
        if outcome.exit_code or not any(not request.side for request in model.requests):
            raise ClientError(f"opencode run: {outcome.summary()}; {model.summary()}")
        said = _said(model, model.requests)
        return OpenCodeExit(
            **{name: getattr(said, name) for name in OpenCodeRun.__slots__},
            stdout=outcome.stdout,
            installs=model.installs,
            outcome=outcome,
        )

    @contextmanager
    def serve(self, cwd: Path | None = None) -> Iterator[OpenCodeServer]:
        """One `opencode serve` until the block ends, for any number of directories and sessions.

        Its snapshots, a Git repository a directory and some starts of Git a turn, are left out.
        """
        door = self.home.parent / "opencode.sock"
        log = self.home.parent / "opencode.log"
        door.unlink(missing_ok=True)
        model = FakeChat(Script())

        def environment(url: str) -> dict[str, str]:
            return self._environment(url, snapshot=False)

        words = [sys.executable, "-I", "-S", str(_PASSAGE), str(door)]
        command = [*words, str(self.program), "serve", "--port", "{port}"]
        with (
            log.open("wb") as errors,
            sealed(
                lambda _: command, environment, cwd=cwd or self.home, model=model, errors=errors
            ) as running,
        ):
            assert running.process.stdout is not None
            if running.process.stdout.readline() != b"ready\n":
                raise ClientError(f"opencode serve: {log.read_text('utf-8', 'replace')[-3000:]}")
            yield OpenCodeServer(door, model, running, log)

    def _environment(self, url: str, *, snapshot: bool = True) -> dict[str, str]:
        models = {_MODEL: {"name": "Fake", "tool_call": True, "limit": {"context": 100_000, "output": 4000}}}
        models[PLAIN_MODEL] = {"name": "Fake Small"}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": f"{url}/v1", "apiKey": "no-key-needed"},
            "models": models,
        }
        config = {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": snapshot,
            "model": f"fake/{_MODEL}",
            "small_model": f"fake/{PLAIN_MODEL}",
            "enabled_providers": ["fake"],
            "provider": {"fake": provider},
        }
        place = {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "npm_config_registry": f"{url}/packages/",
        }
        return base_environment(self.home) | _QUIET | place | dict(self.env)


@dataclass(frozen=True, slots=True)
class OpenCodeServer:
    """A running `opencode serve` and the model that it asks. `log` is what it printed."""

    door: Path
    model: FakeChat
    running: Running
    log: Path

    def session(self, directory: Path, *, title: str = "A test", parent: str | None = None) -> Session:
        """A new session in `directory`. One with a title asks for none; with `title=""` it does."""
        asked = ({"title": title} if title else {}) | ({"parentID": parent} if parent else {})
        made = self.call("POST", "/session", asked, directory=directory)
        return Session(self, made["id"], directory)

    def prompt(self, directory: Path, text: str = "hi") -> OpenCodePrompt:
        """What a new session in `directory` shows the model."""
        return self.session(directory).say(text).prompt

    def call(
        self, method: str, path: str, body: object | None = None, *, directory: Path | None = None
    ) -> Any:  # noqa: ANN401 - any JSON
        """One request to OpenCode's own interface; its JSON answer, None where there is none."""
        place = f"{path}?directory={quote(str(directory))}" if directory else path
        connection = _UnixConnection(self.door)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, place, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError as problem:
            raise ClientError(f"{method} {place}: {problem}\n{self.printed()}") from problem
        finally:
            connection.close()
        if answer.status >= 300:
            raise ClientError(f"{method} {place}: {answer.status} {text[:1000]}\n{self.printed()}")
        return json.loads(text) if text else None

    def printed(self) -> str:
        """The end of what it printed."""
        return self.log.read_text("utf-8", "replace")[-3000:]


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a server."""

    server: OpenCodeServer
    id: str
    directory: Path

    def say(self, text: str, script: Sequence[Turn] = ()) -> OpenCodeRun:
        """Send a person's message, let the model say `script` and then "done", and wait for the end.

        Raises ClientError when OpenCode fails, stops before the script's end, or calls anybody else.
        """
        model = self.server.model
        before = len(model.requests)
        model.script.add([*script, "done"])
        answer = self.server.call("POST", f"/session/{self.id}/message", _message(text))
        _check(model, tuple(self.server.running.elsewhere), self.server.printed())
        fresh = [one for one in model.requests[before:] if one.headers.get("x-session-id") == self.id]
        if answer["info"].get("error") or not any(not request.side for request in fresh):
            raise ClientError(f"{answer}; {model.summary()}\n{self.server.printed()}")
        return _said(model, fresh)

    def tell(self, text: str) -> None:
        """Put a message into the session without an answer (`noReply`)."""
        self.server.call("POST", f"/session/{self.id}/message", _message(text) | {"noReply": True})

    def compact(self) -> None:
        """Have the session summarised, as `/compact` does."""
        chosen = {"providerID": "fake", "modelID": _MODEL}
        self.server.call("POST", f"/session/{self.id}/summarize", chosen)


class _UnixConnection(HTTPConnection):
    def __init__(self, door: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._door = door

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(str(self._door))


def _message(text: str) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": text}]}


def _check(model: FakeChat, elsewhere: Sequence[str], printed: str) -> None:
    if model.script.failure is not None:
        raise model.script.failure
    if elsewhere or model.strange or model.script.left:
        raise ClientError(f"went elsewhere: {list(elsewhere)}; {model.summary()}; {printed}")


def _said(model: FakeChat, requests: Sequence[Request]) -> OpenCodeRun:
    spoken = tuple(request for request in requests if not request.side)
    return OpenCodeRun(
        prompt=opencode_prompt(spoken[0].body),
        requests=spoken,
        titles=tuple(request for request in requests if request in model.titles),
        summaries=tuple(request for request in requests if request in model.summaries),
        tool_results=tuple(tool_results(spoken[-1].body)),
    )


def tool_results(body: Mapping[str, Any]) -> Iterator[ToolResult]:
    """What the calls of the conversation so far came to, as a request tells it."""
    calls: dict[str, Mapping[str, Any]] = {}
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            calls[call["id"]] = call["function"]
        if message["role"] == "tool":
            function = calls[message["tool_call_id"]]
            content = message["content"]
            text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
            yield ToolResult(function["name"], json.loads(function["arguments"]), text)
