"""Edits of ours that a ledger has on record, as edits again: to be taken back or kept in line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from agent_bridge.harnesses.base import KeyEdit
from agent_bridge.projection.ledger import KeyRecord, Kind, Ledger

Form = Literal["json", "toml"]
_FORMS: dict[str, Form] = {"json": "json", "toml": "toml"}


def edits_on_record(ledger: Ledger, is_meant: Callable[[KeyRecord], bool]) -> list[KeyEdit]:
    """The keys and elements of the records that are meant, with the values that we gave them."""
    return [
        KeyEdit(
            Path(entry.path),
            _FORMS[entry.format],
            record.key,
            json.loads(record.ours),
            "",
            element=record.element,
        )
        for entry in ledger.entries()
        if entry.kind is Kind.KEYS
        for record in entry.keys
        if is_meant(record)
    ]
