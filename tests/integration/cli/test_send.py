"""`send` and `reply`, to agents that are really there."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

import readme
from agent_bridge import paths
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.cli import registry_access
from agent_bridge.cli.person import person
from agent_bridge.client.http import Registry
from agent_bridge.client.requests import Registration

from .channel_rig import Channel, run


def echo(message: Message) -> str | None:
    """What the agent of these tests answers."""
    if "silent" in message.content or not message.expects_response:
        return None
    return f"You said: {message.content}"


@pytest.fixture(scope="module")
def claude(channel: Channel) -> Iterator[str]:
    """A session that answers every question that isn't `silent`."""
    with channel.agent("harbour", answer=echo) as agent_id:
        yield agent_id


def test_a_message_is_stored_and_the_receipt_says_no_more(channel: Channel, claude: str) -> None:
    ran = run("send", "harbour", "Is it silent?", "--json")
    assert ran.code == 0
    data = ran.json["data"]
    assert data["receipt"] == "stored"
    assert data["message"]["toAgentId"] == claude
    assert (data["expectsResponse"], data["inferred"]) == (True, True)
    with channel.registry() as registry:
        (stored,) = registry.conversation(data["message"]["conversationId"]).messages
    assert stored.content == "Is it silent?"
    assert stored.from_agent_id == person("global").agent_id


@pytest.mark.parametrize(
    ("words", "awaits", "inferred"),
    [
        (("FYI: silent rain.",), False, True),
        (("FYI: silent rain.", "--expects-response"), True, False),
        (("Is it silent?", "--no-reply"), False, False),
    ],
)
def test_whether_an_answer_is_awaited_is_told(
    claude: str, words: tuple[str, ...], awaits: bool, inferred: bool
) -> None:
    data = run("send", claude, *words, "--json").json["data"]
    assert (data["expectsResponse"], data["inferred"]) == (awaits, inferred)
    told = run("send", claude, *words)
    assert told.out.startswith(f"Stored for {claude}: message ")
    assert ("awaits an answer" if awaits else "awaits no answer") in told.err
    assert ("; --" in told.err) == inferred
    conversation = re.search(r"How far it came: `agent-bridge conversations (\S+)`", told.err)
    assert conversation is not None
    assert run("conversations", conversation[1]).code == 0


def test_all_fields(channel: Channel, claude: str) -> None:
    first = run("send", claude, "Something silent.", "--json").json["data"]["message"]
    words = ("--conversation", first["conversationId"], "--reply-to", first["messageId"])
    sent = run(
        "send", claude, "-", *words, "--kind", "error", "--expires-in", "2h", "--json", stdin="silent\n"
    )
    message = sent.json["data"]["message"]
    assert message["content"] == "silent\n"
    assert message["conversationId"] == first["conversationId"]
    assert message["replyTo"] == first["messageId"]
    assert message["kind"] == "error"
    assert abs(message["expiresAt"] - message["createdAt"] - 7_200_000) < 60_000


def test_when_it_expires_is_told(claude: str) -> None:
    assert re.search(r"It expires 20\d\d-", run("send", claude, "silent", "--expires-in", "2h").err)


def test_waiting_for_the_answer(claude: str) -> None:
    ran = run("send", "harbour", "Where is it?", "--wait")
    assert ran.code == 0, ran.err
    assert "    You said: Where is it?" in ran.out
    assert ran.err.split() == ["Stored.", "Displayed."] or ran.err.split() == ["Stored."]
    told = run("send", "harbour", "And now?", "--wait", "--json").json["data"]
    assert told["receipt"] == "answered"
    assert told["answer"]["content"] == "You said: And now?"
    assert told["answer"]["replyTo"] == told["message"]["messageId"]


