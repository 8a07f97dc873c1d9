"""`agents` and `registry`, against a real service."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from agent_bridge.client.requests import Registration

from .channel_rig import Channel, run


@pytest.fixture(scope="module")
def people(channel: Channel) -> Iterator[dict[str, str]]:
    """Two sessions in projects of their own, and one of another identity."""
    with (
        channel.agent("harbour") as claude,
        channel.agent("pier", client="codex") as codex,
        channel.agent("harbour", identity="work") as theirs,
    ):
        yield {"claude": claude, "codex": codex, "theirs": theirs}


@pytest.fixture(scope="module")
def server(channel: Channel) -> Iterator[str]:
    """An AgentServer with a skill, which answers for itself."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{listening.server_port}"
        _register(channel, "server-1", url=url, card={"skills": [{"id": "code-query", "tags": ["grep"]}]})
        yield "server-1"
        listening.shutdown()


def _register(channel: Channel, agent_id: str, **more: object) -> None:
    registration = Registration(
        agent_id=agent_id,
        name=f"Name of {agent_id}",
        project_path=f"/srv/{agent_id}",
        entry_type="agent",
        more=more,
    )
    with channel.registry() as registry:
        registry.register(registration)


def _listed(*words: str) -> set[str]:
    return {row["agentId"] for row in run("agents", "--json", *words).json["data"]["agents"]}


def test_the_list(people: dict[str, str], server: str) -> None:
    assert _listed() == {people["claude"], people["codex"], server}
    assert _listed("--identity", "work") == {people["theirs"], server}  # what has skills is for everybody
    rows = [line.split(" | ") for line in run("agents").out.splitlines()]
    assert [people["claude"], "claude-code in harbour", "/src/harbour", "healthy"] in rows


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--project", "HARBOUR"), {"claude"}),
        (("--client", "CODEX"), {"codex"}),
        (("--skill", "grep"), {"server"}),
        (("--skill", "grep", "--project", "harbour"), set()),
    ],
)
def test_filters(people: dict[str, str], server: str, words: tuple[str, ...], found: set[str]) -> None:
    known = {**people, "server": server}
    assert _listed(*words) == {known[name] for name in found}


def test_the_project_of_this_directory(channel: Channel) -> None:
    _register(channel, "here-1", projectPath=str(channel.home))
    try:
        assert _listed("--project", ".") == {"here-1"}
    finally:
        with channel.registry() as registry:
            registry.deregister("here-1")


def test_nobody(channel: Channel) -> None:
    ran = run("agents", "--project", "nowhere")
    assert (ran.code, ran.out) == (0, "")
    assert "--all" in ran.err


def test_health(people: dict[str, str], server: str) -> None:
    ran = run("agents", "health", "--json")
    assert ran.code == 0
    found = {one["agentId"]: one for one in ran.json["data"]["agents"]}
    assert (found[people["claude"]]["process"], found[people["claude"]]["answer"]) == ("there", None)
    assert found[server]["answer"] == "ok"
    assert "its process runs" in run("agents", "health", people["codex"][:16]).out
    assert run("agents", "health", "nobody").code == 1


def test_one_that_is_gone_or_doesnt_answer(channel: Channel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    gone = subprocess.Popen(["true"])
    gone.wait()
    _register(channel, "gone-1", url=f"http://127.0.0.1:{port}", pid=gone.pid)
    _register(channel, "far-1", url="http://203.0.113.7:80", host="elsewhere")
    try:
        ran = run("agents", "health", "gone-1", "--json")
        assert ran.code == 1
        (found,) = ran.json["data"]["agents"]
        assert (found["process"], found["answer"], found["well"]) == ("gone", "unreachable", False)
        told = run("agents", "health", "gone-1").out
        assert "its process is gone" in told
        assert "it doesn't answer" in told
        (far,) = run("agents", "health", "far-1", "--json").json["data"]["agents"]
        assert (far["process"], far["answer"], far["well"]) == ("unknown", None, True)
    finally:
        with channel.registry() as registry:
            registry.deregister("gone-1")
            registry.deregister("far-1")


def test_the_registrys_status(channel: Channel, people: dict[str, str]) -> None:
    ran = run("registry", "status", "--json")
    assert ran.code == 0, ran.out
    data = ran.json["data"]
    with channel.registry() as registry:
        assert data["url"] == registry.address.url
    token = channel.home / ".local/state/agent-bridge/registry.token"
    assert data["token_file"] == str(token)
    assert token.read_text().strip() not in ran.out
    assert data["health"]["agents"] >= 3
    told = run("registry", "status").out
    assert data["url"] in told
    assert str(token) in told


@contextlib.contextmanager
def someone_on(port: int) -> Iterator[None]:
    """Some program listens on a port, whoever it is."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # then there is one already
            other.bind(("127.0.0.1", port))
            other.listen()
        yield


def test_starting_and_stopping_it_is_starting_and_stopping_the_service(channel: Channel) -> None:
    pid = run("status", "--json").json["data"]["pid"]
    again = run("registry", "start")
    assert (again.code, f"pid {pid}" in again.out) == (0, True)
    assert "part of the service" in again.err
    stopped = run("registry", "stop")
    assert stopped.out == "The service is stopped.\n"
    assert "stopped the whole of it" in stopped.err
    try:
        for words in (
            ("registry", "status"),
            ("agents",),
            ("agents", "health"),
            ("inbox",),
            ("send", "x", "y"),
        ):
            ran = run(*words)
            assert ran.code == 3, words
            assert "agent-bridge up" in ran.err, words
    finally:
        with someone_on(4999):
            started = run("registry", "start", "--json")
    assert started.json["data"]["result"] == "started"
    told = " ".join(message["text"] for message in started.json["messages"])
    with channel.registry() as registry:
        assert f"Port 4999 was in use, so the registry listens on {registry.address.port}." in told
    # What was idle until now is told whole, as it has been loaded by the question.
    status = run("registry", "status", "--json").json["data"]
    assert status["state"] == "ok"
    assert {sweep["name"] for sweep in status["sweeps"]} > {"expiry", "retention"}
    assert run("agents").code == 0
    assert started.json["data"]["pid"] not in (pid, os.getpid())


def test_that_nobody_fits_isnt_that_nobody_is_there(channel: Channel) -> None:
    assert run("agents", "--client", "no such program").err.startswith("Nobody that fits is there; `--all`")
    assert run("agents", "--skill", "none", "--all").err == "Nobody that fits is there.\n"
