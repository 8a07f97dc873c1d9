"""How a fact's history looks: text for people, an object for programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from agent_bridge.cli.facts_shown import fact_json
from agent_bridge.cli.result import Json
from agent_bridge.cli.where import Place
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.times import iso
from agent_bridge.projection.history import Copy, Story

_ID_LENGTH = 10


def story_json(place: Place, story: Story) -> dict[str, Json]:
    """The stable fields."""
    is_private = not story.privacy.startswith("shared")
    ids = frozenset({story.fact.id} if is_private else ())
    return {
        "fact": {**fact_json(place, story.fact, ids), "file": str(story.file)},
        "removed": False,
        "session": story.fact.origin_session or None,
        "taken_from": story.taken_from or None,
        "privacy": story.privacy,
        "tracked": story.tracked,
        "commits": [
            {"id": one.id, "at": _when(one.made_at), "author": one.author, "subject": one.subject}
            for one in story.commits
        ],
        "events": [{"at": one.at, "text": one.text} for one in story.events],
        "copies": copies_json(story.copies),
        "waiting": list(story.waiting),
    }


def copies_json(copies: Iterable[Copy]) -> list[Json]:
    """Kept earlier texts."""
    return [{"path": str(one.path), "at": one.at, "why": one.why} for one in copies]


def story_text(story: Story) -> str:
    """The same for people, a line for each thing that is known."""
    fact = presentable(story.fact)
    known = (
        ("file", str(story.file)),
        ("source", fact.source or "not told"),
        ("session", fact.origin_session),
        ("taken from", story.taken_from),
        ("created", fact.created_at),
        ("changed", fact.updated_at),
        ("privacy", story.privacy),
        ("Git", _git(story)),
    )
    lines = [f"[{fact.id}] {fact.title}", *(f"  {name:<11}{text}" for name, text in known if text)]
    lines += [
        f"    {one.id[:_ID_LENGTH]}  {_when(one.made_at)[:10]}  {one.author}: {one.subject}"
        for one in story.commits
    ]
    if story.events:
        lines += ["  reviews and imports:", *(f"    {one.at[:19]}  {one.text}" for one in story.events)]
    if story.copies:
        lines.append("  earlier texts:")
        lines += [f"    {one.at[:19]}  {one.path} ({one.why})" for one in story.copies]
    if story.waiting:
        lines.append(f"  like it, in `agent-bridge review`: {', '.join(story.waiting)}")
    return "\n".join(lines)


def _git(story: Story) -> str:
    if not story.tracked:
        return "doesn't track it"
    return "tracks it; commits that touched it:" if story.commits else "is about to: it was never committed"


def _when(seconds: int) -> str:
    return iso(datetime.fromtimestamp(seconds, UTC))