def test_an_answer_that_was_shown_is_no_longer_in_the_inbox(claude: str) -> None:
    answer = run("send", claude, "Where?", "--wait", "--json").json["data"]["answer"]["messageId"]
    waiting = run("inbox", "--peek", "--limit", "200", "--json").json["data"]["messages"]
    assert answer not in [message["messageId"] for message in waiting]


def test_waiting_in_vain(claude: str) -> None:
    ran = run("send", claude, "A silent question?", "--timeout", "0.5", "--json")
    assert ran.code == 1
    assert [error["code"] for error in ran.json["errors"]] == ["no_answer"]
    assert ran.json["data"]["receipt"] == "displayed"
    assert ran.json["data"]["answer"] is None


def test_the_person_is_in_the_list_only_while_waiting(channel: Channel, claude: str) -> None:
    process = channel.start("send", claude, "A silent question?", "--wait")
    assert process.stderr is not None
    assert process.stderr.readline() == "Stored.\n"
    me = person("global").agent_id
    with channel.registry() as registry:
        assert me in [row["agentId"] for row in registry.agents(healthy=True)]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM, err
        assert me not in [row["agentId"] for row in registry.agents()]


def test_who_stops_waiting_is_told_that_it_stays_sent(channel: Channel, claude: str) -> None:
    process = channel.start("send", claude, "A silent question to leave?", "--wait")
    assert process.stderr is not None
    assert process.stderr.readline() == "Stored.\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "It stays sent. A later answer is in `agent-bridge inbox`" in err
    assert "    A silent question to leave?" in run("inbox", "--sent").out


def test_somebody_elses_answer_counts_once_it_is_said_to_be_one(channel: Channel, claude: str) -> None:
    process = channel.start("send", claude, "A silent bridge?", "--wait", "--json")
    with channel.registry() as registry:
        asked = _arrived(registry, claude, "A silent bridge?", process)
        for content in ("Not asked.", "Through the bridge."):
            registry.send(
                Draft(
                    identity="global",
                    from_agent_id="client-inner-1",
                    to_agent_id=asked.from_agent_id,
                    kind=Kind.CHAT,
                    content=content,
                    reply_to=asked.message_id if content != "Not asked." else None,
                    conversation_id=asked.conversation_id,
                )
            )
        registry.ack(_ack(asked, AckState.ANSWERED))
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0, out
    assert json.loads(out)["data"]["answer"]["content"] == "Through the bridge."


def test_a_message_that_is_given_up(channel: Channel, claude: str) -> None:
    process = channel.start("send", claude, "A silent failure?", "--wait")
    assert process.stderr is not None
    assert process.stderr.readline() == "Stored.\n"
    with channel.registry() as registry:
        asked = _arrived(registry, claude, "A silent failure?", process)
        registry.ack(_ack(asked, AckState.FAILED, "the model is\x1b[2J gone"))
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "given up" in err
    assert "the model is\\x1b[2J gone" in err


