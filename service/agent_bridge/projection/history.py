"""Where a fact came from and what became of it: its own words, Git, our state. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import MAX_BYTES, Fact, FactProblem
from agent_bridge.memory.privacy import Judgements, PrivacyRecord
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.store import Store
from agent_bridge.memory.times import iso
from agent_bridge.projection import judged, keepsakes, removed, review
from agent_bridge.projection.ledger import Ledger, digest
from agent_bridge.projects import Project

COMMITS = 20
"""The last commits that are told."""


@dataclass(frozen=True, slots=True)
class Copy:
    """An earlier text of a fact that is kept: where, since when (ISO UTC), and why."""

    path: Path
    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Event:
    """What was decided about the fact's text, when (ISO UTC, "" unknown)."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """A fact's history.

    `taken_from` is the file that it was taken over from ("": none), `privacy` says in words who may see it
    and why, `tracked` whether Git holds its file now. `commits` are the last `COMMITS`, newest first;
    `copies` earlier texts that are kept; `waiting` ids of candidates that are like it.
    """

    fact: Fact
    file: Path
    taken_from: str
    privacy: str
    tracked: bool
    commits: tuple[git.Commit, ...]
    events: tuple[Event, ...]
    copies: tuple[Copy, ...]
    waiting: tuple[str, ...]


def tell(store: Store, fact: Fact, project: Project | None) -> Story:
    """A fact's story; `project` is that of the store, None for one that isn't set up and for the user's."""
    file = store.root / fact.path
    tracked, commits = _in_git(file)
    return Story(
        fact=fact,
        file=file,
        taken_from=_said_origin(file) or _adopted_from(store.state, fact),
        privacy=_privacy(fact, PrivacyRecord(store.state).current()),
        tracked=tracked,
        commits=commits,
        events=tuple(_events(store.state, fact)),
        copies=tuple(_copies(store, fact, project)),
        waiting=tuple(one.id for one in review.load_candidates(store.state) if one.similar == fact.id),
    )


def removed_copies(state: Path, key: str) -> list[Copy]:
    """Copies of removed facts whose path or id is, or begins with, `key`."""
    wanted = key.removesuffix(".md").replace("/", "-")
    found = []
    for path in sorted(removed.directory(state).glob("*.md")):
        name = path.stem.partition("-")[2]
        if wanted and any(one.startswith(wanted) for one in (name, name.removeprefix("entries-"))):
            found.append(_copy(path, "the fact was removed"))
    return found


def _in_git(file: Path) -> tuple[bool, tuple[git.Commit, ...]]:
    checkout = git.find_checkout(file.parent)
    if checkout is None or not file.is_relative_to(checkout.root):
        return False, ()
    if not git.tracked(checkout, [file]):
        return False, ()
    return True, git.commits_of(checkout, file.relative_to(checkout.root).as_posix(), limit=COMMITS)


def _said_origin(file: Path) -> str:
    """What the fact's own `origin` key says."""
    try:
        text = files.read_image(file, limit=MAX_BYTES).data.decode("utf-8", "replace")
        parts = frontmatter.split(text)
        return frontmatter.one_line(
            frontmatter.lookup(frontmatter.read_mapping(text[parts.start : parts.end]), "origin")
        )
    except (AgentBridgeError, FactProblem):
        return ""


def _adopted_from(state: Path, fact: Fact) -> str:
    """The file of a harness's directory that became this fact, as the ledger has it."""
    try:
        entries = Ledger(state).entries()
    except AgentBridgeError:  # an unreadable ledger is told by every pass
        return ""
    taken = (
        str(Path(entry.path) / name)
        for entry in entries
        for name, path, _ in entry.taken
        if path == fact.path
    )
    return next(taken, "")


def _privacy(fact: Fact, record: Judgements) -> str:
    if fact.secrets:
        return f"held back from everybody: it seems to hold a secret ({', '.join(fact.secrets)})"
    if fact.private:
        why = "type `user`" if fact.type == "user" else "`private`"
        return f"private: its file says so ({why})"
    if record.all_private:
        return "private: the record of private facts can't be read"
    held = [
        what
        for what, is_held in (
            ("its path", fact.path in record.paths),
            ("its id", fact.id in record.ids),
            ("its text", fact.text_hash in record.texts),
        )
        if is_held
    ]
    if held:
        return f"private: {' and '.join(held)} was judged private before; `agent-bridge share` lifts that"
    return "shared: it may travel with Git and stand in files that Git tracks"


def _events(state: Path, fact: Fact) -> Iterator[Event]:
    words = {"added": "taken over, or accepted in a review", "merged": "a text was merged into it"}
    for key, one in sorted(judged.load(state).items(), key=lambda item: item[1].at):
        mine = key == text_hash(fact.body)
        if one.fact_id == fact.id or mine:
            text = words.get(one.verdict.value, f"its text was {one.verdict.value}")
            yield Event(one.at, text)


def _copies(store: Store, fact: Fact, project: Project | None) -> Iterator[Copy]:
    yield from removed_copies(store.state, fact.path)
    if project is not None:
        kept = keepsakes.place_of(project) / fact.path
        if kept.is_file() and digest(kept.read_bytes()) != fact.digest:
            yield _copy(kept, "the last pass kept it, as Git doesn't hold the file")
    for one in review.load_candidates(store.state):
        if one.origin == str(store.root / fact.path):
            yield _copy(review.candidate_file(store.state, one.id), one.why)


def _copy(path: Path, why: str) -> Copy:
    return Copy(path, iso(datetime.fromtimestamp(path.stat().st_mtime, UTC)), why)
