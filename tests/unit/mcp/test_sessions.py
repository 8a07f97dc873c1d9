"""Which id a session gets, who it is taken for, and where it works."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, cast

import pytest

from agent_bridge.channel import ids
from agent_bridge.mcp.hello import Hello
from agent_bridge.mcp.places import first_root, first_start, root_of, told_start
from agent_bridge.mcp.profiles import profile_of
from agent_bridge.mcp.sessions import MOST_SESSIONS, Connected, Sessions, TooManySessionsError

CODEX = "codex-mcp-client"


def hello(name: str = CODEX, **said: Any) -> Hello:  # noqa: ANN401
    base: dict[str, Any] = {"nonce": uuid.uuid4().hex, "pid": 2, "parent_pid": 1, "cwd": "/p"}
    return Hello(**base | {"client_name": name} | said)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(cast("Any", None), cast("Any", None))  # they are handed on, never used


def opened(sessions: Sessions, said: Hello, root: str = "/p") -> Connected:
    return sessions.open(said, Path(root), root)


def test_two_sessions_of_one_program_in_one_project_are_two(sessions: Sessions) -> None:
    first, second, third = (opened(sessions, hello()).session.agent_id for _ in range(3))
    assert first == ids.client_id(CODEX, "/p", "global")
    assert [second, third] == [f"{first}-2", f"{first}-3"]


def test_another_program_project_or_identity_has_ids_of_its_own(sessions: Sessions) -> None:
    own = opened(sessions, hello()).session.agent_id
    others = [
        opened(sessions, hello("opencode")).session.agent_id,
        opened(sessions, hello(), root="/q").session.agent_id,
        opened(sessions, hello(identity="work")).session.agent_id,
    ]
    assert len({own, *others}) == 4
    assert not any(one.endswith("-2") for one in others)


def test_who_ends_frees_its_id_for_the_next(sessions: Sessions) -> None:
    first, second = opened(sessions, hello()), opened(sessions, hello())
    assert sessions.close(first)
    assert opened(sessions, hello()).session.agent_id == first.session.agent_id
    assert second.session.agent_id.endswith("-2")


def test_who_comes_back_keeps_its_id_where_it_is_free(sessions: Sessions) -> None:
    wanted = ids.client_id(CODEX, "/p", "global")
    back = opened(sessions, hello(agent_id=f"{wanted}-2"))
    assert back.session.agent_id == f"{wanted}-2"
    assert opened(sessions, hello(agent_id=f"{wanted}-2")).session.agent_id == wanted


def test_an_old_connection_of_the_same_shim_is_no_hindrance(sessions: Sessions) -> None:
    nonce = uuid.uuid4().hex
    old = opened(sessions, hello(nonce=nonce))
    new = opened(sessions, hello(nonce=nonce, agent_id=old.session.agent_id))
    assert new.session.agent_id == old.session.agent_id
    assert not sessions.close(old), "the row is the new one's now"
    assert sessions.close(new)


@pytest.mark.parametrize(
    "claimed", ["client-dashboard-ui", "{wanted}-x", "{wanted}2", "client-claude-code-1"]
)
def test_nobody_takes_an_id_that_is_not_its_own(sessions: Sessions, claimed: str) -> None:
    wanted = ids.client_id(CODEX, "/p", "global")
    assert opened(sessions, hello(agent_id=claimed.format(wanted=wanted))).session.agent_id == wanted


def test_claude_is_known_by_its_own_session_wherever_it_works(sessions: Sessions) -> None:
    said = {"environment": {"CLAUDE_CODE_SESSION_ID": "6f0c"}}
    first = opened(sessions, hello("claude-code", **said))
    sessions.close(first)
    assert (
        opened(sessions, hello("claude-code", **said), root="/q").session.agent_id == first.session.agent_id
    )
    assert first.session.agent_id.startswith("client-claude-code-")
    assert len(first.session.agent_id) == len("client-claude-code-") + 16
    assert opened(sessions, hello(CODEX, **said)).session.agent_id == ids.client_id(CODEX, "/p", "global")


def test_a_session_that_turns_out_to_work_elsewhere_is_named_for_that(sessions: Sessions) -> None:
    one = opened(sessions, hello(), root="/home")
    assert sessions.move(one, Path("/p/sub"), "/p")
    assert one.session.agent_id == ids.client_id(CODEX, "/p", "global")
    assert one.session.start == Path("/p/sub")
    assert not sessions.move(one, Path("/p"), "/p")
    assert opened(sessions, hello(), root="/home").session.agent_id == ids.client_id(CODEX, "/home", "global")


def test_two_that_turned_out_to_work_elsewhere_keep_their_ids_over_a_restart(sessions: Sessions) -> None:
    wanted = ids.client_id(CODEX, "/p", "global")
    second = opened(sessions, hello(agent_id=f"{wanted}-2"), root="/home")
    first = opened(sessions, hello(agent_id=wanted), root="/home")
    for one in (second, first):  # the roots of the second are known first
        assert sessions.move(one, Path("/p"), "/p")
    assert (first.session.agent_id, second.session.agent_id) == (wanted, f"{wanted}-2")


def test_there_is_a_most(sessions: Sessions) -> None:
    held = [opened(sessions, hello()) for _ in range(MOST_SESSIONS)]
    with pytest.raises(TooManySessionsError):
        opened(sessions, hello())
    sessions.close(held[0])
    opened(sessions, hello())


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("opencode", "opencode"),
        ("gemini-cli-mcp-client", "gemini"),
        ("antigravity-client", "antigravity"),
        ("agy", "antigravity"),
        ("Claude Desktop", "unknown"),
        ("", "unknown"),
    ],
)
def test_programs_are_known_by_their_names(name: str, profile: str) -> None:
    assert profile_of(name) == profile


def test_the_option_is_before_the_environment_and_that_before_the_working_directory() -> None:
    claude, ours = {"CLAUDE_PROJECT_DIR": "/c"}, {"AGENT_BRIDGE_PROJECT": "/b"}
    assert first_start(hello(project="/a", environment=claude | ours)) == Path("/a")
    assert first_start(hello(environment=claude | ours)) == Path("/b")
    assert first_start(hello(environment=claude)) == Path("/c")
    assert (told_start(hello()), first_start(hello())) == (None, Path("/p"))
    assert first_start(hello(cwd="")) is None


@pytest.mark.parametrize(
    ("uris", "root"),
    [
        ((), None),
        (("file:///a/b%20c",), "/a/b c"),
        (("file:///a/%C3%A9%FF",), os.fsdecode(b"/a/\xc3\xa9\xff")),
        (("https://x/a", "file:///b", "file:///c"), "/b"),
        (("file://localhost/a",), "/a"),
        (("file://elsewhere/a", "file:a", "file:///a%00b", "file://[", "FILE:///ok"), "/ok"),
    ],
)
def test_the_first_root_that_is_a_path_here_counts(uris: tuple[str, ...], root: str | None) -> None:
    assert first_root(uris) == (None if root is None else Path(root))


def test_a_directory_that_is_not_there_is_its_own_root() -> None:
    assert root_of(Path("/not/there/../here")) in ("/not/here", "/not/there/../here")
    assert root_of(None) == ""