def test_a_lost_answer_is_asked_for_again_and_the_message_stored_once(channel: Channel, claude: str) -> None:
    file = paths.registry_address()
    real = file.read_bytes()
    port = channel.registry().address.port
    draft = Draft(
        identity="global",
        from_agent_id="client-x-1",
        to_agent_id=claude,
        kind=Kind.CHAT,
        content="FYI: once.",
        message_id="once-1",
    )
    with socket.create_server(("127.0.0.1", 0)) as between:
        lossy = between.getsockname()[1]

        def lose_the_answer() -> None:
            near, _ = between.accept()
            with near, socket.create_connection(("127.0.0.1", port)) as far:
                request = b""
                while not request.endswith(b"}"):
                    request += near.recv(65536)
                far.sendall(request.replace(b"127.0.0.1:%d" % lossy, b"127.0.0.1:%d" % port))
                assert far.recv(65536).startswith(b"HTTP/1.1 201")
                file.write_bytes(real)

        thread = threading.Thread(target=lose_the_answer)
        thread.start()
        file.write_bytes(real.replace(b":%d" % port, b":%d" % lossy))
        try:
            posted = registry_access.send(draft)
        finally:
            file.write_bytes(real)
            thread.join(20)
    assert posted.deduplicated
    with channel.registry() as registry:
        stored = registry.conversation(posted.message.conversation_id).messages
    assert [message.message_id for message in stored] == ["once-1"]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("send", "nobody", "x"), 1, "unknown"),
        (("send", "client-", "x"), 4, "ambiguous"),
        (("send", "harbour", ""), 2, "usage"),
        (("send", "harbour", "x", "--timeout", "soon"), 2, "usage"),
        (("send", "harbour", "x", "--expires-in", "0"), 2, "usage"),
        (("send", "harbour", "x", "--wait", "--no-reply"), 2, "usage"),
        (("send", "harbour", "x", "--identity", "a b"), 2, "invalid"),
        (("send", "harbour", "x", "--conversation", "\n"), 2, "invalid"),
        (("send", "harbour", "x", "--reply-to", "nothing"), 1, "unknown"),
        (("send", "harbour", "x", "--client", "codex"), 1, "unknown"),
        (("reply", "nothing", "x"), 1, "unknown"),
        (("reply", "", "x"), 1, "unknown"),
    ],
)
def test_what_cant_be_sent(
    channel: Channel, claude: str, words: tuple[str, ...], code: int, error: str
) -> None:
    with channel.agent("airport"):
        ran = run(*words, "--json")
    assert (ran.code, [one["code"] for one in ran.json["errors"]]) == (code, [error])


def test_a_text_that_isnt_utf8(claude: str) -> None:
    assert run("send", claude, "-", stdin=b"\xff\xfe\xfa").code == 2


def test_a_text_that_is_too_large(claude: str) -> None:
    ran = run("send", claude, "-", "--json", stdin="a" * (9 << 20))
    assert (ran.code, [one["code"] for one in ran.json["errors"]]) == (1, ["too_large"])


def test_the_candidates_are_named(channel: Channel, claude: str) -> None:
    with channel.agent("airport") as other:
        ran = run("send", "client-", "x")
    assert ran.code == 4
    assert claude in ran.err
    assert other in ran.err


