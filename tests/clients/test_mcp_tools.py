"""The agents' own tools in real sessions: there from the first request, used from one client to another."""

from __future__ import annotations

import os
import re
import signal
import socket
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from agent_bridge.mcp.tools import all_tools
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.product import Product
from clients.rig.script import Again, Call
from clients.rig.tools import Client, Step, use_tools

NAMES = frozenset(tool.name for tool in all_tools())
WAIT_S = 60.0
FACT = "The crane stands on pier four."
QUESTION = "Which pier has the crane?"
ANSWER = "Pier four has it, since the spring."
AGENTS = Call("list_agents", {"includeClients": True})
INBOX = Call("channel_inbox", {"includeMessages": True})
"""Whole texts, of what waits."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def bridge(product: Product, git_repo: Path) -> Iterator[Product]:
    """agent-bridge on PATH and set up for all clients; its service isn't running."""
    for name in (".gemini", ".config/opencode"):
        (product.home / name).mkdir(parents=True)
    settings = product.home / ".config/agent-bridge/config.toml"
    settings.parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        settings.write_text(f"registry_port = {free.getsockname()[1]}\n", "utf-8")
    installed = replace(product, env=_environment(product))
    installed.init(git_repo, mcp=True)
    yield installed
    installed.run("down", cwd=git_repo, exit_codes=(0, 3))


@pytest.fixture(params=["claude", "codex", "gemini", "opencode"])
def client(request: pytest.FixtureRequest, product: Product) -> Client:
    """One client after the other, each as its user starts it."""
    return _installed(request.getfixturevalue(request.param), product)


def test_every_tool_is_there_and_runs_unasked_while_the_service_starts_and_is_killed(
    bridge: Product, git_repo: Path, client: Client
) -> None:
    bridge.run("status", cwd=git_repo, exit_codes=(3,))  # not running
    nobody = {"agentId": "client-nobody", "conversationId": "none", "replyTo": "none"}
    steps: list[Step] = [
        Call("remember", {"text": FACT}),
        lambda _: _after_kill(bridge, git_repo, Call("recall", {"query": "crane"})),
        Call("list_memory"),
        lambda text: Call("update_memory", {"id": _fact_id(text), "tags": ["harbour"]}),
        lambda text: Call("forget", {"id": _fact_id(text)}),
        AGENTS,
        INBOX,
        Call("channel_clear", {"scope": "answered"}),
        Call("message_client_session", {"clientId": "client-nobody", "message": QUESTION}),
        Call("reply", {**nobody, "message": ANSWER}),
        Call("agent_bridge_guide", {"topic": "acks"}),
    ]

    used = use_tools(client, git_repo, steps)

    assert used.offered == NAMES
    added, found, listed, changed, gone, agents, inbox, cleared, sent, answered, guide = used.results
    assert "Remembered: [" in added
    assert f"> {FACT}" in found, "the text that is written for the model, not the data beside it"
    assert "stored text" in found, "it says that this is no instruction"
    assert FACT in listed
    assert "harbour" in changed
    assert "orgotten" in gone
    assert "Nobody else is connected" in agents
    assert "No pending channel conversations" in inbox
    assert "Cleared 0 conversation(s)" in cleared
    assert "No session has that id (client-nobody)" in sent
    assert "none" in answered, "the tool says what it misses, not the client"
    assert "delivered_to_bridge" in guide
    assert bridge.run("list", cwd=git_repo)["data"]["facts"] == []


def test_what_one_client_remembers_another_recalls(
    bridge: Product,
    git_repo: Path,
    claude: Claude,
    codex: Codex,
    gemini: Gemini,
    opencode: OpenCode,
) -> None:
    ring = [_installed(one, bridge) for one in (claude, codex, opencode, gemini, claude)]
    kept = ["The mill grinds.", "The tower is green.", "The ferry leaves.", "The gate is shut.", ""]
    with bridge.service():
        for number, client in enumerate(ring):
            steps = [Call("recall", {"query": kept[number - 1]}), Call("remember", {"text": kept[number]})]
            used = use_tools(client, git_repo, steps[not number : 2 if kept[number] else 1])
            assert used.offered == NAMES
            if number:
                assert f"> {kept[number - 1]}" in used.results[0]
            if kept[number]:
                assert "Remembered" in used.results[-1]
        facts = bridge.run("list", cwd=git_repo)["data"]["facts"]
        assert {fact["title"] for fact in facts} == set(kept) - {""}


