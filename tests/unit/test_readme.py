"""What the README says and can be checked without running anything that writes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator

import pytest
import typer

import readme
from agent_bridge import errors
from agent_bridge.cli.app import _application
from agent_bridge.cli.mcp_entries import CLIENTS
from agent_bridge.cli.result import Result
from agent_bridge.config import KEYS, Settings, meanings
from agent_bridge.daemon.jobs import Jobs
from agent_bridge.daemon.status import State, StatusBoard, empty_document
from agent_bridge.daemon.supervisor import Unit, _describe
from agent_bridge.harnesses import all_harnesses
from agent_bridge.mcp.tools import all_tools
from agent_bridge.memory import fact, index

_EXIT_CODES = {
    errors.EXIT_DONE,
    errors.EXIT_FAILED,
    errors.EXIT_USAGE,
    errors.EXIT_NOT_RUNNING,
    errors.EXIT_LEFT_UNDONE,
}


def _commands() -> dict[str, set[str]]:
    """Every command that the program shows in its help, with its options."""
    found: dict[str, set[str]] = {}

    def walk(group: object, prefix: str) -> None:
        for name, command in getattr(group, "commands", {}).items():
            title = f"{prefix} {name}".strip()
            is_group = bool(getattr(command, "commands", None))
            if not command.hidden and (not is_group or command.invoke_without_command):
                found[title] = {
                    option
                    for parameter in command.params
                    for option in (*parameter.opts, *parameter.secondary_opts)
                }
            walk(command, title)

    walk(typer.main.get_command(_application([]).app), "")
    return found


COMMANDS = _commands()


def test_the_verbs_are_those_of_the_program() -> None:
    named = [readme.codes(row[0])[0] for row in readme.rows("verbs")]

    assert sorted(named) == sorted(COMMANDS)


def test_the_options_of_a_verb_are_options_of_that_command() -> None:
    for row in readme.rows("verbs"):
        command = readme.codes(row[0])[0]
        named = {code.split()[0] for code in readme.codes(row[1]) if code.startswith("--")}
        assert named <= COMMANDS[command], row


def _invocations() -> Iterator[str]:
    """Every `agent-bridge …` in the README, in running text and at the beginning of a line of code."""
    for text in readme.codes(readme.TEXT):
        if text.startswith("agent-bridge "):
            yield text
    for line in readme.TEXT.splitlines():
        if line.startswith("agent-bridge "):
            yield line


@pytest.mark.parametrize("text", sorted(set(_invocations())))
def test_commands_in_the_text_exist(text: str) -> None:
    words = text.partition("#")[0].split()[1:]
    if words[0].startswith("--"):
        assert words[0] in {"--install-completion", "--version", "--help"}
        return
    name = next((f"{words[0]} {word}" for word in words[1:2] if f"{words[0]} {word}" in COMMANDS), words[0])
    assert name in COMMANDS
    assert {word for word in words if word.startswith("--")} <= COMMANDS[name]


def test_the_tools_are_those_that_agents_get() -> None:
    assert readme.first_codes("tools") == [tool.name for tool in all_tools()]


def test_the_clients_are_those_that_can_be_given_the_tools() -> None:
    titles = {harness.name: harness.title for harness in all_harnesses()}

    assert [row[0] for row in readme.rows("clients")] == [titles[name] for name in CLIENTS]


def test_exit_codes() -> None:
    assert {int(code) for code in readme.first_codes("exit codes")} == _EXIT_CODES


def test_every_setting_stands_there_with_its_default() -> None:
    told = {readme.codes(row[0])[0]: row[1:] for row in readme.rows("settings")}

    meant = meanings()

    assert list(told) == list(KEYS)
    for key, (default, meaning) in told.items():
        field = Settings.model_fields[key]
        assert json.loads(readme.codes(default)[0]) == field.default, key
        assert meaning == meant[key].replace("\n", " ").rstrip("."), key


def test_the_envelope() -> None:
    block = readme.TEXT.partition("```json\n")[2].partition("```")[0]
    shown = json.loads(block)

    assert list(shown) == list(Result("").envelope())
    assert set(shown["messages"][0]) == {"level", "text"}
    error = errors.AgentBridgeError("title", detail="detail", path="path", remedy="remedy")
    assert set(shown["errors"][0]) == set(error.as_dict())


def test_the_status_keys_are_those_of_the_document() -> None:
    board = StatusBoard()
    document = board.read()
    project = _describe(Unit("id", None, engine=None), {})  # type: ignore[arg-type]
    jobs = Jobs(post=lambda name: None)
    jobs.add("one", 1.0, lambda: None)
    rows = {code: row[1] for row in readme.rows("status") for code in readme.codes(row[0])}

    assert {key.removesuffix("[]") for key in rows if "." not in key} == set(document)
    assert {key.partition("[].")[2] for key in rows if key.startswith("projects[].")} == (
        set(project) | {"id", "root"}
    )
    assert set(project["facts"]) <= set(readme.codes(rows["projects[].facts"]))
    assert set(empty_document(State.OK)["watch"]) <= {"backend", *readme.codes(rows["watch"])}
    assert set(jobs.describe()[0]) <= set(readme.codes(rows["jobs"]))
    told = {key.removeprefix("registry.").removesuffix("[]") for key in rows if key.startswith("registry.")}
    assert told == set(document["registry"])
    told = {key.removeprefix("mcp.").removesuffix("[]") for key in rows if key.startswith("mcp.")}
    assert told == set(document["mcp"])
    assert set(document["loop"]) <= set(readme.codes(rows["loop"]))
    assert {state.value for state in State} == set(readme.codes(rows["state"]))


def test_versions_are_those_that_the_tests_pin() -> None:
    pinned = json.loads((readme.ROOT / "tests/clients/package.json").read_text())["dependencies"]
    told = dict(re.findall(r"`([a-z-]+)` (\d[\d.]*\d)", readme.TEXT))

    programs = {name: version for name, version in pinned.items() if "modelcontextprotocol" not in name}
    assert told == {name.rpartition("/")[2]: version for name, version in programs.items()}


def test_the_python_version_and_programs_are_those_of_the_package() -> None:
    package = tomllib.loads((readme.ROOT / "pyproject.toml").read_text())["project"]

    assert f"Python {package['requires-python'].removeprefix('>=')} or newer" in readme.TEXT
    assert set(package["scripts"]) <= {"agent-bridge", *readme.codes(readme.TEXT)}


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"\b(?:scripts|systemd|launchd|service|tests)/[\w./-]*\w", readme.TEXT)))
)
def test_files_that_it_names_exist(name: str) -> None:
    if name in {"systemd/user/agent-bridge.service"}:  # below ~/.config
        return
    assert (readme.ROOT / name).exists()


def test_limits() -> None:
    assert f"{Settings.model_fields['block_budget'].default // 1024} KiB" in readme.TEXT
    assert f"{index.MAX_LINES} lines and {index.MAX_CHARACTERS:,} characters" in readme.TEXT
    assert f"{fact.MAX_BYTES >> 20} MiB" in readme.TEXT


def test_the_fact_that_it_shows_is_read_as_it_says() -> None:
    block = readme.TEXT.partition("```markdown\n")[2].partition("```")[0]
    shown = fact.parse_fact("entries/example.md", block.encode())

    assert (shown.type, shown.tags, shown.pinned, shown.private) == ("project", ("ops",), True, True)
    assert (shown.title, shown.name) == ("Staging resets", "staging-resets")
    assert shown.id.startswith("20261129-0001-")
    assert shown.created_at == "2026-11-29T06:00:00.000Z"


def test_the_figures_are_a_whole_table() -> None:
    section = readme.TEXT.partition("## Figures")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert {row.count("|") for row in rows} == {5}
    for name in (
        "save, 200 facts",
        "save, 1,000 facts",
        "burst of 200 facts",
        "RSS",
        "CPU at rest",
        "search",
    ):
        assert any(row.startswith(f"| {name}") for row in rows), name


def test_the_exceptions_are_named_by_codes_that_notices_have() -> None:
    """And those by whose names one sees that a client gets facts twice, or not everywhere, are all named."""
    section = readme.TEXT.partition("## Which clients")[2].partition("\n## ")[0]
    clients = ("claude", "codex", "gemini", "opencode", "antigravity")
    named = {
        code for code in readme.codes(section) if re.fullmatch(rf"(?:{'|'.join(clients)})-[a-z-]+", code)
    }
    named -= {"claude-code", "opencode-ai", "gemini-cli"}
    sources = (readme.ROOT / "service/agent_bridge/harnesses").glob("*.py")
    given = {code for file in sources for code in re.findall(r'"([a-z]+-[a-z-]+)"', file.read_text("utf-8"))}

    assert named <= given
    telling = ("-below-root", "-nested", "-double", "-untrusted")
    assert {code for code in given if code.startswith(clients) and code.endswith(telling)} <= named
