"""What has been decided about texts that were found in harnesses, so that they aren't offered again.

One JSON file in the state directory, from the SHA-256 of a normalised text to its verdict; no text of anybody
stands in it. Who writes holds the owner's lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from agent_bridge import files
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.times import iso


class Verdict(StrEnum):
    """What became of a text."""

    ADDED = "added"
    """A fact was made of it, by an import or by a person in the review."""
    MERGED = "merged"
    """A person brought it into another fact."""
    REJECTED = "rejected"
    """A person doesn't want it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, the fact it made or went into ("": none), and when (ISO UTC)."""

    verdict: Verdict
    fact_id: str = ""
    at: str = ""


def judged_file(state: Path) -> Path:
    """Where the verdicts of a project or of the user are kept."""
    return state / "judged.json"


def load(state: Path) -> Mapping[str, Judged]:
    """Verdicts by `similarity.text_hash`. Of a damaged file none count: at worst a text is offered anew."""
    file = judged_file(state)
    try:
        seen = file.stat()
    except FileNotFoundError:
        return {}
    return _read(file, (seen.st_ino, seen.st_mtime_ns, seen.st_size))


def record(state: Path, texts: Iterable[str], verdict: Verdict, *, now: datetime, fact_id: str = "") -> None:
    """Remember a verdict on each of `texts`; the latest counts."""
    record_all(state, {text: Judged(verdict, fact_id, iso(now)) for text in texts})


def record_all(state: Path, verdicts: Mapping[str, Judged]) -> None:
    """Remember verdicts by their texts, all in one writing; the latest counts."""
    new = {key: one for text, one in verdicts.items() if (key := text_hash(text))}
    known = load(state)
    if all(key in known and known[key].verdict is one.verdict for key, one in new.items()):
        return
    rows = {
        key: {"verdict": one.verdict.value, "fact": one.fact_id, "at": one.at}
        for key, one in sorted({**known, **new}.items())
    }
    files.write_own(judged_file(state), json.dumps({"version": 1, "texts": rows}, indent=1).encode())


def is_rejected(state: Path, text: str) -> bool:
    """Whether a person has rejected this very text."""
    found = load(state).get(text_hash(text))
    return found is not None and found.verdict is Verdict.REJECTED


@lru_cache(maxsize=4)  # asked for each text that is found; every writing makes a new file
def _read(file: Path, _stamp: tuple[int, int, int]) -> Mapping[str, Judged]:
    try:
        texts = json.loads(file.read_bytes())["texts"]
        return {key: _judged(value) for key, value in texts.items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _judged(value: Mapping[str, str]) -> Judged:
    return Judged(Verdict(value["verdict"]), str(value["fact"]), str(value["at"]))
