"""Standard output is JSON-RPC and nothing else, whatever the client sends and the machine is like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge import paths
from integration.mcp.shim.rig import SHIM, Service, Shim, answer, call, initialize

Start = Callable[..., Shim]
PING = b'{"jsonrpc":"2.0","id":"after","method":"ping"}\n'

RUBBISH = {
    "words": b"hello?\n",
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no-utf-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n',
    "utf-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16") + b"\n",
    "byte-order-mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
    "nul": b'{"jsonrpc":"2.0","id":1,"method":"pi\x00ng"}\n',
    "deep": b"[" * 200_000 + b"\n",
    "deep-object": b'{"a":' * 100_000 + b"\n",
    "nested-over-100": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":'
    + b"[" * 500
    + b"]" * 500
    + b"}}\n",
    "batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n',
    "number": b"17\n",
    "huge-number": b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b',"method":"ping"}\n',
    "nan": b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}\n',
    "float-id": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
    "null-id": b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    "true-id": b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    "object-id": b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n',
    "long-id": b'{"jsonrpc":"2.0","id":"' + b"x" * 10_000 + b'","method":"ping"}\n',
    "no-version": b'{"id":1,"method":"ping"}\n',
    "method-number": b'{"jsonrpc":"2.0","id":1,"method":5}\n',
    "params-list": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n',
    "nothing-at-all": b"{}\n",
    "result-and-error": b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}\n',
    "call-before-initialize": json.dumps(call(1)).encode() + b"\n",
    "initialize-without-params": b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n',
    "initialize-of-nobody": b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":null}}}\n',
    "discover": b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}\n',
}
QUIET = {
    "blank": b"\n \n\t\r\n",
    "answer-to-nothing": b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "unknown-notification": b'{"jsonrpc":"2.0","method":"notifications/novel"}\n',
    "cancels-nothing": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n',
}


@pytest.fixture(scope="module")
def answers() -> dict[str, list[bytes]]:
    """What one shim under `-X dev -W error` answers to each, cut by a ping after each."""
    home = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}
    parts = {**RUBBISH, **QUIET}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *SHIM[1:], "--no-auto"],
        input=b"".join(part + PING for part in parts.values()),
        env={**home, "PYTHONPATH": str(Path(paths.__file__).parents[1])},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    pong = b'{"jsonrpc":"2.0","id":"after","result":{}}\n'
    return dict(
        zip(parts, [part.splitlines() for part in done.stdout.split(pong)], strict=False),
    )


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish_is_answered_with_an_error(answers: dict[str, list[bytes]], name: str) -> None:
    found = [json.loads(line) for line in answers[name]]

    assert found
    for one in found:
        assert one["jsonrpc"] == "2.0"
        assert one["error"]["code"] in (-32700, -32600, -32601, -32602)
        assert one["id"] in (None, 1)
        assert len(one["error"]["message"]) < 300


def test_the_newer_discovery_is_declined_as_unknown_whenever_it_comes(
    answers: dict[str, list[bytes]], sealed_home: Path, shim: Start
) -> None:
    """By that code a newer client goes on with the classic handshake, and Claude Code with its channel."""
    (early,) = answers["discover"]
    client = shim()
    client.begin()
    client.say({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})

    assert [found["error"]["code"] for found in (json.loads(early), client.hear())] == [-32601, -32601]


def test_what_is_printed_beside_the_protocol_goes_to_standard_error(sealed_home: Path) -> None:
    """By Python, by C and by a child, amid the work and after it."""
    program = (
        "import os, sys\n"
        "def noise(event, words):\n"
        "    if event == 'open' and str(words[0]).endswith('/catalogue.json'):\n"
        "        print('printed', flush=True)\n"
        "        os.write(1, b'written\\n')\n"
        "sys.addaudithook(noise)\n"
        "from agent_bridge.mcp.shim.main import main\n"
        "main(['--no-auto'])\n"
        "os.system('echo a child')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=PING, capture_output=True, timeout=20)

    assert done.stdout == b'{"jsonrpc":"2.0","id":"after","result":{}}\n'
    assert {b"printed", b"written", b"a child"} <= set(done.stderr.splitlines())


@pytest.mark.parametrize("name", QUIET)
def test_what_asks_for_nothing_is_not_answered(answers: dict[str, list[bytes]], name: str) -> None:
    assert answers[name] == []


def test_line_of_over_16_mib_is_dropped_as_it_comes(sealed_home: Path, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(*[b"x" * (1 << 20)] * 17, b"\n", PING)

    assert client.hear()["error"]["code"] == -32600
    assert client.hear()["id"] == "after"


def test_lines_that_end_in_crlf_and_one_that_does_not_end(service: Service, shim: Start) -> None:
    client = shim()
    client.say(json.dumps(initialize()).encode() + b"\r\n")
    assert client.hear()["id"] == 0
    client.say(json.dumps(call(1), indent=1).replace("\n", "\r").encode() + b"\r\n")
    peer = service.accept()
    peer.greet(initialized=False)
    assert peer.hear() == call(1)
    assert b"\r" not in peer.wire.raw[-1]
    peer.say(json.dumps(answer(1, {})).encode() + b"\r\n")
    assert client.hear() == answer(1, {})
    client.say(PING.rstrip())
    assert client.end()[0] == 0
    assert client.hear()["id"] == "after"


def test_half_of_an_emoji_is_mended_on_the_way(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call(1, query="\ud83d and 🙂"))
    peer = service.accept()
    peer.greet()

    assert peer.hear() == call(1, query="\ufffd and 🙂")


def test_large_answer_and_large_question(service: Service, shim: Start) -> None:
    """Larger than any buffer of the kernel's, in both directions at once."""
    client = shim()
    client.begin()
    peer = service.accept()
    peer.greet()
    client.say(call(1, query="q" * 3_000_000))
    assert peer.hear() == call(1, query="q" * 3_000_000)
    peer.connection.settimeout(20)
    found = {"content": [{"type": "text", "text": "ü" * 2_000_000}]}
    sender = threading.Thread(target=peer.say, args=(answer(1, found),))
    sender.start()
    assert client.hear() == answer(1, found)
    sender.join()


