"""Ids and file names of facts. Pure.

`YYYYMMDD-NNNN-slug-hhhh`: UTC day, number of the day, words, four digits of the text's hash (so that two Git
branches that number alike don't clash).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath

from agent_bridge.memory.documents import DOCUMENTS
from agent_bridge.memory.similarity import text_hash

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff<>\[\]`]")
"""What a name in the store can't have: it couldn't be shown, or would break an index line."""

_ID_HEAD = re.compile(r"(\d{8})-(\d{4,9})-")


def fact_id_for(text: str, number: int, now: datetime, *, is_secret: bool = False) -> str:
    """The id of a new fact; of a text that holds a credential no word is in it."""
    slug = slug_for("" if is_secret else text)
    return f"{day_of(now)}-{number:04d}-{slug}-{text_hash(text)[:4] or '0000'}"


_FOLDED = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)


def slug_for(text: str, length: int = 48) -> str:
    """Lower-case ASCII words joined by dashes, accents folded; `memory` where nothing is left."""
    folded = unicodedata.normalize("NFKD", text[:400].casefold().translate(_FOLDED))
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    return re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:length].strip("-") or "memory"


def next_number(taken: Iterable[str], now: datetime) -> int:
    """One more than the highest number of the day among these ids and file names."""
    day = day_of(now)
    numbered = (number_of(text) for text in taken)
    return max((one[1] for one in numbered if one and one[0] == day), default=0) + 1


def day_of(now: datetime) -> str:
    """The day as ids have it."""
    return f"{now.astimezone(UTC):%Y%m%d}"


def number_of(text: str) -> tuple[str, int] | None:
    """The day and the number that an id or a file name begins with."""
    head = _ID_HEAD.match(text)
    return None if head is None else (head[1], int(head[2]))


def safe_stem(name: str, body: str) -> str:
    """A path below the store without its ending: no hidden parts, no way out, never a derived file's name."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    clean = [_UNFIT.sub("_", part).lstrip(".") for part in parts[-4:]]
    stem = "/".join(part for part in clean if part).removesuffix(".md")
    last = stem.rsplit("/", 1)[-1]
    if f"{stem}.md" in DOCUMENTS or last in ("", "MEMORY"):
        return f"{last.lower() or 'memory'}-{slug_for(body, 24)}"
    return stem
