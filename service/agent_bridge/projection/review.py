"""Candidates: texts found in a harness that aren't in the store yet, waiting for a person.

One markdown file each below the project's state directory, named after the text's hash, so that the same
text found again is the same candidate. A text that a person has rejected is kept no more (`judged`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import NotFoundError, UsageError
from agent_bridge.memory.similarity import normalise
from agent_bridge.projection import judged

_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text and where it was found.

    `origin` is a file's path or a harness's name, `found_at` ISO UTC, `why` a short reason in words,
    `similar` the id of a fact that it resembles ("": none) with `score` (0 to 1). `source` is the harness it
    comes from ("": unknown), `created_at` when it was written there (ISO UTC or ""), `title` what it stands
    below there. `private`: its file was one person's own.
    """

    id: str
    text: str
    origin: str
    found_at: str
    why: str
    similar: str = ""
    score: float = 0.0
    source: str = ""
    created_at: str = ""
    title: str = ""
    private: bool = False


def candidates_directory(state: Path) -> Path:
    """Where a project's candidates lie below its state directory."""
    return state / "candidates"


def candidate_file(state: Path, name: str) -> Path:
    """The file of the candidate called `name`."""
    return candidates_directory(state) / f"{name}.md"


def candidate_id(text: str) -> str:
    """The name of a candidate: 16 hex digits of its normalised text's SHA-256."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def keep_candidate(
    state: Path,
    text: str,
    *,
    origin: str,
    why: str,
    now: datetime,
    similar: str = "",
    score: float = 0.0,
    source: str = "",
    created_at: str = "",
    title: str = "",
    private: bool = False,
) -> bool:
    """Keep one text for review; False when it is kept already, was rejected before, or holds nothing."""
    if not text.strip():
        return False
    place = candidate_file(state, candidate_id(text))
    if place.exists() or judged.is_rejected(state, text):
        return False
    head = {
        "origin": origin,
        "found_at": now.astimezone(UTC).isoformat(timespec="seconds"),
        "why": why,
        "similar": similar,
        "score": round(score, 3),
        "source": source,
        "created_at": created_at,
        "title": title,
        "private": private,
    }
    lines = [
        _FENCE,
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()),
        _FENCE,
    ]
    content = "\n".join(lines) + "\n\n" + text.strip("\n") + "\n"
    files.write_own(place, content.encode("utf-8", "replace"))
    return True


def drop_candidate(state: Path, name: str) -> None:
    """Take a candidate away; nothing happens where it is gone already."""
    candidate_file(state, name).unlink(missing_ok=True)


def load_candidates(state: Path) -> list[Candidate]:
    """All candidates of a project, oldest first; files that can't be read as one are shown as plain text."""
    found = [_parse(path) for path in _files(state)]
    return sorted(found, key=lambda candidate: (candidate.found_at, candidate.id))


def count_candidates(state: Path) -> int:
    """How many wait."""
    return len(_files(state))


def find_candidate(candidates: Iterable[Candidate], key: str) -> Candidate:
    """The candidate with this id, or the only one whose id begins so. Raises NotFoundError, UsageError."""
    wanted = key.removesuffix(".md")
    starting = [one for one in candidates if wanted and one.id.startswith(wanted)]
    exact = [one for one in starting if one.id == wanted]
    if len(exact) == 1 or len(starting) == 1:
        return (exact or starting)[0]
    if starting:
        shown = ", ".join(one.id for one in starting[:5])
        raise UsageError(f"Several texts begin with {key}.", detail=shown, remedy="Write more of the id.")
    raise NotFoundError(f"No text {key} waits for review.", remedy="`agent-bridge review` shows the ids.")


def _files(state: Path) -> list[Path]:
    return sorted(path for path in candidates_directory(state).glob("*.md") if path.is_file())


def _parse(path: Path) -> Candidate:
    text = path.read_text(encoding="utf-8", errors="replace")
    head, body = _split(text)
    texts = {key: value for key, value in head.items() if isinstance(value, str)}
    score = head.get("score")
    return Candidate(
        id=path.stem,
        text=body.strip("\n"),
        origin=texts.get("origin", ""),
        found_at=texts.get("found_at", ""),
        why=texts.get("why", ""),
        similar=texts.get("similar", ""),
        score=score if isinstance(score, float) else 0.0,
        source=texts.get("source", ""),
        created_at=texts.get("created_at", ""),
        title=texts.get("title", ""),
        private=head.get("private") is True,
    )


def _split(text: str) -> tuple[dict[str, object], str]:
    lines = text.split("\n")
    if lines[0] != _FENCE or _FENCE not in lines[1:]:
        return {}, text
    end = lines.index(_FENCE, 1)
    head: dict[str, object] = {}
    for line in lines[1:end]:
        key, _, value = line.partition(": ")
        try:
            head[key] = json.loads(value)
        except ValueError:
            head[key] = value
    return head, "\n".join(lines[end + 1 :])
