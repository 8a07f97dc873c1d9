"""What the shell offers after Tab: ids of facts."""

from __future__ import annotations

from agent_bridge.cli.where import readable
from agent_bridge.errors import AgentBridgeError


def complete_fact(incomplete: str) -> list[tuple[str, str]]:
    """(id, title) of each fact whose id begins with what was typed; nothing where the store can't be read."""
    try:
        facts = [fact for place in readable(None, None) for fact in place.store.scan().facts]
    except (AgentBridgeError, OSError):
        return []
    return [(fact.id, _one_line(fact.title)) for fact in facts if fact.id.startswith(incomplete)]


def _one_line(title: str) -> str:
    return "".join(character if character.isprintable() else " " for character in title)
