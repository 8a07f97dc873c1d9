"""The rig's part for Gemini CLI: what it reports, and that nothing leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.rig.gemini import WRITES, Gemini, read_file, write_file
from clients.rig.prompt import gemini_prompt
from clients.rig.script import Call
from clients.rig.sealed import ClientError


def test_a_prompt_is_the_system_instruction_and_the_first_user_content() -> None:
    quoted = "--- Context from: /p/GEMINI.md ---\nMine.\n--- End of Context from: /p/GEMINI.md ---"
    prompt = gemini_prompt(
        {
            "systemInstruction": {"parts": [{"text": "SYSTEM"}]},
            "contents": [
                {"role": "user", "parts": [{"text": f"A\n{quoted}\nB"}, {"text": "TYPED"}]},
                {"role": "model", "parts": [{"text": "SAID"}]},
                {"role": "user", "parts": [{"text": "LATER"}]},
            ],
        }
    )

    assert [prompt.count(word) for word in ("SYSTEM", "Mine.", "TYPED", "SAID", "LATER")] == [1, 1, 1, 0, 0]
    assert (prompt.paths, prompt.contents_of(Path("/p/GEMINI.md"))) == ((Path("/p/GEMINI.md"),), "Mine.")
    assert prompt.contents_of(Path("/p/AGENTS.md")) is None


def test_it_runs_scripted_tools_and_calls_nobody_else(gemini: Gemini, git_repo: Path) -> None:
    made = git_repo / "made.txt"

    run = gemini.run(
        git_repo, [read_file(git_repo / "main.py"), write_file(made, "by it\n"), "end"], arguments=WRITES
    )

    assert [result.name for result in run.tool_results] == ["read_file", "write_file"]
    assert "print('hello')" in run.tool_results[0].text
    assert (run.stdout, run.outcome.elsewhere) == ("end", ())
    assert made.read_text("utf-8") == "by it\n"


def test_turns_that_nobody_asked_for_fail_the_run(gemini: Gemini, git_repo: Path) -> None:
    with pytest.raises(ClientError, match="turns left: 1"):
        gemini.run(git_repo, ["the end", "never said"])


def test_a_tool_that_is_not_offered_is_told_as_an_error(gemini: Gemini, git_repo: Path) -> None:
    run = gemini.run(git_repo, [Call("no_such_tool")])

    assert "no_such_tool" in run.tool_results[0].text


def test_settings_are_the_tests_own_plus_the_sign_in(gemini: Gemini) -> None:
    gemini.settings({"context": {"fileName": "AGENTS.md"}})

    settings = json.loads((gemini.home / ".gemini/settings.json").read_text("utf-8"))

    assert settings["context"] == {"fileName": "AGENTS.md"}
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
