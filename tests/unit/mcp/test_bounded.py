"""Answers that have a size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.model import Kind, Message
from agent_bridge.channel.prompt import cleaned
from agent_bridge.mcp.bounded import Part, bytes_of, first_bytes, within
from agent_bridge.mcp.peers import peer_of
from agent_bridge.mcp.shown_message import PREVIEW, previewed, whole


def message(content: str) -> Message:
    return Message(
        seq=1,
        identity="global",
        conversation_id="c",
        message_id="m",
        from_agent_id="a",
        to_agent_id="b",
        kind=Kind.CHAT,
        content=content,
        created_at=1_700_000_000_000,
        expects_response=True,
    )


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 60))
def test_a_beginning_is_as_long_as_it_may_be(text: str, most: int) -> None:
    cut = first_bytes(text, most)
    assert text.startswith(cut)
    assert bytes_of(cut) <= most
    assert len(json.dumps(cut, ensure_ascii=False).encode()) - 2 <= most
    if most >= bytes_of(json.dumps(text, ensure_ascii=False)):
        assert cut == text


@given(st.lists(st.text(), max_size=8), st.integers(0, 100))
def test_parts_are_taken_in_order_while_there_is_room(texts: list[str], most: int) -> None:
    parts = [Part(text, {"n": number}) for number, text in enumerate(texts)]
    kept = within(parts, most)
    assert kept == parts[: len(kept)]
    assert sum(part.weight() for part in kept) <= most
    if len(kept) < len(parts):
        assert sum(part.weight() for part in parts[: len(kept) + 1]) > most


@given(st.text(min_size=1, max_size=400), st.integers(800, 1_400))
def test_a_text_in_parts_is_the_text(text: str, most: int) -> None:
    got, offset = "", 0
    while True:
        shown = whole(message(text * 5), most, offset=offset)
        assert shown is not None
        assert shown.part.weight() <= most
        got += shown.part.data["content"]
        if shown.next_offset is None:
            break
        assert not shown.is_whole
        offset = shown.next_offset
    assert shown.is_whole
    assert got == cleaned(text * 5)


@pytest.mark.parametrize("length", [0, 1, PREVIEW, PREVIEW + 1])
def test_a_preview_is_whole_only_where_the_text_is_no_longer(length: int) -> None:
    shown = previewed(message("x" * length))
    assert shown.is_whole == (length <= PREVIEW)
    assert ("content" in shown.part.data) == shown.is_whole
    assert ("preview" in shown.part.data) != shown.is_whole
    assert shown.part.data["length"] == length


@pytest.mark.parametrize(
    ("agent_id", "name", "version", "kind"),
    [
        ("client-dashboard-ui", "claude-code", "1", "dashboard-ui"),
        ("a", "claude-code", "1", "claude-code"),
        ("a", "Claude", "1", "claude-code"),
        ("a", "opencode", "opencode-plugin-bridge", "opencode-bridge"),
        ("a", "opencode", "1", "opencode-code"),
        ("a", "codex", "app-server-bridge", "codex-bridge"),
        ("a", "codex-mcp-client", "1", "codex-inner"),
        ("a", "antigravity-client", "1", "antigravity-inner"),
        ("a", "agy", "1", "antigravity-inner"),
        ("a", "gemini-cli-mcp-client-v1", "1", "gemini"),
        ("a", "else", "1", "unknown"),
        ("a", None, None, "unknown"),
    ],
)
def test_kinds_of_peers(agent_id: str, name: str | None, version: str | None, kind: str) -> None:
    row = AgentRow(
        agent_id=agent_id,
        name="n",
        project_path="/p",
        entry_type=EntryType.CLIENT,
        client_name=name,
        client_version=version,
    )
    assert peer_of(row).kind == kind
    assert peer_of(row).is_hidden == (kind in ("dashboard-ui", "opencode-bridge", "codex-bridge"))