def test_id_in_use_and_second_initialize_are_refused(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call(1), call(1), initialize(request_id=2))

    found = client.hear()
    assert (found["id"], found["error"]["code"]) == (None, -32600)
    found = client.hear()
    assert (found["id"], found["error"]["code"]) == (2, -32600)
    peer = service.accept()
    peer.greet()
    assert peer.hear() == call(1)
    assert peer.wire.is_silent(0.2)


@pytest.mark.parametrize(
    "env",
    [
        {"AGENT_BRIDGE_STATE_DIR": "relative"},
        {"AGENT_BRIDGE_RUNTIME_DIR": "relative"},
        {"AGENT_BRIDGE_RUNTIME_DIR": "/" + "long/" * 30},
        {"AGENT_BRIDGE_STATE_DIR": "/proc/1/nothing"},
        {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
        {"HOME": "", "XDG_STATE_HOME": "\udcff"},
    ],
    ids=lambda env: " ".join(env),
)
def test_broken_environment_leaves_the_client_its_answers(
    sealed_home: Path, shim: Start, env: dict[str, str]
) -> None:
    client = shim(env=env)
    client.begin()
    client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert client.hear()["result"]["tools"]
    if "AGENT_BRIDGE_RUNTIME_DIR" in env:
        client.say(call(2))
        assert "AGENT_BRIDGE_RUNTIME_DIR" in client.hear()["result"]["content"][0]["text"]
    code, took, errors = client.end()

    assert code == 0
    assert took < 1.2
    assert b"Traceback" not in errors


@pytest.mark.parametrize("kind", ["directory", "fifo", "garbage", "huge", "half", "no-tool"])
def test_broken_catalogue_falls_back_on_the_shipped_one(sealed_home: Path, shim: Start, kind: str) -> None:
    place = paths.mcp_catalogue()
    place.parent.mkdir(parents=True)
    if kind == "directory":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.write_bytes(
            {
                "garbage": b"\xff\x00",
                "huge": b" " * (2 << 20),
                "half": b'{"catalogue": 1, "digest": "d", "tools": [',
                "no-tool": b'{"catalogue":1,"digest":"d","serverInfo":{"name":"a","version":"1"},'
                b'"tools":[{}]}',
            }[kind]
        )
    client = shim()

    assert client.begin()["serverInfo"]["name"] == "agent-bridge"
    client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert "remember" in str(client.hear())


def test_wrong_options_are_told_on_standard_error(sealed_home: Path) -> None:
    done = subprocess.run([*SHIM, "--nonsense"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--nonsense isn't an option" in done.stderr
