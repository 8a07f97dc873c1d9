"""Copies of what was removed or replaced at a person's word, readable by its owner only.

They lie in `removed/` of the owner's state directory. Of a text that holds a secret there is none.
"""

from __future__ import annotations

from pathlib import Path

from agent_bridge import files
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.ledger import digest


def directory(state: Path) -> Path:
    """Where the copies lie."""
    return state / "removed"


def keep_file(state: Path, fact: Fact, data: bytes) -> Path:
    """Keep the bytes of a fact's file, under a name that tells the fact's path; the copy."""
    copy = directory(state) / f"{digest(data)[:8]}-{fact.path.replace('/', '-')}"
    files.write_own(copy, data)
    return copy


def keep_candidate(state: Path, name: str, file: Path) -> Path:
    """Keep the file of the candidate called `name`; the copy."""
    copy = directory(state) / f"candidate-{name}.md"
    files.write_own(copy, file.read_bytes())
    return copy
