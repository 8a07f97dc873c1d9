"""Answers that have a size: as many parts as fit, each as text and as data. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_bridge.mcp.tool import ANSWER_BYTES

HEAD_BYTES = 6_000
"""What of an answer is left for what stands around its parts: ids may have 800 bytes each."""


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of an answer."""

    text: str
    data: Mapping[str, Any]

    def weight(self) -> int:
        """UTF-8 bytes of it, in whichever of the two forms has more."""
        return max(bytes_of(self.text) + 1, bytes_of(json.dumps(self.data, ensure_ascii=False)) + 2)


def within(parts: Iterable[Part], most: int = ANSWER_BYTES - HEAD_BYTES) -> list[Part]:
    """The first parts that have room together."""
    kept: list[Part] = []
    for part in parts:
        most -= part.weight()
        if most < 0:
            break
        kept.append(part)
    return kept


def bytes_of(text: str) -> int:
    """Its UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def quoted(text: str) -> str:
    """A value as it stands in a call: in quotes, on one line."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def first_bytes(text: str, most: int) -> str:
    """The beginning of a text that has so many UTF-8 bytes at most, also as JSON."""
    cut = text[:most]
    while (size := max(bytes_of(cut), bytes_of(json.dumps(cut, ensure_ascii=False)) - 2)) > most:
        cut = cut[: max(0, min(len(cut) - 1, len(cut) * most // size))]
    return cut
