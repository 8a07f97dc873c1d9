"""What a hook tells: all that it has room for, in the limits of the harness, and what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_bridge.harnesses.base import HookRoom
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.projection import hook_context
from agent_bridge.projection.hooked import Hooked
from agent_bridge.projection.plan import Wanted, item_texts

CLAUDE, CODEX = ClaudeCode.hook_room or HookRoom(), Codex.hook_room or HookRoom()


def fact(number: int, text: str) -> Fact:
    return parse_fact(f"f{number}.md", f"# Fact {number}\n\n{text} {number}\n".encode())


def wanted(*facts: Fact, heard: frozenset[str] = frozenset()) -> Wanted:
    return Wanted((), facts, {"claude-code": heard})


def hook(name: str = "claude-code", room: HookRoom = CLAUDE) -> Hooked:
    return Hooked(name, name.title(), room, ())


@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(["plain ascii text", "żółć und ähnliches", "漢字かな交じり文", "🦑 emoji 🧠"]),
        max_size=60,
    ),
    st.integers(1, 40),
    st.sampled_from([CLAUDE, CODEX]),
)
def test_the_harnesss_limit_is_kept_and_every_fact_is_told_or_named(
    texts: list[str], times: int, room: HookRoom
) -> None:
    facts = [fact(number, text * times) for number, text in enumerate(texts)]
    text, left_out = hook_context.compose(wanted(*facts), "claude-code", room, 1 << 20)
    assert room.holds(text)
    for one in facts:
        assert (f"[{one.id}]" in text) != (one.id in left_out)
    assert ("agent-bridge search" in text) == bool(left_out)
    assert bool(text) == bool(facts)


def test_wide_letters_get_the_room_that_claude_counts() -> None:
    facts = [fact(number, "漢" * 480) for number in range(30)]
    text, _ = hook_context.compose(wanted(*facts), "claude-code", CLAUDE, 1 << 20)
    assert 8_500 < len(text.encode("utf-16-le")) // 2 <= 10_000
    assert len(text.encode()) > 20_000


def test_the_products_own_limit_holds_too() -> None:
    facts = [fact(number, "word " * 50) for number in range(200)]
    text, left_out = hook_context.compose(wanted(*facts), "codex", CODEX, 4096)
    assert len(text.encode()) <= 4096
    assert left_out


def test_what_the_harness_hears_elsewhere_is_not_said_again() -> None:
    one, two = fact(1, "Once is enough."), fact(2, "Twice isn't.")
    heard = frozenset(item_texts(fact_item(one)))
    text, left_out = hook_context.compose(wanted(one, two, heard=heard), "claude-code", CLAUDE, 9000)
    assert "Once" not in text
    assert "Twice" in text
    assert left_out == ()
    assert hook_context.compose(wanted(one, heard=heard), "claude-code", CLAUDE, 9000) == ("", ())


def test_files_follow_the_hooks_and_are_written_only_when_they_change(tmp_path: Path) -> None:
    hook_context.keep(tmp_path, [hook(), hook("codex", CODEX)], wanted(fact(1, "Said")), 9000)
    first = {path.name: path.stat().st_ino for path in hook_context.present(tmp_path)}
    assert set(first) == {"claude-code.md", "codex.md"}
    hook_context.keep(tmp_path, [hook()], wanted(fact(1, "Said")), 9000)
    assert {path.name: path.stat().st_ino for path in hook_context.present(tmp_path)} == {
        "claude-code.md": first["claude-code.md"]
    }
    hook_context.keep(tmp_path, [hook()], wanted(fact(2, "New")), 9000)
    assert "New" in hook_context.place(tmp_path, "claude-code").read_text()
    hook_context.keep(tmp_path, [], wanted(fact(2, "New")), 9000)
    assert not (tmp_path / "hook").exists()


@pytest.mark.parametrize("count", [0, 3, 500])
def test_what_is_left_out_is_named(tmp_path: Path, count: int) -> None:
    facts = [fact(number, "long " * 100) for number in range(count)]
    left_out = hook_context.keep(tmp_path, [hook()], wanted(*facts), 1 << 20)
    assert set(left_out) == ({"Claude-Code's hook"} if count == 500 else set())
