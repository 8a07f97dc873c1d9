"""A fact as it may be shown to those who read what programs print. Pure."""

from __future__ import annotations

from dataclasses import replace

from agent_bridge.memory.fact import Fact
from agent_bridge.memory.secrets import find_secrets, masked


def presentable(fact: Fact) -> Fact:
    """The fact as it may be printed: agents read what commands print, so no credential stands in it.

    Title and hook of such a fact are cut from its text, perhaps amid a key, so they are left out whole; tags
    are where one of them is a credential.
    """
    if not fact.secrets:
        return fact
    told = f"(holds a secret: {', '.join(fact.secrets)})"
    tags = () if find_secrets(", ".join(fact.tags)) else fact.tags
    return replace(fact, title=told, hook="", name="", description="", tags=tags, body=masked(fact.body))
