"""What the hooks of a project tell, ready in its state directory: one file for each harness.

The command that a harness runs (`cli.hook`) has no time to read a store; it prints what lies here. Private
facts are part of it, as the files are the user's own; those withheld for a secret are not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from agent_bridge import files
from agent_bridge.harnesses.base import HookRoom
from agent_bridge.harnesses.block_body import content_of
from agent_bridge.harnesses.block_render import Block, fact_item, render_block
from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.hooked import Hooked
from agent_bridge.projection.plan import Wanted, item_texts

DIRECTORY = "hook"
"""Below the project's state directory; `cli.hook` knows it by this name."""

_LEAST = 512  # bytes; below this a block can't get smaller


def keep(
    state: Path, all_hooked: Iterable[Hooked], wanted: Wanted, budget: int
) -> dict[str, tuple[str, ...]]:
    """Write what each hook tells, where it has changed; what its room left out, by the hook in words.

    `budget` is the product's own limit in bytes. Raises AgentBridgeError.
    """
    texts: dict[Path, str] = {}
    left_out: dict[str, tuple[str, ...]] = {}
    for one in all_hooked:
        text, left = compose(wanted, one.name, one.room, budget)
        texts[place(state, one.name)] = text
        if left:
            left_out[f"{one.title}'s hook"] = left
    if not texts:
        remove(state)
    for old in set(present(state)) - set(texts):
        old.unlink(missing_ok=True)
    for path, text in texts.items():
        data = text.encode()
        if not path.is_file() or path.read_bytes() != data:
            files.write_own(path, data)
    return left_out


def compose(wanted: Wanted, name: str, room: HookRoom, budget: int) -> tuple[str, tuple[str, ...]]:
    """What the hook of a harness tells ("": nothing), and the ids and documents that it has no room for."""
    heard = wanted.elsewhere.get(name, frozenset())
    facts = [fact for fact in wanted.facts if heard.isdisjoint(item_texts(fact_item(fact)))]
    if not facts and not wanted.documents:
        return "", ()
    block = _fitted(wanted.documents, facts, room, budget)
    return content_of(block.body) + "\n", block.documents_left_out + block.left_out


def place(state: Path, name: str) -> Path:
    """Where the text for a harness lies."""
    return state / DIRECTORY / f"{name}.md"


def present(state: Path) -> tuple[Path, ...]:
    """The texts that there are."""
    return tuple(sorted((state / DIRECTORY).glob("*.md")))


def remove(state: Path) -> None:
    """Take all of them away."""
    shutil.rmtree(state / DIRECTORY, ignore_errors=True)


def _fitted(documents: tuple[Document, ...], facts: list[Fact], room: HookRoom, budget: int) -> Block:
    """A block that the hook has room for. Rendering counts bytes, so for UTF-16 the limit is approached."""
    limit = min(budget, room.utf8)
    while True:
        block = render_block(documents, facts, budget=limit)
        text = content_of(block.body) + "\n"
        if room.holds(text) or limit < _LEAST:
            return block
        units = len(text.encode("utf-16-le")) // 2
        limit = min(limit * room.utf16 // max(units, 1), limit - 64, len(text.encode()))
