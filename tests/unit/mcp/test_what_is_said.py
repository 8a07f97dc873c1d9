"""What models are told of the tools: when to use each, within what clients show, and small as a whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import typer

from agent_bridge.channel import expects
from agent_bridge.channel.model import AckState
from agent_bridge.cli.app import _application
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import Harness
from agent_bridge.mcp.catalogue import wire_tool
from agent_bridge.mcp.guide import PAGES, Topic, guide, page
from agent_bridge.mcp.instructions import instructions
from agent_bridge.mcp.profiles import profile_of
from agent_bridge.mcp.skill import DESCRIPTION, skill
from agent_bridge.mcp.tool import ANSWER_BYTES, DESCRIPTION_CHARACTERS, Tool
from agent_bridge.mcp.tools import all_tools

TOOLS = all_tools()
WHEN = {
    "remember": "what the user asked to remember or corrected you on",
    "recall": "before you ask the user or guess",
    "list_memory": "To read a fact use recall",
    "update_memory": "that is wrong, out of date or badly put",
    "forget": "when it isn't true any more or the user asks",
    "list_agents": "Call it before message_client_session",
    "message_client_session": "to ask it, hand something over, or tell it",
    "channel_inbox": "Call it when the user speaks of messages",
    "reply": "a message that another agent sent",
    "channel_clear": "threads that are done",
    "agent_bridge_guide": "Call it when you don't know",
}
"""The tools in their order, with the words of each that say when to use it."""
WHOLE_LIST = 16_384
"""Bytes that `tools/list` may have: it is in the first request of every session."""
_KEYWORDS = {"type", "description", "enum", "items", "default", "minimum", "maximum"}
_SKILL_BODY = 24_000  # bytes of a SKILL.md that Antigravity reads

each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_the_tools_and_their_order() -> None:
    assert [tool.name for tool in TOOLS] == list(WHEN)


@each_tool
def test_it_says_when_to_use_it(tool: Tool) -> None:
    assert WHEN[tool.name] in tool.description


@each_tool
def test_no_clients_cut_is_passed(tool: Tool) -> None:
    assert 40 < len(tool.description) <= 600 < DESCRIPTION_CHARACTERS
    assert len(tool.title) <= 40
    # With the client's prefix: 64 is what the providers of models take.
    assert re.fullmatch("[a-z_]{1,40}", tool.name)


@each_tool
def test_every_parameter_is_flat_and_explained(tool: Tool) -> None:
    schema = wire_tool(tool)["inputSchema"]

    assert set(schema) <= {"type", "properties", "required", "additionalProperties"}
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    for name, told in schema["properties"].items():
        assert set(told) <= _KEYWORDS, name
        assert told["type"] in ("string", "integer", "boolean", "array"), name
        assert 0 < len(told["description"]) <= 250, name
        assert re.fullmatch("[a-z][A-Za-z]*", name), "the main names are camelCase"


@each_tool
def test_tools_of_the_description_are_tools(tool: Tool) -> None:
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", tool.description))

    assert words <= set(WHEN)


@each_tool
def test_the_answers_data_is_described_for_us_alone(tool: Tool) -> None:
    """MCP wants data of a schema that is told to everybody; some clients get the text alone."""
    described = tool.output_schema

    assert "outputSchema" not in wire_tool(tool)
    jsonschema.Draft202012Validator.check_schema(described)
    assert described["type"] == "object"
    assert set(described.get("required", ())) <= set(described["properties"])
    assert "$ref" not in json.dumps(described)


def test_what_runs_without_asking_in_codex() -> None:
    """Codex 0.171.0 refuses a tool in `codex exec` that neither only reads nor is harmless and closed."""
    hints = {tool.name: tool.hints for tool in TOOLS}

    assert all(not one.open_world and not one.destructive for one in hints.values())
    assert {name for name, one in hints.items() if one.read_only} == {
        "recall",
        "list_memory",
        "list_agents",
        "channel_inbox",
        "agent_bridge_guide",
    }


def test_the_whole_list_is_small() -> None:
    tools: list[Any] = [wire_tool(tool) for tool in TOOLS]
    whole = json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":")).encode()

    assert len(whole) <= WHOLE_LIST


def test_the_instructions_are_short_and_name_only_tools() -> None:
    text = instructions()

    assert len(text) <= DESCRIPTION_CHARACTERS
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text))
    assert named <= set(WHEN)
    assert named >= {"channel_inbox", "list_agents", "message_client_session", "agent_bridge_guide"}
    assert {"recall", "remember", "reply", "forget"} <= set(re.findall("[a-z]+", text))


@pytest.mark.parametrize("topic", [*PAGES, "all"])
def test_a_page_names_only_what_there_is(topic: Topic) -> None:
    text = guide(topic, TOOLS)
    parameters = {name for tool in TOOLS for name in wire_tool(tool)["inputSchema"]["properties"]}
    codes = set(re.findall(r"`([a-z][A-Za-z_]*)`", text))
    programs = {"opencode", "codex", "gemini", "antigravity", "edit"}

    camel = {code for code in codes if re.search("[a-z][A-Z]", code)} - {"replyWith"}
    assert camel <= parameters
    snake = {code for code in codes if "_" in code} - {state.value for state in AckState}
    assert snake <= set(WHEN)
    assert codes - camel - snake <= (
        {*WHEN, *parameters, *_COMMANDS, *programs, *_VALUES} | {state.value for state in AckState}
    )


_VALUES = {"global", "project", "all", "queued", "replyWith", "init"}
_COMMANDS = {"search", "add", "list", "inbox", "send", "status"}


@pytest.mark.parametrize("words", sorted(set(re.findall(r"`agent-bridge ([a-z -]+)`", guide("all", TOOLS)))))
def test_commands_that_it_names_exist(words: str) -> None:
    command: Any = typer.main.get_command(_application([]).app)
    for word in words.split():
        command = command.commands[word]


def test_the_whole_guide_lists_every_tool_and_fits_into_an_answer() -> None:
    text = guide("all", TOOLS)

    assert len(text.encode()) < ANSWER_BYTES
    assert [name for name in WHEN if f"- `{name}`: " in text] == list(WHEN)
    assert text.count("\n---\n") == len(PAGES) - 1
    assert [text.index(page(name, TOOLS)) for name in PAGES] == sorted(
        text.index(page(name, TOOLS)) for name in PAGES
    )


def test_a_new_tool_is_listed_by_itself() -> None:
    new = replace(TOOLS[0], name="a_new_one", description="Do it. And more.")

    assert "- `a_new_one`: Do it.\n" in guide("overview", (*TOOLS, new))
    assert "a_new_one" in skill((new,))["SKILL.md"]


def test_every_state_of_a_message_is_explained() -> None:
    text = page("acks", TOOLS)

    assert re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE) == [
        AckState.QUEUED,
        AckState.DELIVERED,
        AckState.DISPLAYED,
        AckState.ANSWERED,
        AckState.FAILED,
    ]


@pytest.mark.parametrize(
    "phrase",
    re.findall('"([^"]+)"', page("send", TOOLS).partition("unless it says")[2].partition("or the like")[0]),
)
def test_the_phrases_of_the_guide_say_that_no_answer_is_awaited(phrase: str) -> None:
    assert not expects.infer(f"The build is green, {phrase}.")
    assert expects.infer(f"The build is green, {phrase}. Or is it?")
    assert not expects.infer(f"The build is green, {phrase}: http://x/?a=b")


def test_each_client_that_init_wires_can_be_asked_for_by_its_kind() -> None:
    (tool,) = (wire_tool(one) for one in TOOLS if one.name == "message_client_session")
    said = tool["inputSchema"]["properties"]["clientType"]["description"]
    for harness in all_harnesses():
        if type(harness).mcp_edits is not Harness.mcp_edits:
            assert profile_of(harness.name) in said
            assert f"`{profile_of(harness.name)}`" in page("send", TOOLS)


def test_the_guide_names_some_phrases() -> None:
    assert page("send", TOOLS).partition("unless it says")[2].partition("or the like")[0].count('"') >= 10


def test_the_skill_is_small_and_whole() -> None:
    files = skill(TOOLS)
    first = files.pop("SKILL.md")

    assert first.startswith('---\nname: agent-bridge\ndescription: "')
    assert len(DESCRIPTION) <= 1024
    assert '"' not in DESCRIPTION
    assert "\\" not in DESCRIPTION
    assert len(first.encode()) < _SKILL_BODY
    assert set(re.findall(r"\]\((references/[a-z]+\.md)\)", first)) == set(files)
    both = first + "".join(files.values())
    assert all(page(name, TOOLS) in both for name in PAGES)
