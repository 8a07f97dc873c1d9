"""What people wrote for Codex in a checkout, and what Codex remembers of it by itself."""

from __future__ import annotations

from agent_bridge.harnesses import agents_md, codex_memories
from agent_bridge.harnesses.base import NativeItem, Site
from agent_bridge.harnesses.instruction_notes import items_in


def hand_written(site: Site) -> list[NativeItem]:
    """The texts of each file that Codex may read in the root, then its memories of this checkout.

    Also of a file that another one hides: whoever wrote it wanted it to be known.
    """
    found = [item for name in agents_md.root_names(site) for item in items_in(site, site.file(name))]
    for item in codex_memories.read(site.env):
        if item.directory is not None and item.directory.is_relative_to(site.checkout):
            found.append(item)
    return found
