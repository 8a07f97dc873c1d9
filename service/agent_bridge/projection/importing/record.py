"""What has been imported into a store: by the text's hash, in the store's state directory.

So a second import of the same texts adds nothing, also where a fact was edited, deleted, or rejected in the
review since: that was somebody's decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import files

_SCHEMA = 1


def record_file(state: Path) -> Path:
    """Where the record is."""
    return state / "imports.json"


def load(state: Path) -> dict[str, str]:
    """Hash of a text -> the id of the fact that it became, "" for one that went to the review.

    A record that can't be read counts as empty: at worst a text is offered once more.
    """
    try:
        document = json.loads(record_file(state).read_bytes())
        if document["schema"] != _SCHEMA:
            return {}
        return {key: value for key, value in document["texts"].items() if isinstance(value, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def save(state: Path, texts: Mapping[str, str]) -> None:
    """Replace the record."""
    document = {"schema": _SCHEMA, "texts": dict(sorted(texts.items()))}
    files.write_own(record_file(state), json.dumps(document, indent=0).encode() + b"\n")
