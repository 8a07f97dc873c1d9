"""What the shell offers after Tab: ids of facts and of texts that wait for review."""

from __future__ import annotations

from agent_bridge.cli.where import global_place, project_place, readable
from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory.secrets import masked


def complete_fact(incomplete: str) -> list[tuple[str, str]]:
    """(id, title) of each fact whose id begins with what was typed; nothing where the store can't be read."""
    try:
        facts = [fact for place in readable(None, None) for fact in place.store.scan().facts]
    except (AgentBridgeError, OSError):
        return []
    return [(fact.id, _one_line(fact.title)) for fact in facts if fact.id.startswith(incomplete)]


def complete_candidate(incomplete: str) -> list[tuple[str, str]]:
    """(id, first words) of each text that waits for review and whose id begins with what was typed."""
    from agent_bridge.projection.review import load_candidates  # late: facts are completed more often

    try:
        states = (global_place().store.state, project_place(None).store.state)
        found = [one for state in states for one in load_candidates(state)]
    except (AgentBridgeError, OSError):
        return []
    return [(one.id, _one_line(masked(one.text)[:60])) for one in found if one.id.startswith(incomplete)]


def _one_line(title: str) -> str:
    return "".join(character if character.isprintable() else " " for character in title)
