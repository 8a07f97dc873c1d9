"""The plugin's JavaScript by itself, run by Node with a stand-in for the command that it calls."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.projection import opencode_plugin

_DRIVER = """
import { readFileSync } from "node:fs"
import { AgentBridge } from "./plugin.mjs"
const logged = []
const client = { app: { log: async ({ body }) => { logged.push(body.message) } } }
const hooks = await AgentBridge({ client, directory: process.argv[2] })
const transform = hooks["experimental.chat.messages.transform"]
const first = (id, text = "hi") =>
  ({ info: { id: "msg_1", sessionID: id, role: "user" }, parts: [{ id: "prt_1", type: "text", text }] })
const told = async (id) => {
  const messages = [first(id)]
  await transform({}, { messages })
  return messages[0].parts.map((part) => part.text)
}
const run = new Function("hooks", "told", "transform", "first", "process",
  `return (async () => { ${readFileSync(0, "utf8")} })()`)
const began = Date.now()
const result = await run(hooks, told, transform, first, process)
console.log(JSON.stringify({ result, logged, ms: Date.now() - began }))
"""

_STAND_IN = """#!{python}
import json, os, sys, time
data = sys.stdin.buffer.read()
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps([sys.argv[1:], data.decode("utf-8", "surrogatepass")]) + "\\n")
{does}
"""

TOLD = {"data": {"version": "0", "text": "THE MEMORY"}, "messages": [], "errors": []}
ADDED = {"data": {"fact": {"id": "0001-x"}}, "messages": [{"level": "warning", "text": "Similar to 0000."}]}


@dataclass
class Plugin:
    """The plugin in a directory of its own."""

    place: Path

    @property
    def calls(self) -> list[tuple[list[str], str]]:
        """What the stand-in was called with: words and standard input."""
        file = self.place / "calls"
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return [(words, text) for words, text in map(json.loads, lines)]

    def does(self, code: str, *, name: str = "program") -> None:
        """Let the stand-in do something."""
        program = self.place / name
        program.write_text(_STAND_IN.format(python=sys.executable, does=code), "utf-8")
        program.chmod(0o755)

    def answers(self, document: object) -> None:
        """Let the stand-in print a document."""
        self.does(f"print({json.dumps(json.dumps(document))})")

    def run(self, code: str, **environment: str) -> dict[str, Any]:
        """Run JavaScript with the plugin's hooks; `result`, `logged`, `ms`."""
        done = subprocess.run(
            ["node", "driver.mjs", str(self.place)],
            cwd=self.place,
            env={**os.environ, "CALLS": str(self.place / "calls"), **environment},
            input=code,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def plugin(short_tmp: Path) -> Plugin:
    """Installed so that it calls `program` beside it; its time limits are a second."""
    if shutil.which("node") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no Node")
        pytest.skip("there is no Node")
    text = opencode_plugin.rendered(short_tmp / "program").decode()
    for name in ("CONTEXT_MS = 10_000", "TOOL_MS = 30_000"):
        assert name in text
        text = text.replace(name, f"{name.split()[0]} = 1_000")
    (short_tmp / "plugin.mjs").write_text(text, "utf-8")
    (short_tmp / "driver.mjs").write_text(_DRIVER, "utf-8")
    return Plugin(short_tmp)


def test_the_memory_stands_before_the_first_message_and_is_asked_for_once(plugin: Plugin) -> None:
    plugin.answers(TOLD)
    found = plugin.run("return [await told('a'), await told('a'), await told('b')]")
    assert found["result"] == [["THE MEMORY", "hi"]] * 3
    assert [words for words, _ in plugin.calls] == [
        ["opencode", "context", "--json", "--project", str(plugin.place)]
    ] * 2


def test_nothing_that_opencode_keeps_is_changed(plugin: Plugin) -> None:
    plugin.answers(TOLD)
    found = plugin.run(
        "const kept = first('a'); const messages = [{info: {role: 'assistant'}, parts: []}, kept];"
        "await transform({}, { messages });"
        "return [kept.parts.length, messages[1].parts.length, messages[1].info === kept.info]"
    )
    assert found["result"] == [1, 2, True]


def test_two_copies_of_the_plugin_tell_it_once(plugin: Plugin) -> None:
    plugin.answers(TOLD)
    found = plugin.run(
        "const messages = [first('a')];"
        "await Promise.all([transform({}, { messages }), transform({}, { messages })]);"
        "await transform({}, { messages });"
        "return messages[0].parts.map((part) => part.text)"
    )
    assert found["result"] == ["THE MEMORY", "hi"]


def test_a_session_that_began_without_the_memory_gets_it_later(plugin: Plugin) -> None:
    flag = plugin.place / "flag"
    told = json.dumps(json.dumps(TOLD))
    plugin.does(f"print({told}) if os.path.exists({str(flag)!r}) else open({str(flag)!r}, 'w')")
    found = plugin.run(
        "const before = await told('a'); const real = Date.now;"
        "const paused = await told('a');"
        "Date.now = () => real() + 61_000;"
        "return [before, paused, await told('a')]"
    )
    assert found["result"] == [["hi"], ["hi"], ["THE MEMORY", "hi"]]


@pytest.mark.parametrize("messages", ["[]", "undefined", "[{info: {role: 'assistant'}, parts: []}]", "[{}]"])
def test_a_request_without_a_users_message_is_left_alone(plugin: Plugin, messages: str) -> None:
    plugin.answers(TOLD)
    found = plugin.run(
        f"const output = {{messages: {messages}}}; await transform({{}}, output); return output"
    )
    assert "MEMORY" not in json.dumps(found["result"])


def test_a_summary_is_made_without_the_memory_and_the_session_told_anew(plugin: Plugin) -> None:
    plugin.answers(TOLD)
    found = plugin.run(
        "const all = [await told('a')];"
        "await hooks['experimental.session.compacting']({sessionID: 'a'}, {context: []});"
        "all.push(await told('b'));"
        "await hooks['experimental.session.compacting']({sessionID: 'a'}, {context: []});"
        "all.push(await told('a'));"
        "await hooks.event({event: {type: 'session.compacted', properties: {sessionID: 'a'}}});"
        "all.push(await told('a'));"
        "await hooks['experimental.session.compacting']({sessionID: 'a'}, {context: []});"
        "await hooks['chat.message']({sessionID: 'a'}, {});"
        "all.push(await told('a'));"
        "return all.map((texts) => texts.length)"
    )
    assert found["result"] == [2, 2, 1, 2, 2]
    assert len(plugin.calls) == 3


@pytest.mark.parametrize(
    "does",
    [
        "print('<html>')",
        "print('null')",
        "print('[]')",
        "sys.exit(3)",
        """print('{"data": {"text": 5}}')""",
        """print('{"data": null, "errors": [{"title": "It broke."}]}')""",
        "sys.stdout.write('x' * 5_000_000)",
        "os.kill(os.getpid(), 9)",
    ],
)
def test_without_a_sound_answer_a_session_is_as_without_the_plugin(plugin: Plugin, does: str) -> None:
    plugin.does(does)
    found = plugin.run(
        "return [await told('a'), await told('b'), await hooks.tool.remember.execute({text: 'x'})]"
    )
    assert found["result"][:2] == [["hi"], ["hi"]]
    assert found["result"][2].startswith("Not done: ")
    assert len(found["logged"]) == 1
    assert len(plugin.calls) == 2, "one for two sessions, one for the tool"


def test_a_program_that_hangs_is_waited_for_once_and_ended(plugin: Plugin) -> None:
    lock = plugin.place / "lock"
    hold = f"import fcntl; lock = open({str(lock)!r}, 'w'); fcntl.flock(lock, fcntl.LOCK_EX)"
    plugin.does(f"{hold}; time.sleep(600)")
    found = plugin.run("return [await told('a'), await told('b'), await told('c')]")
    assert found["result"] == [["hi"]] * 3
    assert found["ms"] < 20_000
    assert len(found["logged"]) == 1
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # it can be had only when the program has ended


def test_a_tool_call_can_be_stopped(plugin: Plugin) -> None:
    plugin.does("time.sleep(600)")
    found = plugin.run(
        "const control = new AbortController();"
        "const asked = hooks.tool.memory_search.execute({query: 'x'}, {abort: control.signal});"
        "control.abort();"
        "const late = await hooks.tool.memory_search.execute({query: 'x'}, {abort: control.signal});"
        "return [await asked, late]"
    )
    assert found["result"] == ["Not done: it was stopped."] * 2


def test_the_command_on_path_is_taken_where_the_installed_one_is_gone(plugin: Plugin) -> None:
    folder = plugin.place / "bin"
    folder.mkdir()
    plugin.does(f"print({json.dumps(json.dumps(TOLD))})", name="bin/agent-bridge")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    assert plugin.run("return await told('a')", PATH=path)["result"] == ["THE MEMORY", "hi"]


def test_another_version_is_told_in_the_log(plugin: Plugin) -> None:
    plugin.answers({"data": {"version": "9.9", "text": ""}})
    found = plugin.run("return [await told('a'), await told('b')]")
    assert found["result"] == [["hi"]] * 2
    assert len(found["logged"]) == 1
    assert "install-plugin" in found["logged"][0]


@pytest.mark.parametrize(
    ("text", "stdin"),
    [
        ("--scope global", "--scope global"),
        ("-", "-"),
        ("a\0b", "ab"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("$(touch x); `touch x` && 'q' \"q\"\n\nsecond", "$(touch x); `touch x` && 'q' \"q\"\n\nsecond"),
        ("é\u0301 漢字 🌊 " * 5000, "é\u0301 漢字 🌊 " * 5000),
    ],
    ids=["option", "dash", "nul", "surrogate", "shell", "long"],
)
def test_a_text_goes_over_standard_input_as_it_is(plugin: Plugin, text: str, stdin: str) -> None:
    plugin.answers(ADDED)
    args = f"{{text: {json.dumps(text)}, tags: ['-t', ' a  b ', '', 5]}}"
    found = plugin.run(f"return await hooks.tool.remember.execute({args}, {{sessionID: 'ses_1'}})")
    assert found["result"] == "Remembered as 0001-x.\nSimilar to 0000."
    ((words, given),) = plugin.calls
    assert given == stdin
    assert words[:4] == ["add", "--json", "--source", "opencode"]
    assert words[6:] == ["--session=ses_1", "--tag=-t", "--tag=a b", "--", "-"]


@pytest.mark.parametrize(
    "args", ["{}", "{text: 5}", "{text: ' \\n'}", "{text: 'x'.repeat(1048577)}", "undefined"]
)
def test_what_can_be_no_fact_is_refused_without_a_call(plugin: Plugin, args: str) -> None:
    plugin.answers(ADDED)
    found = plugin.run(f"return await hooks.tool.remember.execute({args})")
    assert found["result"].startswith("Not done: the text is ")
    assert plugin.calls == []


@pytest.mark.parametrize("query", ["--json", "a\0b \ud83d", "$(x)", "x" * 5000])
def test_a_query_is_one_plain_word_list(plugin: Plugin, query: str) -> None:
    hit = {"id": "0001-x", "title": "A\nB", "snippet": "C\n\nD"}
    plugin.answers({"data": {"hits": [hit]}})
    found = plugin.run(f"return await hooks.tool.memory_search.execute({{query: {json.dumps(query)}}})")
    assert found["result"].splitlines()[0] == "[0001-x] A B: C D"
    ((words, _),) = plugin.calls
    assert words[-2] == "--"
    assert len(words[-1]) <= 1000
    assert "\0" not in words[-1]


@pytest.mark.parametrize(
    ("mcp", "offered"),
    [
        ("{'agent-bridge': {type: 'local', command: ['x']}}", 0),
        ("{memory: {type: 'local', command: ['/usr/bin/agent-bridge-mcp']}}", 0),
        ("{'agent-bridge': {type: 'local', command: ['x'], enabled: false}}", 2),
        ("{other: {type: 'remote', url: 'http://127.0.0.1'}}", 2),
        ("{'agent-bridge': null}", 2),
        ("undefined", 2),
    ],
)
def test_the_tools_are_offered_where_no_server_of_ours_is(plugin: Plugin, mcp: str, offered: int) -> None:
    found = plugin.run(f"await hooks.config({{mcp: {mcp}}}); return Object.keys(hooks.tool).length")
    assert found["result"] == offered


def test_tags_are_optional(plugin: Plugin) -> None:
    found = plugin.run(
        "const output = {jsonSchema: {type: 'object', required: ['text', 'tags']}};"
        "await hooks['tool.definition']({toolID: 'remember'}, output);"
        "const other = {jsonSchema: {required: ['x']}};"
        "await hooks['tool.definition']({toolID: 'bash'}, other);"
        "return [output.jsonSchema.required, other.jsonSchema.required]"
    )
    assert found["result"] == [["text"], ["x"]]