def test_another_identity_is_out_of_reach(
    channel: Channel, claude: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("send", claude, "x", "--identity", "work").code == 1
    monkeypatch.setenv("AGENT_BRIDGE_IDENTITY", "work")
    assert run("send", claude, "x").code == 1
    with channel.agent("harbour", identity="work") as theirs:
        sent = run("send", "harbour", "silent", "--json").json["data"]["message"]
        assert (sent["toAgentId"], sent["identity"]) == (theirs, "work")
        assert run("send", claude, "silent", "--identity", "global").code == 0


def test_replying(channel: Channel, claude: str) -> None:
    question = _ask(channel, claude, "Shall I go on?")
    ran = run("reply", question.message_id[:13], "Yes, do.", "--json")
    assert ran.code == 0, ran.out
    data = ran.json["data"]
    assert data["message"]["replyTo"] == question.message_id
    assert data["message"]["toAgentId"] == claude
    assert data["message"]["conversationId"] == question.conversation_id
    assert (data["expectsResponse"], data["inferred"]) == (False, True)
    with channel.registry() as registry:
        asked, _ = registry.conversation(question.conversation_id).messages
    assert asked.state is AckState.ANSWERED


def test_a_reply_that_asks_back_awaits_an_answer(channel: Channel, claude: str) -> None:
    question = _ask(channel, claude, "Shall I go on?")
    ran = run("reply", question.message_id, "With what?", "--wait", "--json")
    assert ran.code == 0, ran.out
    assert ran.json["data"]["answer"]["content"] == "You said: With what?"


def test_replying_where_it_isnt_in_ones_own_inbox(channel: Channel, claude: str) -> None:
    with channel.registry() as registry:
        other = registry.send(
            Draft(
                identity="global",
                from_agent_id=claude,
                to_agent_id="client-other-1",
                kind=Kind.TASK_REQUEST,
                content="Do it.",
            )
        ).message
    assert run("reply", other.message_id[:-1], "Done.").code == 1
    assert run("reply", other.message_id, "Done.", "--conversation", "elsewhere").code == 1
    assert run("reply", other.message_id, "Done.").code == 0
    in_thread = run("reply", other.message_id, "Done.", "--conversation", other.conversation_id, "--json")
    assert in_thread.json["data"]["message"]["kind"] == "task_result"
    as_other = run("reply", other.message_id, "Done.", "--as", "client-other-1", "--json").json["data"][
        "message"
    ]
    assert as_other["fromAgentId"] == "client-other-1"
    own = in_thread.json["data"]["message"]
    assert run("reply", own["messageId"], "x", "--conversation", own["conversationId"]).code == 2


def test_the_answer_may_come_after_a_restart(channel: Channel) -> None:
    """The last test here: sessions need a while to come back."""
    registration = Registration(
        agent_id="client-lone-1",
        name="Lone",
        project_path="/src/lone",
        client_name="lone",
        client_version="1",
    )
    with channel.registry() as registry:
        registry.register(registration)
    process = channel.start("send", "lone", "Still there?", "--wait", "--json")
    with channel.registry() as registry:
        while not (found := registry.inbox("client-lone-1").items):
            assert process.poll() is None
    assert run("down").code == 0
    assert run("up").code == 0
    draft = Draft(
        identity="global",
        from_agent_id="client-lone-1",
        to_agent_id=found[0].from_agent_id,
        kind=Kind.CHAT,
        content="Yes.",
        reply_to=found[0].message_id,
    )
    with channel.registry() as registry:
        registry.send(draft)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    assert json.loads(out)["data"]["answer"]["content"] == "Yes."


def _arrived(registry: Registry, recipient: str, content: str, process: subprocess.Popen[str]) -> Message:
    """The newest message with that text that is for the recipient, once it is there and not answered."""
    while process.poll() is None:
        for one in registry.conversations(participant=recipient, limit=1).items:
            if one.last_message.content == content and not one.last_message.state.is_terminal:
                return one.last_message
    pytest.fail("the command has ended")


def _ack(message: Message, state: AckState, detail: str | None = None) -> Acknowledge:
    return Acknowledge(
        identity=message.identity,
        conversation_id=message.conversation_id,
        message_id=message.message_id,
        state=state,
        actor_id="client-inner-1",
        actor_type=ActorType.BRIDGE,
        detail=detail,
    )


def _ask(channel: Channel, sender: str, content: str) -> Message:
    with channel.registry() as registry:
        draft = Draft(
            identity="global",
            from_agent_id=sender,
            from_agent_name="Claude",
            to_agent_id=person("global").agent_id,
            kind=Kind.CHAT,
            content=content,
        )
        return registry.send(draft).message


@pytest.fixture
def readme_session(channel: Channel) -> Iterator[subprocess.Popen[str]]:
    """The README's program, once it can be written to."""
    code = readme.TEXT.partition("<!-- session -->\n```python\n")[2].partition("```")[0]
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=channel.home, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            with channel.registry() as registry:
                deadline = time.monotonic() + 20
                while not any(row["agentId"] == "my-agent-1" for row in registry.agents()):
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield process
        finally:
            process.kill()


def test_a_session_as_the_readme_writes_it(readme_session: subprocess.Popen[str]) -> None:
    ran = run("send", "my-agent", "Is the build green?", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert "    Yes." in ran.out
    assert readme_session.stdout is not None
    assert readme_session.stdout.readline() == "Is the build green?\n"
    with_it = run("conversations", "--pending", "--participant", "my-agent-1", "--json").json["data"]
    assert with_it["conversations"] == []  # the answer asks nothing back
