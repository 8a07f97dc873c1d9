"""The plugin in real sessions of OpenCode: what the model is offered and told, and what a start costs."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.projection import opencode_plugin
from clients.rig.opencode import OpenCode, OpenCodeRun
from clients.rig.product import Product
from clients.rig.script import Call
from clients.rig.server import Request

SHARED = "Releases leave on Tuesdays, from the harbour branch."
PRIVATE = "The lighthouse keeper wants no calls before noon."
NEW = "The new crane stands on pier four."
OTHER = "Here it is about something else: the mill grinds on Fridays."
TOOLS = {"remember", "memory_search"}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def project(product: Product, opencode: OpenCode, git_repo: Path) -> Path:
    """A set-up project whose AGENTS.md brings one fact; the other is private."""
    (opencode.home / ".config/opencode").mkdir(parents=True)
    (git_repo / "AGENTS.md").write_text("Be brief.\n", "utf-8")
    for words in (("add", "AGENTS.md"), ("commit", "-qm", "Agents")):
        subprocess.run(["git", *words], cwd=git_repo, check=True)
    product.init(git_repo)
    product.run("add", SHARED, cwd=git_repo)
    product.run("add", "--private", PRIVATE, cwd=git_repo)
    assert SHARED in (git_repo / "AGENTS.md").read_text("utf-8")
    return git_repo


def test_both_tools_run_and_the_memory_is_told_once(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    product.run("opencode", "install-plugin", cwd=project)
    calls = [
        Call("remember", {"text": f"--scope global {NEW}", "tags": ["-t", "crane"]}),
        Call("remember", {"text": PRIVATE}),
        Call("memory_search", {"query": "harbour branch"}),
    ]

    run = opencode.run(project, calls)

    assert set(run.tools) >= TOOLS
    added, refused, found = run.tool_results
    (fact,) = product.run("search", "crane", cwd=project)["data"]["hits"]
    assert (fact["source"], fact["tags"], fact["scope"]) == ("opencode", ["-t", "crane"], "project")
    assert added.text.startswith(f"Remembered as {fact['id']}.")
    (known,) = product.run("search", "lighthouse", cwd=project)["data"]["hits"]
    assert known["id"] in refused.text
    assert refused.text.startswith("Not done")
    assert SHARED in found.text
    assert len(run.requests) == 4
    assert {_times(request, PRIVATE) for request in run.requests[:2]} == {1}
    assert {_times(request, SHARED) for request in run.requests[:3]} == {1}
    assert PRIVATE in run.prompt.user[0], "in the first message, before what was typed"
    assert run.prompt.user[-1] == "hi"
    assert [_times(request, PRIVATE) for request in run.titles] == [0]
    assert run.installs == ()
    assert not list(project.rglob("package.json"))
    assert not (opencode.home / ".config/opencode/package.json").exists()
    _check_clean(project)


def test_it_is_told_again_after_a_compaction_and_in_every_kind_of_session(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    product.run("opencode", "install-plugin", cwd=project)
    with opencode.serve() as server:
        session = server.session(project)
        session.tell("An injected line.")
        first = session.say("one", [Call("bash", {"command": "echo hello", "description": "x"})])
        second = session.say("two")
        assert _told(first, second) == {1}
        assert first.prompt.user[0].count(PRIVATE) == 1
        assert first.prompt.user[1:] == ("An injected line.", "one")

        product.run("add", "--private", NEW, cwd=project)
        assert _told(session.say("three"), text=NEW) == {0}, "a running session keeps its beginning"
        session.compact()
        third = session.say("four")
        assert third.prompt.user[1:] == ("What did we do so far?", "four")
        assert _told(third, session.say("five")) == {1}
        assert _told(third, text=NEW) == {1}
        session.compact()
        assert _told(session.say("six")) == {1}
        assert len(server.model.summaries) == 2
        assert {_times(request, PRIVATE) for request in server.model.summaries} == {0}

        child = server.session(project, parent=session.id)
        assert _told(child.say("a part of the work")) == {1}
        assert _told(server.session(project).say("another session")) == {1}
        below = project / "deep/er"
        below.mkdir(parents=True)
        assert _told(server.session(below).say("below the root")) == {1}
    _check_no_stored_text(opencode, PRIVATE)


def test_a_session_that_goes_on_in_a_new_process_is_told_once(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    for words in ((), ("--global",)):  # two copies tell it once
        product.run("opencode", "install-plugin", *words, cwd=project)
    opencode.run(project, text="one")

    run = opencode.run(project, text="two", arguments=["--continue"])

    assert run.prompt.user[-2:] == ("one", "two")
    assert _told(run) == {1}
    assert sorted(TOOLS & set(run.tools)) == sorted(name for name in run.tools if name in TOOLS)


def test_one_server_tells_each_directory_its_own(project: Path, product: Product, opencode: OpenCode) -> None:
    other, plain = opencode.home / "mill", opencode.home / "no project"
    for place in (other, plain):
        place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    product.init(other)
    product.run("add", "--private", OTHER, cwd=other)
    side = opencode.home / "side"
    subprocess.run(["git", "worktree", "add", "-q", "-b", "side", str(side)], cwd=project, check=True)
    product.run("opencode", "install-plugin", "--global", cwd=plain)
    with opencode.serve() as server:
        told = {place: server.session(place).say("hi") for place in (project, other, plain, side)}
        assert [_told(told[place]) for place in told] == [{1}, {0}, {0}, {1}]
        assert [_told(told[place], text=OTHER) for place in told] == [{0}, {1}, {0}, {0}]
        assert told[plain].prompt.user == ("hi",)

        there = server.session(plain).say("hi", [Call("remember", {"text": NEW})])
        assert "agent-bridge init" in there.tool_results[0].text
        aside = server.session(side).say("hi", [Call("remember", {"text": NEW})])
        assert aside.tool_results[0].text.startswith("Remembered")
        assert server.model.installs == ()
    assert list(plain.iterdir()) == []
    assert len(product.run("search", "crane", cwd=project)["data"]["hits"]) == 1


def test_the_tools_go_where_the_mcp_server_is_configured(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    product.run("opencode", "install-plugin", cwd=project)
    places = {"one/opencode.json": True, "two/.opencode/opencode.jsonc": True, "three/opencode.json": False}
    for place, enabled in places.items():
        _configure_server(project / place, enabled=enabled)
    with opencode.serve() as server:
        runs = [server.session(project / place.split("/")[0]).say("hi") for place in places]

    assert [set(run.tools) >= TOOLS for run in runs] == [False, False, True]
    assert [bool(TOOLS & set(run.tools)) for run in runs] == [False, False, True]
    assert _told(*runs) == {1}


def test_the_tools_go_where_the_user_has_the_mcp_server(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    product.run("opencode", "install-plugin", cwd=project)
    _configure_server(opencode.home / ".config/opencode/opencode.json")

    run = opencode.run(project)

    assert not TOOLS & set(run.tools)
    assert _told(run) == {1}


def test_a_start_waits_for_no_package_although_the_registry_is_away(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    away = replace(opencode, env={"npm_config_registry": "http://127.0.0.1:9/"})
    without = _duration(away, project)

    product.run("opencode", "install-plugin", cwd=project)
    before = _tree(project / ".opencode"), _tree(opencode.home / ".config/opencode")
    before[1].pop(".gitignore")  # OpenCode's own, from its first start
    with_plugin = _duration(away, project)

    assert with_plugin < 4 * without + 5, f"{with_plugin:.1f} s, {without:.1f} s without the plugin"
    after = _tree(project / ".opencode"), _tree(opencode.home / ".config/opencode")
    for then, now in zip(before, after, strict=True):
        assert {name: data for name, data in now.items() if name != ".gitignore"} == then
    for directory in (project / ".opencode", opencode.home / ".config/opencode"):
        (directory / opencode_plugin.LOCK).unlink()
    with ThreadPoolExecutor(1) as pool, opencode.serve() as server:
        pool.submit(server.session, project)  # it would take a minute now
        deadline = time.monotonic() + 60
        while not server.model.installs:
            assert time.monotonic() < deadline, "without the lock files it would have asked"
            time.sleep(0.05)


def test_a_package_json_of_the_users_stays_as_it_is(
    project: Path, product: Product, opencode: OpenCode
) -> None:
    mine = b'{ "dependencies": {} }'
    for directory in (project / ".opencode", opencode.home / ".config/opencode"):
        directory.mkdir(exist_ok=True)
        (directory / "package.json").write_bytes(mine)

    told = product.run("opencode", "install-plugin", cwd=project)

    assert told["data"]["waits"] is True
    run = opencode.run(project)
    assert set(run.tools) >= TOOLS
    for directory in (project / ".opencode", opencode.home / ".config/opencode"):
        assert (directory / "package.json").read_bytes() == mine
        assert not (directory / "package-lock.json").exists()


def test_opencode_works_without_a_working_agent_bridge(project: Path, opencode: OpenCode) -> None:
    rubbish, missing = opencode.home / "rubbish", opencode.home / "missing"
    rubbish.write_text("#!/bin/sh\necho '<html>'\n", "utf-8")
    rubbish.chmod(0o755)
    other = opencode.home / "other"
    other.mkdir()
    for root, program in ((project, missing), (other, rubbish)):
        plugin = root / ".opencode" / opencode_plugin.PLUGIN
        plugin.parent.mkdir(parents=True)
        plugin.write_bytes(opencode_plugin.rendered(program))
    with opencode.serve() as server:
        for root in (project, project, other, other):
            run = server.session(root).say("hi", [Call("remember", {"text": NEW})])
            assert run.prompt.user == ("hi",)
            assert run.tool_results[0].text.startswith("Not done")
    assert _logged(opencode).count("Sessions start without the project's memory") == 2, "once a directory"


def test_eject_takes_the_plugin_out(project: Path, product: Product, opencode: OpenCode) -> None:
    product.run("opencode", "install-plugin", cwd=project)
    opencode.run(project)

    product.run("eject", "--yes", cwd=project)

    left = {**_tree(project / ".opencode"), **_tree(opencode.home / ".config/opencode")}
    assert set(left) <= {".gitignore"}, "that one is OpenCode's own"
    run = opencode.run(project)
    assert not TOOLS & set(run.tools)
    assert _told(run) == {0}


def _configure_server(settings: Path, *, enabled: bool = True) -> None:
    """Settings of OpenCode's that start our MCP server, which only has to have the name."""
    server = {"type": "local", "command": ["/bin/false"], "enabled": enabled}
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"mcp": {"agent-bridge": server}}), "utf-8")


def _told(*runs: OpenCodeRun, text: str = PRIVATE) -> set[int]:
    """How often a text stands in the requests of some turns."""
    return {_times(request, text) for run in runs for request in run.requests}


def _times(request: Request, text: str) -> int:
    return json.dumps(request.body, ensure_ascii=False).count(text)


def _duration(opencode: OpenCode, cwd: Path) -> float:
    began = time.monotonic()
    opencode.run(cwd)
    return time.monotonic() - began


def _tree(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _check_clean(root: Path) -> None:
    """Nothing of ours but facts and their block can get into a commit."""
    shown = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert "opencode" not in shown.replace("memory/", "")


def _check_no_stored_text(opencode: OpenCode, text: str) -> None:
    """The memory is in no file of OpenCode's sessions."""
    data = opencode.home / ".local/share/opencode"
    files = [path for path in data.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if text.encode() in path.read_bytes()] == []


def _logged(opencode: OpenCode) -> str:
    logs = (opencode.home / ".local/share/opencode/log").glob("*.log")
    return "".join(path.read_text("utf-8") for path in logs)