def test_a_question_is_asked_passed_on_and_answered_in_three_clients(
    bridge: Product, git_repo: Path, claude: Claude, codex: Codex, opencode: OpenCode
) -> None:
    """Codex asks Claude Code, which asks OpenCode, and answers when it has the answer."""
    claude_is_here, opencode_is_here, claude_asked, opencode_asked, codex_told = (Event() for _ in range(5))
    asked: list[str] = []

    def claude_reads(text: str) -> Call:
        asked.append(text)
        return AGENTS

    scripts: list[tuple[Client, Sequence[Step]]] = [
        (
            codex,
            [
                _after(claude_is_here, _after(opencode_is_here, AGENTS)),
                _tells(claude_asked, lambda text: _question(text, "client-claude-code-")),
                _until(ANSWER, codex_told, lambda _: Call("channel_clear", {"scope": "answered"})),
                INBOX,
            ],
        ),
        (
            claude,
            [
                INBOX,
                _tells(claude_is_here, INBOX),
                _until(QUESTION, claude_asked, claude_reads),
                _tells(opencode_asked, lambda text: _question(text, "client-opencode-")),
                _until(ANSWER, opencode_asked, _tells(codex_told, lambda _: _reply(asked[0]))),
                INBOX,
            ],
        ),
        (
            opencode,
            [
                INBOX,
                _tells(opencode_is_here, INBOX),
                _until(QUESTION, opencode_asked, _reply),
                INBOX,
            ],
        ),
    ]
    with bridge.service(), ThreadPoolExecutor(len(scripts)) as pool:
        sessions = [
            pool.submit(use_tools, _installed(client, bridge), git_repo, steps) for client, steps in scripts
        ]
        used = [session.result() for session in sessions]

    for one in used:
        assert "No pending channel conversations" in one.results[-1]
        assert [text for text in one.results if "isError" in text or "Error:" in text] == []


def _until(text: str, moment: Event, then: Callable[[str], Call]) -> Step:
    """Look into the inbox from a moment on until a text is there, then make the call that follows from it."""

    def said(last: str) -> Call | Again:
        if text in last:
            return then(last)
        assert moment.wait(WAIT_S)
        return Again(INBOX)

    return said


def _tells(moment: Event, step: Call | Callable[[str], Call]) -> Callable[[str], Call]:
    """The step, and the others know that it comes."""

    def said(last: str) -> Call:
        call = step(last) if callable(step) else step
        moment.set()
        return call

    return said


def _after(moment: Event, step: Call | Callable[[str], Call]) -> Callable[[str], Call]:
    """The step, from a moment on."""

    def said(last: str) -> Call:
        assert moment.wait(WAIT_S)
        return step(last) if callable(step) else step

    return said


def _environment(product: Product) -> dict[str, str]:
    """Our programs on PATH, and the places that the service has."""
    scripts = sysconfig.get_path("scripts")
    return {"PATH": f"{scripts}:/usr/local/bin:/usr/bin:/bin"}


def _installed(client: Client, product: Product) -> Client:
    place = {"XDG_RUNTIME_DIR": product.environment()["XDG_RUNTIME_DIR"]}
    return replace(client, env={**client.env, **_environment(product), **place})


def _after_kill(bridge: Product, root: Path, call: Call) -> Call:
    pid = bridge.run("status", cwd=root, exit_codes=(0, 1))["data"]["pid"]
    os.kill(pid, signal.SIGKILL)
    return call


def _fact_id(text: str) -> str:
    found = re.search(r"\[(20\d{6}-\d{4}-[^\]]+)\]", text)
    assert found, text
    return found[1]


def _question(agents: str, kind: str) -> Call:
    found = re.search(rf"{kind}\w+", agents)
    assert found, agents
    return Call("message_client_session", {"clientId": found[0], "message": QUESTION})


def _reply(inbox: str) -> Call:
    found = re.search(r'reply\(agentId="(.+?)", conversationId="(.+?)", replyTo="(.+?)"', inbox)
    assert found, inbox
    names = ("agentId", "conversationId", "replyTo")
    return Call("reply", {**dict(zip(names, found.groups(), strict=True)), "message": ANSWER})
