"""What a harness reads in one place: what of it is shown twice, which facts it lacks and why, what to do.

Pure: the files that the harness says it reads and the facts that there are go in, an explanation comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Notice, Read, Scope
from agent_bridge.harnesses.block_body import items
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.harnesses.markdown import NOTICE_PREFIX, whole_texts
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.visible import shortened

SHORTEST_DOUBLE = 20
"""Characters: shorter paragraphs and list items ("Use tabs.") stand in many files by chance."""


class Why(StrEnum):
    """Why a fact's text isn't shown."""

    WITHHELD = "withheld"
    PRIVATE = "private"
    NOT_SET_UP = "not-set-up"
    NO_CARRIER = "no-carrier"
    HIDDEN = "hidden"
    """Its file isn't read here."""
    CUT = "cut"
    BUDGET = "budget"
    BEHIND = "behind"
    """Its file will have it after the next pass."""


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that may be shown. `scope` is that of its store; `is_private`: it stays out of tracked files."""

    fact: Fact
    scope: Scope
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    """A file that is to hold the facts of a scope for this harness.

    `path` is its name, `real` where that ends, `data` its bytes, `budget` the most bytes that the block may
    have there. `takes_private`: Git neither holds it nor would add it, so that private facts may be in it.
    """

    path: Path
    real: Path
    scope: Scope
    data: bytes
    budget: int
    takes_private: bool = False


@dataclass(frozen=True, slots=True)
class Double:
    """A text that two or more files show: a fact's (its id), or a paragraph of people's ("")."""

    fact: str
    text: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """Facts whose texts aren't shown, for one reason. `titled`: those whose titles stand in an index."""

    why: Why
    text: str
    scope: Scope
    facts: tuple[str, ...]
    titled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known besides the files.

    `is_below`: the session starts below the checkout's root. `notices` are the harness's own; `reals` says
    where a file that is read really lies.
    """

    is_set_up: bool = True
    is_below: bool = False
    notices: tuple[Notice, ...] = ()
    reals: Mapping[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One harness, started in one directory."""

    name: str
    title: str
    reads: tuple[Read, ...]
    shown: Mapping[Path, int] = field(default_factory=dict)
    """How many facts each file shows."""
    doubles: tuple[Double, ...] = ()
    missing: tuple[Missing, ...] = ()
    notices: tuple[Notice, ...] = ()
    advice: tuple[str, ...] = ()


def explain(
    name: str,
    title: str,
    reads: Sequence[Read],
    facts: Iterable[Known],
    holders: Sequence[Holder],
    ground: Ground,
) -> Explanation:
    """Put an explanation together."""
    known = tuple(facts)
    texts = [_Text(read) for read in reads if not read.hidden]
    own = {id(one): whole_texts(one.fact.body) for one in known}
    where = {
        id(one): tuple(text.read.path for text in texts if text.shows(one.fact, own[id(one)]))
        for one in known
    }
    shown: dict[Path, int] = {}
    for path in (path for paths in where.values() for path in paths):
        shown[path] = shown.get(path, 0) + 1
    told = {one.fact.text_hash for one in known if where[id(one)]}
    absent = [one for one in known if not where[id(one)] and one.fact.text_hash not in told]
    doubles = tuple(_doubled_facts(known, where)) + tuple(_doubled_texts(texts, own.values()))
    missing = _grouped(absent, reads, holders, ground, texts)
    return Explanation(
        name=name,
        title=title,
        reads=tuple(reads),
        shown=shown,
        doubles=doubles,
        missing=missing,
        notices=ground.notices,
        advice=tuple(dict.fromkeys(_advice(title, reads, doubles, missing, ground))),
    )


class _Text:
    """What one file shows, taken apart."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.items = {item.fact_id: item.key for item in items(read.text) if item.fact_id is not None}
        self.paragraphs = whole_texts(read.text)

    def shows(self, fact: Fact, own: frozenset[str]) -> bool:
        """Whether a fact stands here: in our block, or its paragraphs (`own`) in words of the user's."""
        key = self.items.get(fact.id)
        if key is not None:
            # Only a cut can take a part of an item away.
            return not self.read.cut or key == fact_item(fact).key
        return bool(own) and own <= self.paragraphs and not _is_trifle(own)


def _is_trifle(texts: Iterable[str]) -> bool:
    return sum(map(len, texts)) < SHORTEST_DOUBLE


def _doubled_facts(known: Iterable[Known], where: Mapping[int, tuple[Path, ...]]) -> Iterable[Double]:
    for one in known:
        files = where[id(one)]
        if len(files) > 1:
            yield Double(one.fact.id, one.fact.title, files)


def _doubled_texts(texts: Sequence[_Text], facts: Iterable[frozenset[str]]) -> Iterable[Double]:
    of_facts = frozenset().union(*facts)
    files: dict[str, list[Path]] = {}
    for text in texts:
        for paragraph in sorted(text.paragraphs - of_facts):
            if len(paragraph) >= SHORTEST_DOUBLE and not paragraph.startswith(NOTICE_PREFIX):
                files.setdefault(paragraph, []).append(text.read.path)
    for paragraph, paths in files.items():
        if len(paths) > 1:
            yield Double("", paragraph, tuple(paths))


