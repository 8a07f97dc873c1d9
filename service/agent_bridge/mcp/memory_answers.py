"""What the memory tools answer: text for the model, and the same as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_bridge.mcp import memory_text
from agent_bridge.mcp.memory_lookup import Found, Page, cursor
from agent_bridge.mcp.memory_text import STORED, Shown
from agent_bridge.mcp.tool import Answer
from agent_bridge.memory.finding import Similar
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.visible import one_line

_MOST_SIMILAR = 5
_QUERY = 200


def remembered(added: Shown, similar: Sequence[Similar]) -> Answer:
    """A fact was added; those that resemble it are named."""
    named = [(one.fact.id, one_line(presentable(one.fact).title)) for one in similar[:_MOST_SIMILAR]]
    lines = [f"Remembered: {added.head}", *_about_secrets(added)]
    if named:
        lines.append("It resembles these. If one says the same, keep the better one and forget the other:")
        lines += [f"- [{fact_id}] {title}" for fact_id, title in named]
    data = {
        "status": "added",
        "fact": added.data,
        "similar": [{"id": fact_id, "title": title} for fact_id, title in named],
    }
    return Answer("\n".join(lines), data)


def already_known(holder: Shown) -> Answer:
    """The very same text is there already."""
    text = f"This is remembered already, so nothing was written: {holder.head}"
    return Answer(text, {"status": "known", "fact": holder.data, "similar": []})


def recalled(found: Found, query: str, notes: Sequence[str]) -> Answer:
    """What a query found."""
    asked = one_line(query)[:_QUERY]
    parts = memory_text.in_full(found.facts)
    if not found.facts:
        lines = [
            f"Nothing is remembered about: {asked}",
            "Try fewer or other words (parts of words count), or list_memory.",
        ]
    elif found.is_partial:
        lines = [f"No fact holds all of these words: {asked}", f"These hold some of them. {STORED}"]
    else:
        lines = [f"{_count(len(found.facts))} found. {STORED}"]
    lines += [f"\n{part.text}" for part in parts]
    left = found.facts[len(parts) :]
    if left:
        lines.append("\nThere was no room for these; recall each by its id:")
        lines += _ids(left)
    if found.more:
        lines.append("\nThere are more: use more telling words, or a higher limit.")
    data = {
        "facts": [part.data for part in parts],
        "partial": found.is_partial and bool(found.facts),
        "more": found.more or bool(left),
        "left_out": [one.fact.id for one in left],
    }
    return _noted(lines, data, notes)


def whole(one: Shown, offset: int) -> Answer:
    """One fact, from a character on."""
    part = memory_text.whole(one, offset)
    return Answer(
        f"{STORED}\n\n{part.text}", {"facts": [part.data], "partial": False, "more": False, "left_out": []}
    )


def listed(page: Page, limit: int, notes: Sequence[str]) -> Answer:
    """A page of the listing."""
    parts = memory_text.in_lines(page.facts[:limit])
    shown = len(parts)
    lines = [f"{_count(page.total)}; {shown} shown." if page.total else "Nothing is remembered here yet."]
    lines += [part.text for part in parts]
    next_cursor = cursor(page.positions[shown - 1]) if 0 < shown < len(page.facts) else None
    if next_cursor is not None:
        lines.append(f"{len(page.facts) - shown} more: list_memory with cursor {next_cursor}")
    if page.held_back:
        lines.append(
            f"{_count(page.held_back)} more can't be shown to agents, because of a secret in the text; "
            "the user sees them by `agent-bridge list`."
        )
    data: dict[str, Any] = {
        "facts": [part.data for part in parts],
        "total": page.total,
        "held_back": page.held_back,
    }
    return _noted(lines, data | ({"next_cursor": next_cursor} if next_cursor else {}), notes)


def updated(changed: Shown) -> Answer:
    """A fact was changed."""
    lines = [f"Changed: {changed.head}", *_about_secrets(changed)]
    return Answer("\n".join(lines), {"fact": changed.data})


def forgotten(fact: Shown, notes: Sequence[str]) -> Answer:
    """A fact was taken out."""
    named = [one_line(note)[:1000] for note in notes[:20]]
    lines = [f"Forgotten: {fact.head}", *named]
    return Answer("\n".join(lines), {"id": fact.fact.id, "forgotten": True, "notes": named})


def forgotten_before(fact_id: str) -> Answer:
    """The same call came a second time, and the fact is gone."""
    shown = one_line(fact_id)[:_QUERY]
    return Answer(f"Forgotten: [{shown}]", {"id": shown, "forgotten": True, "notes": []})


def _about_secrets(fact: Shown) -> list[str]:
    if not fact.fact.secrets:
        return []
    return [
        f"The text seems to hold a secret ({', '.join(fact.fact.secrets)}). It is kept on this machine only, "
        "out of Git, and no agent gets to see it. Tell the user. If it should hold none, update_memory gives "
        "it another text."
    ]


def _ids(facts: Sequence[Shown]) -> list[str]:
    return [f"- [{one.fact.id}]" for one in facts]


def _noted(lines: list[str], data: Mapping[str, Any], notes: Sequence[str]) -> Answer:
    shown = [one_line(note)[:1000] for note in notes]
    text = "\n".join([*lines, *(f"\n{note}" for note in shown)])
    return Answer(text, {**data, **({"notes": shown} if shown else {})})


def _count(facts: int) -> str:
    return "1 fact" if facts == 1 else f"{facts} facts"


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_FLAG: dict[str, Any] = {"type": "boolean"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_FACT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "scope": _TEXT,
        "title": _TEXT,
        "type": _TEXT,
        "tags": _TEXTS,
        "pinned": _FLAG,
        "private": _FLAG,
        "created_at": _TEXT,
        "updated_at": _TEXT,
        "text": _TEXT,
        "characters": _NUMBER,
        "next_offset": _NUMBER,
    },
    "required": ["id", "scope", "title"],
}
_FACTS: dict[str, Any] = {"type": "array", "items": _FACT}


def _object(required: dict[str, Any], **optional: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


REMEMBERED = _object(
    {
        "status": {"type": "string", "enum": ["added", "known"]},
        "fact": _FACT,
        "similar": {"type": "array", "items": _object({"id": _TEXT, "title": _TEXT})},
    }
)
RECALLED = _object({"facts": _FACTS, "partial": _FLAG, "more": _FLAG, "left_out": _TEXTS}, notes=_TEXTS)
LISTED = _object({"facts": _FACTS, "total": _NUMBER, "held_back": _NUMBER}, next_cursor=_TEXT, notes=_TEXTS)
UPDATED = _object({"fact": _FACT})
FORGOTTEN = _object({"id": _TEXT, "forgotten": _FLAG, "notes": _TEXTS})
