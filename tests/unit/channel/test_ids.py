"""Names: what may be one, and the ids that are reckoned."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel import ids
from agent_bridge.channel.errors import InvalidError


@pytest.mark.parametrize("name", ["global", "a", "A.b_c-9", "0", "x" * 64])
def test_an_identity_that_may_be(name: str) -> None:
    assert ids.checked_identity(name) == name


@pytest.mark.parametrize("name", [
    "", "*", ".hidden", "-x", "_x", "a b", "a/b", "a\n", "ä", "x" * 65, "a\0", "١", None, 7, ["global"],
    b"global",
])  # fmt: skip
def test_an_identity_that_may_not(name: object) -> None:
    with pytest.raises(InvalidError):
        ids.checked_identity(name)


@pytest.mark.parametrize("text", ["a", "client-claude code-1f", "ünï", "日本", "x" * 200, "../..", "%2e"])
def test_an_id_that_may_be(text: str) -> None:
    assert ids.checked_id(text, "messageId") == text


@pytest.mark.parametrize("text", [
    "", " ", "x" * 201, "a\nb", "a\rb", "a\x85b", "a\u2028b", "a\0", "a\x1b[31m", "a\u202eb", "a\u200bb",
    "\ud800", "a\u2066b", "\ufeffa", None, 3, b"a", {},
])  # fmt: skip
def test_an_id_that_may_not_and_which_field_it_was(text: object) -> None:
    with pytest.raises(InvalidError, match="messageId"):
        ids.checked_id(text, "messageId")


@given(st.text(), st.text())
def test_a_pairs_id_is_the_same_from_both_sides_and_looks_like_a_uuid(one: str, other: str) -> None:
    pair = ids.pair_id(one, other)
    assert pair == ids.pair_id(other, one)
    assert str(uuid.UUID(pair)) == pair
    assert pair[14] == "4"


def test_the_reckoned_ids_are_those_that_other_programs_reckon() -> None:
    # Each by an independent reckoning: sha1sum of the lines; the 32-bit hash in a JavaScript engine.
    assert ids.pair_id("b", "a") == "fcd127ff-a101-4069-006a-d91f3f361248"
    assert ids.client_id("claude-code", "/home/u/p", "global") == "client-claude-code-3b574bce0b3b"
    assert ids.codex_bridge_id("/home/u/p", "global") == "client-codex-bridge-c640173a9453"
    assert ids.opencode_bridge_id("/home/u/p", "global") == "client-opencode-bridge-eae47477"
    assert ids.opencode_bridge_id("/home/u/pröjekt-𝄞", "work") == "client-opencode-bridge-908a51b8"


@given(st.text(), st.text(), st.text())
def test_reckoned_ids_may_always_be_ids(name: str, path: str, identity: str) -> None:
    for reckoned in (
        ids.client_id(name, path, identity),
        ids.codex_bridge_id(path, identity),
        ids.opencode_bridge_id(path, identity),
    ):
        assert ids.checked_id(reckoned, "agentId") == reckoned


def test_another_path_or_identity_is_another_id() -> None:
    assert len({ids.client_id("c", path, who) for path in ("/a", "/b") for who in ("x", "y")}) == 4
    assert len({ids.opencode_bridge_id(path, who) for path in ("/a", "/b") for who in ("x", "y")}) == 4


def test_a_names_unprintable_part_is_shown_as_dashes_and_still_told_apart() -> None:
    one, other = ids.client_id("a\nb", "/p", "x"), ids.client_id("a\rb", "/p", "x")
    assert one.startswith("client-a-b-")
    assert one != other


def test_a_long_name_leaves_room_for_the_digits() -> None:
    one, other = ids.client_id("x" * 300, "/p", "y"), ids.client_id("x" * 301, "/p", "y")
    assert ids.checked_id(one, "agentId") == one
    assert one != other


def test_new_ids_are_new() -> None:
    assert ids.thread_id() != ids.thread_id()
    assert ids.message_id() != ids.message_id()