def _grouped(
    absent: Iterable[Known],
    reads: Sequence[Read],
    holders: Sequence[Holder],
    ground: Ground,
    texts: Sequence[_Text],
) -> tuple[Missing, ...]:
    indexes = "\n".join(text.read.text for text in texts)
    blocks = {id(holder): _Block(holder.data) for holder in holders}
    groups: dict[tuple[Scope, Why, str], list[Fact]] = {}
    for one in absent:
        mine = [(holder, blocks[id(holder)]) for holder in holders if holder.scope is one.scope]
        why, text = _reason(one, reads, mine, ground)
        groups.setdefault((one.scope, why, text), []).append(one.fact)
    return tuple(
        Missing(
            why,
            text,
            scope,
            tuple(fact.id for fact in found),
            tuple(fact.id for fact in found if f"({fact.path})" in indexes),
        )
        for (scope, why, text), found in groups.items()
    )


class _Block:
    """What the block of a file has."""

    def __init__(self, data: bytes) -> None:
        try:
            body = managed_block.block_text(data) or data.decode("utf-8", "replace")
        except AgentBridgeError:  # broken markers: told by the pass
            body = ""
        self.facts = frozenset(item.fact_id for item in items(body))
        self.leaves_out = any(line.startswith(NOTICE_PREFIX) for line in body.split("\n"))


def _reason(
    one: Known, reads: Sequence[Read], mine: Sequence[tuple[Holder, _Block]], ground: Ground
) -> tuple[Why, str]:
    """Why a fact's text is in none of the files that are read; `mine` are those of its scope."""
    if one.fact.secrets:
        return Why.WITHHELD, f"held back: the text seems to hold a secret ({', '.join(one.fact.secrets)})"
    if not ground.is_set_up:
        return Why.NOT_SET_UP, "this project isn't set up"
    if one.is_private and not any(holder.takes_private for holder, _ in mine):
        return Why.PRIVATE, "private: it may not stand in a file that Git tracks or would add"
    if not mine:
        told = [notice.text for notice in ground.notices if notice.level == "warning"]
        return Why.NO_CARRIER, told[0] if told else "no file of this agent can hold the memory here"
    reasons = [_why_not_in(one.fact, holder, block, reads, ground) for holder, block in mine]
    return min(reasons, key=lambda reason: reason[0] is Why.BEHIND)


def _why_not_in(
    fact: Fact, holder: Holder, block: _Block, reads: Sequence[Read], ground: Ground
) -> tuple[Why, str]:
    same = [read for read in reads if ground.reals.get(read.path, read.path) == holder.real]
    read = min(same, key=lambda one: bool(one.hidden), default=None)
    if read is not None and read.hidden:
        return Why.HIDDEN, f"{holder.path} isn't read here: {read.hidden}"
    if not holder.data:
        return Why.BEHIND, f"{holder.path} isn't there yet"
    if read is None:
        return Why.HIDDEN, f"{holder.path} isn't read in a session started here"
    has = fact.id in block.facts
    if has and read.cut:
        return Why.CUT, f"cut off in {holder.path}: {read.cut}"
    if block.leaves_out and not has:
        room = f"its block may have {holder.budget:,} bytes"
        return Why.BUDGET, f"left out of {holder.path} for lack of space: {room}"
    return Why.BEHIND, f"{holder.path} doesn't have it yet"


_ADVICE = {
    Why.NOT_SET_UP: "Set the project up: `agent-bridge init` (`agent-bridge plan` shows what it would do).",
    Why.BUDGET: "What has no room is found by `agent-bridge search`; `block_budget` in our config.toml, or a "
    "shorter text of your own beside the block, makes room.",
    Why.BEHIND: "Bring the files in line: `agent-bridge sync`, or start the service: `agent-bridge up`.",
    Why.WITHHELD: "Take the secret out of the text: `agent-bridge edit ID`.",
}


def _advice(
    title: str,
    reads: Sequence[Read],
    doubles: Sequence[Double],
    missing: Sequence[Missing],
    ground: Ground,
) -> Iterable[str]:
    if not ground.is_set_up:
        yield _ADVICE[Why.NOT_SET_UP]
    for read in reads:
        if read.cut:
            yield f"Shorten {read.path}, or raise the limit: {title} cuts {read.cut}."
    for group in missing:
        if group.why in _ADVICE:
            yield _ADVICE[group.why]
        elif group.why is Why.HIDDEN and ground.is_below:
            yield f"Start {title} in the project's root, where it reads more: {group.text}."
    for double in doubles:
        listed = " and ".join(map(str, double.files))
        what = f"The fact {double.fact}" if double.fact else f"“{shortened(double.text, 60)}”"
        yield f"{what} is read twice: take it out of one of {listed}."
