"""The rig itself: what it seals, what it reports, what it refuses to call a success."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from clients.rig.anthropic import FakeAnthropic
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.prompt import claude_prompt
from clients.rig.script import Body, Call, Script, bash, read
from clients.rig.sealed import ClientError, Outcome, base_environment, run_sealed
from clients.rig.server import served

FILE = "<system-reminder>\nContents of /p/A.md (mine):\n\nAAA\n</system-reminder>"


def _run_python(home: Path, code: str, *, timeout: float = 20.0) -> Outcome:
    return run_sealed(
        lambda url: [sys.executable, "-I", "-c", code, url],
        lambda _: base_environment(home),
        cwd=home,
        model=FakeAnthropic(Script()),
        timeout=timeout,
    )


def test_a_program_reaches_the_fake_server_and_nobody_else(sealed_home: Path) -> None:
    outcome = _run_python(
        sealed_home,
        "import sys, urllib.request as u\n"
        "print(u.urlopen(sys.argv[1] + '/api/hello').status)\n"
        "try: u.urlopen('http://elsewhere.invalid/secret')\n"
        "except u.HTTPError as refused: print(refused.code)\n",
    )

    assert outcome.stdout.split() == ["200", "403"]
    assert outcome.elsewhere == ("GET http://elsewhere.invalid/secret HTTP/1.1",)


def test_a_network_namespace_has_no_way_out_past_the_proxy(sealed_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outcome = _run_python(
            sealed_home,
            "import socket\n"
            "s = socket.socket()\n"
            "s.settimeout(2)\n"
            f"print(s.connect_ex(('127.0.0.1', {outside.getsockname()[1]})) == 0)\n",
        )
    if outcome.network == "open":
        pytest.skip("the kernel refuses network namespaces to this user")

    assert outcome.stdout.strip() == "False"


def test_the_environment_is_made_from_nothing(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the developer's own")

    outcome = _run_python(sealed_home, "import os, json; print(json.dumps(dict(os.environ)))")

    environment = json.loads(outcome.stdout)
    assert environment["HOME"] == str(sealed_home)
    assert "ANTHROPIC_AUTH_TOKEN" not in environment


@pytest.mark.timeout(60)
def test_a_program_that_hangs_is_killed_with_its_children(sealed_home: Path) -> None:
    code = (
        "import subprocess, time\n"
        "subprocess.Popen(['sleep', '600'])\n"
        "print('about to hang', flush=True)\n"
        "time.sleep(600)\n"
    )

    with pytest.raises(ClientError, match="about to hang"):
        # The child has the same standard output: this returns when both are gone, not before.
        _run_python(sealed_home, code, timeout=3)


@pytest.mark.parametrize("stream", [True, False])
def test_the_fake_messages_api_speaks_both_ways(stream: bool) -> None:
    model = FakeAnthropic(Script([["one", Call("Read", {"file_path": "/x"})]]))
    body = {"model": "m", "stream": stream, "tools": [{}], "messages": [{"role": "system", "content": "s"}]}

    status, kind, data = _post(model, "/v1/messages?beta=true", body)

    assert (status, kind) == (200, "text/event-stream" if stream else "application/json")
    blocks = _streamed_blocks(data) if stream else json.loads(data)["content"]
    assert [(block["type"], block.get("text") or block.get("input")) for block in blocks] == [
        ("text", "one"),
        ("tool_use", {"file_path": "/x"}),
    ]
    assert [request.body for request in model.requests] == [body]


def test_the_fake_messages_api_counts_tokens_and_names_what_it_does_not_know() -> None:
    model = FakeAnthropic(Script(["kept for the conversation"]))

    assert json.loads(_post(model, "/v1/messages/count_tokens", {})[2]) == {"input_tokens": 100}
    assert _post(model, "/v1/complete", {})[0] == 404
    assert model.unknown == ["POST /v1/complete"]
    assert model.script.left == 1


def _post(model: FakeAnthropic, path: str, body: Body) -> tuple[int, str, bytes]:
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    with served(listener, model):
        connection = HTTPConnection(host, port, timeout=10)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()


def _streamed_blocks(data: bytes) -> Sequence[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for line in data.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            blocks.append(event["content_block"])
        elif event.get("type") == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                blocks[-1]["text"] += delta["text"]
            else:
                blocks[-1]["input"] = json.loads(delta["partial_json"])
    return blocks


def test_a_prompt_is_the_first_user_message_the_system_text_and_the_system_messages() -> None:
    prompt = claude_prompt(
        {
            "system": [{"type": "text", "text": "SYSTEM memory at `x`"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": FILE}]},
                {"role": "system", "content": "LATE"},
                {"role": "assistant", "content": [{"type": "text", "text": "SAID"}]},
                {"role": "user", "content": "TYPED"},
            ],
        }
    )

    assert [prompt.count(word) for word in ("SYSTEM", "AAA", "LATE", "SAID", "TYPED")] == [1, 1, 1, 0, 0]
    assert prompt.contents_of(Path("/p/A.md")) == "AAA"
    assert prompt.contents_of(Path("/p/B.md")) is None


def test_claude_is_denied_what_needs_permission_and_the_run_says_so(claude: Claude, git_repo: Path) -> None:
    run = claude.run(git_repo, [read(git_repo / "main.py"), bash("touch made")])

    assert [result.name for result in run.tool_results] == ["Read", "Bash"]
    assert "print('hello')" in run.tool_results[0].text
    assert run.denied == ("Bash",)
    assert not (git_repo / "made").exists()
    assert run.stdout == "done"


def test_a_turn_can_be_computed_from_the_request(claude: Claude, git_repo: Path) -> None:
    run = claude.run(git_repo, [lambda body: f"{len(body['messages'])} messages, model {body['model']}"])

    assert "messages, model claude-" in run.stdout


def test_a_turn_that_raises_fails_the_test(codex: Codex, git_repo: Path) -> None:
    def wrong(_: Body) -> str:
        raise LookupError("what the test looked for")

    with pytest.raises(LookupError, match="what the test looked for"):
        codex.exec(git_repo, [wrong])


def test_turns_that_nobody_asked_for_fail_the_run(codex: Codex, git_repo: Path) -> None:
    with pytest.raises(ClientError, match="turns left: 1"):
        codex.exec(git_repo, ["the end", "never said"])


def test_codex_runs_a_scripted_command(codex: Codex, git_repo: Path) -> None:
    run = codex.exec(git_repo, [Call("exec_command", {"cmd": "cat main.py"}), "read it"])

    assert "print('hello')" in run.tool_results[0]
    assert run.stdout.strip() == "read it"


def test_neither_client_calls_anybody_else(claude: Claude, codex: Codex, git_repo: Path) -> None:
    assert claude.run(git_repo).outcome.elsewhere == ()
    assert codex.exec(git_repo).outcome.elsewhere == ()
    assert not any(name.lower().endswith("_proxy") for name in base_environment(Path(os.environ["HOME"])))
