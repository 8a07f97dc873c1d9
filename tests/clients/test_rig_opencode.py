"""The rig for OpenCode: what it shows, what it reports, what it refuses to call a success."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.rig.opencode import OpenCode
from clients.rig.prompt import opencode_prompt
from clients.rig.script import Call
from clients.rig.sealed import ClientError


def test_a_prompt_is_taken_apart() -> None:
    system = (
        "You are it.\nInstructions from: /h/A.md\nAAA\n\nInstructions from: /p/B.md\nBBB\n\n"
        "Skills provide specialized instructions and workflows.\nCCC"
    )
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    said = {"role": "assistant", "content": None}
    messages = [{"role": "system", "content": system}, {"role": "user", "content": parts}, said]
    prompt = opencode_prompt({"messages": messages})

    assert prompt.paths == (Path("/h/A.md"), Path("/p/B.md"))
    assert prompt.contents_of(Path("/p/B.md")) == "BBB"
    assert prompt.user == ("one", "two")
    assert prompt.count("CCC") == 1


def test_a_run_shows_prompt_tools_and_results(opencode: OpenCode, git_repo: Path) -> None:
    (git_repo / "AGENTS.md").write_text("Speak plainly.\n", "utf-8")

    run = opencode.run(git_repo, [Call("bash", {"command": "echo it ran", "description": "x"}), "The end."])

    assert run.prompt.contents_of(git_repo / "AGENTS.md") == "Speak plainly."
    assert run.prompt.user == ("hi",)
    assert "bash" in run.tools
    assert [(result.name, result.text) for result in run.tool_results] == [("bash", "it ran\n")]
    assert "The end." in run.stdout
    assert len(run.titles) == 1
    assert run.installs, "the attempt to install a package is seen"


def test_a_server_has_sessions_in_many_directories(opencode: OpenCode, git_repo: Path) -> None:
    other = opencode.home / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Another project.\n", "utf-8")
    with opencode.serve() as server:
        session = server.session(git_repo)
        session.say("one")
        second = session.say("two", [Call("bash", {"command": "echo it ran", "description": "x"})])
        assert second.prompt.user == ("one", "two")
        assert second.tool_results[0].text == "it ran\n"
        session.tell("by the way")
        assert session.say("three").prompt.user == ("one", "two", "by the way", "three")
        session.compact()
        assert len(server.model.summaries) == 1
        assert session.say("four").prompt.user == ("What did we do so far?", "four")
        assert server.prompt(other).count("Another project.") == 1
        assert not server.model.titles
        server.session(other, title="").say("five")
        with server.model.heard:  # it asks for the title beside the answer, and may do so after it
            assert server.model.heard.wait_for(lambda: server.model.titles, 30)


def test_an_unfinished_script_is_no_success(opencode: OpenCode, git_repo: Path) -> None:
    with pytest.raises(ClientError, match="turns left: 1"):
        opencode.run(git_repo, ["the end", "never said"])
