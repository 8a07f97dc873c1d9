"""`tail`: the real program, looking on while things happen."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from agent_bridge import paths
from agent_bridge.channel.model import Draft, Kind, Message
from agent_bridge.cli.person import person
from hostile import CONTROLS, TEXTS

from .channel_rig import Channel, run

Follow = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def follow(channel: Channel) -> Iterator[Follow]:
    """Starts `tail` and returns once it looks on."""

    def follow(*words: str) -> subprocess.Popen[str]:
        mark = _say(channel, "from here on")
        process = channel.start("tail", "--since", str(mark.seq - 1), *words)
        _until_line(process, mark.message_id)
        return process

    yield follow
    channel.end()


def _until_line(process: subprocess.Popen[str], part: str, before: list[str] | None = None) -> str:
    """The next line that holds `part`; those before it are put into `before`."""
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return line
        if before is not None:
            before.append(line)
    pytest.fail(f"the stream ended without {part!r}")


def _say(
    channel: Channel, content: str, *, identity: str = "global", to_agent_id: str | None = None
) -> Message:
    draft = Draft(
        identity=identity,
        from_agent_id="client-claude-1",
        from_agent_name="Claude",
        kind=Kind.CHAT,
        content=content,
        to_agent_id=to_agent_id,
    )
    with channel.registry(identity) as registry:
        return registry.send(draft).message


def test_it_shows_what_happens_as_text(channel: Channel, follow: Follow) -> None:
    process = follow()
    _until_line(process, "from here on")
    message = _say(channel, "hello\n\x1b[2Jworld", to_agent_id="client-codex-1")
    head = _until_line(process, message.message_id)
    assert "Claude -> client-codex-1  chat" in head
    assert process.stdout is not None
    assert process.stdout.readline() == "    hello\n"
    assert process.stdout.readline() == "    \\x1b[2Jworld\n"
    with channel.agent("harbour") as agent:
        _until_line(process, f"{agent} is there")
    _until_line(process, f"{agent} has left")


def test_hostile_text_is_shown_as_text(channel: Channel, follow: Follow) -> None:
    plain, machine = follow("--messages"), follow("--messages", "--json")
    sent = [_say(channel, text) for text in TEXTS.values()]
    end = _say(channel, "that was it")
    out: list[str] = []
    _until_line(plain, end.message_id, out)
    assert not set("".join(out)) & CONTROLS
    heads = [line for line in out if not line.startswith("    ") and line.strip()]
    assert [line.split()[-1] for line in heads[-len(sent) :]] == [message.message_id for message in sent]
    for message in sent:
        line = _until_line(machine, message.message_id)
        assert line.isascii()
        assert json.loads(line)["data"]["content"] == message.content


def test_json_is_one_object_a_line_and_survives_a_restart(channel: Channel, follow: Follow) -> None:
    process = follow("--json", "--messages")
    first = _say(channel, "before")
    assert json.loads(_until_line(process, first.message_id))["data"]["content"] == "before"
    assert run("down").code == 0
    assert json.loads(_until_line(process, "tail.lost"))["type"] == "tail.lost"
    assert run("up").code == 0
    # Sent at once, most likely before it is connected again: replayed then.
    missed = [_say(channel, f"missed {number}") for number in range(3)]
    lines = [json.loads(_until_line(process, message.message_id)) for message in missed]
    assert [line["seq"] for line in lines] == [message.seq for message in missed]
    assert {line["type"] for line in lines} == {"channel.message"}


def test_another_database_than_before_is_told(channel: Channel, follow: Follow) -> None:
    process = follow("--json", "--messages")
    assert run("down").code == 0
    for file in paths.channel_database().parent.iterdir():
        file.unlink()
    assert run("up").code == 0
    assert "another database" in json.loads(_until_line(process, "tail.gap"))["text"]
    message = _say(channel, "the first one")
    assert json.loads(_until_line(process, message.message_id))["seq"] == message.seq


def test_since_a_number_and_since_a_while_ago(channel: Channel, follow: Follow) -> None:
    messages = [_say(channel, f"earlier {number}") for number in range(3)]
    process = channel.start("tail", "--json", "--messages", "--since", str(messages[0].seq))
    try:
        seen = [json.loads(_until_line(process, one.message_id))["seq"] for one in messages[1:]]
        assert seen == [one.seq for one in messages[1:]]
    finally:
        process.kill()
        out, _ = process.communicate()
    ago = channel.start("tail", "--json", "--messages", "--since", "1h")
    try:
        for one in messages:
            _until_line(ago, one.message_id)
    finally:
        ago.kill()
        ago.communicate()
    assert messages[0].message_id not in out


def test_a_number_that_the_registry_never_reached(channel: Channel) -> None:
    process = channel.start("tail", "--json", "--since", "1000000000")
    try:
        assert "hasn't come as far" in json.loads(_until_line(process, "tail.gap"))["text"]
        message = _say(channel, "from here on")
        _until_line(process, message.message_id)
    finally:
        process.kill()
        process.communicate()


def test_two_look_on_and_the_person_stays_in_the_list(channel: Channel, follow: Follow) -> None:
    first, second = follow(), follow()
    message = _say(channel, "for both")
    for process in (first, second):
        _until_line(process, message.message_id)
    second.send_signal(signal.SIGINT)
    assert second.wait(20) == 130
    _until_line(first, f"{person('global').agent_id} is there")  # it came back at once


def test_another_identitys_messages_are_not_seen(channel: Channel, follow: Follow) -> None:
    process = follow("--json", "--messages")
    theirs = _say(channel, "theirs", identity="work")
    ours = _say(channel, "ours")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert json.loads(line)["data"]["messageId"] == ours.message_id
    assert theirs.message_id not in line


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_it_ends_in_order(channel: Channel, follow: Follow, number: signal.Signals, code: int) -> None:
    process = follow()
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (code, "")
    with channel.registry() as registry:
        assert person("global").agent_id not in [row["agentId"] for row in registry.agents()]


def test_nohup_means_it(channel: Channel, follow: Follow) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits that
    try:
        process = follow("--messages")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    message = _say(channel, "still there")
    _until_line(process, message.message_id)


def test_it_ends_when_nobody_reads(channel: Channel, follow: Follow) -> None:
    """Also while nothing happens."""
    process = follow("--messages")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(20) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_what_it_doesnt_begin_with(channel: Channel) -> None:
    assert run("tail", "--since", "soon").code == 2
    assert run("tail", "--identity", "a b").code == 2
