"""What is known of a store's files, kept between processes, so that a command needn't read 10,000 files.

One JSON file in the state directory, mode 0600 (it holds private facts too). It is a cache: whatever is
wrong with it, it is dropped and built again. Not kept: files that may have changed unseen, and those that
hold a secret, which would outlive its removal here.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory import secrets
from agent_bridge.memory.fact import Fact, order_key
from agent_bridge.memory.scan import Known

VERSION = 1
WORTHWHILE = 64
"""Files that must have been read anew before the cache is written: below that, reading them is cheaper."""

_FIELDS = tuple(field.name for field in fields(Fact))
_TUPLES = tuple(_FIELDS.index(name) for name in ("tags", "secrets"))
_HEADER = {"version": VERSION, "rules": secrets.RULES_VERSION, "fields": list(_FIELDS)}


def cache_path(state: Path) -> Path:
    """Where the cache of the store with this state directory lies."""
    return state / "cache" / "facts.json"


def load(path: Path, root: str) -> dict[str, Known]:
    """What was kept for the store at `root` (a real path); empty where nothing usable is there."""
    try:
        raw = json.loads(path.read_bytes())
        if raw["header"] != {**_HEADER, "root": root}:
            return {}
        return {str(row[0]): _known(row) for row in raw["files"]}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return {}


def save(path: Path, root: str, known: dict[str, Known]) -> None:
    """Keep what is known. Does nothing where the state directory doesn't exist: reading creates none."""
    if not path.parent.parent.is_dir():
        return
    rows = [
        [name, *one.signature, one.digest, [getattr(one.fact, field) for field in _FIELDS]]
        for name, one in known.items()
        if one.fact is not None and not one.racy and not one.fact.secrets
    ]
    data = json.dumps(
        {"header": {**_HEADER, "root": root}, "files": rows}, ensure_ascii=False, separators=(",", ":")
    )
    with contextlib.suppress(AgentBridgeError):  # a full or read-only disk must not keep anybody from reading
        files.write_own(path, data.encode("utf-8", "surrogatepass"), sync=False)


def _known(row: list[Any]) -> Known:
    _, mtime_ns, size, inode, ctime_ns, digest, values = row
    if len(values) != len(_FIELDS):
        raise ValueError("not a row of the cache")
    for at in _TUPLES:
        values[at] = tuple(values[at])
    signature = (mtime_ns, size, inode, ctime_ns)
    fact = Fact(*values)
    return Known(signature, fact=fact, digest=digest, order=order_key(fact))
