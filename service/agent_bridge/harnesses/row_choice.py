"""By which file a harness of the table gets the facts of a project, and what a person should know. Pure.

AGENTS.md wherever the harness reads it and it may carry a block: one block serves all its readers. Where the
harness takes the first of several files, the block goes into the one that it takes; a file that is made must
hide none (law 2). Its own file is the way out, and what is asked for by name where the sources disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import agents_md, config_edit, managed_block
from agent_bridge.harnesses.base import (
    LEAST_BUDGET,
    NO_LIMIT,
    Carrier,
    FileKind,
    Ground,
    InstructionFile,
    Notice,
    Scope,
    Site,
)
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.row import AGENTS, OwnFile, Row, is_below
from agent_bridge.harnesses.row_places import below_home

_LINE_ENDS = 8
"""Bytes kept free for the line ends that a block brings along."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The carriers, and what a person should know about them."""

    carriers: tuple[Carrier, ...] = ()
    notices: tuple[Notice, ...] = ()


def choose(row: Row, site: Site) -> Choice:
    """The carriers of a project's facts."""
    if row.setting is not None and not is_set(row, site):
        return _none(row, site, "row-setting", row.setting.advice, level="info")
    names = read_names(row, site)
    if AGENTS not in names and row.setting is None:
        return _in_own_file(row, site, "it isn't read")
    chosen = _first_of(row, site, names) if row.first_only else _in_agents_md(row, site)
    asked = site.project is not None and row.name in site.project.requested
    if asked and not row.certain and row.own is not None and chosen.carriers:
        further = _in_own_file(row, site, "it may not be read")
        chosen = Choice((*chosen.carriers, *further.carriers), (*chosen.notices, *further.notices))
    return chosen


def choose_global(row: Row, site: Site) -> tuple[Carrier, ...]:
    """The carrier of the user's facts: only below a home of the harness that is there."""
    own = row.user_file
    if own is None:
        return ()
    path = below_home(own.path, site.env)
    homes = (below_home(home, site.env) for home in row.homes if own.path.startswith(f"{home}/"))
    file = site.file(path)
    if not any(site.file(home).is_directory for home in homes):
        return ()
    if file.kind is not FileKind.ABSENT and not file.readable:
        return ()
    room = _room(own, file)
    return (_carrier(row, own, file, Scope.GLOBAL, room),) if room >= LEAST_BUDGET else ()


def read_names(row: Row, site: Site) -> tuple[str, ...]:
    """The names that it looks for in the root; a setting may replace them."""
    if row.names_setting is None:
        return row.reads
    files, key = row.names_setting
    for name in files:
        data = site.settings(place(name, site))
        found = _names_in(data, key) if data is not None else None
        if found is not None:
            return found
    return row.reads


def is_set(row: Row, site: Site) -> bool:
    """Whether one of the files in which the user can name AGENTS.md does so, outside of comments."""
    if row.setting is None:
        return True
    for name in row.setting.files:
        data = site.settings(place(name, site)) or b""
        lines = (line.partition(b"#")[0] for line in data.splitlines())
        if any(AGENTS.encode() in line for line in lines):
            return True
    return False


def place(name: str, ground: Ground) -> Path:
    """Where a path of a row lies: below the home with `~/`, a file of the user's, else below the checkout."""
    return below_home(name[2:], ground.env) if name.startswith("~/") else ground.checkout / name


def holds_facts(file: InstructionFile) -> bool:
    """Whether a file holds a block of ours with facts in it; one that imports another file has none."""
    try:
        body = managed_block.block_text(file.data)
    except AgentBridgeError:
        return False
    return body is not None and any(item.title or item.fact_id for item in managed_block.items(body))


def _names_in(data: bytes, key: tuple[str, ...]) -> tuple[str, ...] | None:
    try:
        value = config_edit.json_get(data, key)
    except AgentBridgeError:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return None
    return tuple(name for name in names if is_below(name))


def _in_agents_md(row: Row, site: Site) -> Choice:
    shared = agents_md.shared_carrier(site, row.name)
    if not shared:
        return _in_own_file(row, site, agents_md.why_not(site))
    file = site.file(AGENTS)
    if row.remote and not file.tracked:
        text = f"{row.title} works on a clone: it gets the facts once Git tracks {AGENTS} (`git add -f`)."
        return _none(row, site, "row-remote", text, level="info")
    room = row.limit - agents_md.user_size(file.data) - _LINE_ENDS
    carrier = replace(shared[0], why=f"{row.title} reads it")
    if room >= LEAST_BUDGET:
        return Choice((replace(carrier, budget=min(carrier.budget, room)),))
    text = (
        f"{row.title} may take only {row.limit} characters of {AGENTS}, and the project's own text fills "
        "them: it may not see the facts."
    )
    return Choice((carrier,), (Notice("warning", "row-cut", text, file.path),))


def _first_of(row: Row, site: Site, names: tuple[str, ...]) -> Choice:
    existing = [name for name in names if site.file(name).readable]
    first = existing[0] if existing else AGENTS
    after = existing and names.index(first) > names.index(AGENTS)
    if names.index(first) < names.index(AGENTS) or (after and not _is_coming(site)):
        return _in_first(row, site, first)
    chosen = _in_agents_md(row, site)
    hidden = [name for name in existing if names.index(name) > names.index(AGENTS)]
    if after and chosen.carriers:
        text = (
            f"{AGENTS}, which is made for other programs, hides {', '.join(hidden)} from {row.title}, which "
            f"reads the first of its files alone. What it needs from there belongs into {AGENTS}."
        )
        notice = Notice("warning", "row-hides", text, site.checkout / hidden[0])
        chosen = Choice(chosen.carriers, (*chosen.notices, notice))
    return Choice((*chosen.carriers, *_perhaps(row, site, chosen.carriers)), chosen.notices)


def _is_coming(site: Site) -> bool:
    """Whether AGENTS.md is made for others, so that it stands there with the next pass."""
    path = site.checkout / AGENTS
    others = (ClaudeCode(), Codex())
    return any(carrier.path == path for one in others for carrier in one.carriers(site, Scope.PROJECT))


def _in_first(row: Row, site: Site, name: str) -> Choice:
    file = site.file(name)
    why = agents_md.why_closed(site, file)
    if why:
        text = f"{row.title} gets no facts: it reads {name} alone, which can't hold a block, as {why}."
        return _none(row, site, "row-unserved", text)
    carrier = _carrier(row, OwnFile(name, kind="block", limit=row.limit), file, Scope.PROJECT, NO_LIMIT)
    return Choice((replace(carrier, why=f"the first file that {row.title} reads"),))


def _perhaps(row: Row, site: Site, chosen: tuple[Carrier, ...]) -> tuple[Carrier, ...]:
    """Files that may be read in the place of the chosen one: one of them is, so each gets the block."""
    taken = {carrier.path for carrier in chosen}
    files = [site.file(name) for name in row.perhaps]
    return tuple(
        _carrier(row, OwnFile(file.name, kind="block"), file, Scope.PROJECT, NO_LIMIT)
        for file in files
        if file.readable and file.path not in taken and not agents_md.why_closed(site, file)
    )


def _in_own_file(row: Row, site: Site, why: str) -> Choice:
    if row.own is None:
        text = f"{row.title} gets no facts: {AGENTS} can't carry them, as {why}, and it has no other way."
        return _none(row, site, "row-unserved", text)
    file = site.file(row.own.path)
    closed = agents_md.why_closed(site, file) or _why_not_made(row.own, site)
    if closed:
        text = f"{row.title} gets no facts: {row.own.path} can't be used, as {closed}."
        return _none(row, site, "row-unserved", text)
    room = _room(row.own, file)
    if room < LEAST_BUDGET:
        text = f"{row.title} gets no facts: the text in {row.own.path} leaves no room for them."
        return _none(row, site, "row-unserved", text)
    return Choice((_carrier(row, row.own, file, Scope.PROJECT, room),))


def _why_not_made(own: OwnFile, site: Site) -> str:
    """Why a file that isn't there may not be made, "" if it may or is there."""
    folder = site.file(str(Path(own.path).parent))
    if site.file(own.path).readable or folder.is_directory:
        return ""
    if own.path != Path(own.path).name and folder.kind is not FileKind.ABSENT:
        return f"{folder.name} is no directory"
    hidden = [name for name in own.hides if site.file(name).kind is not FileKind.ABSENT]
    return f"it would hide {', '.join(hidden)}" if hidden else ""


def _room(own: OwnFile, file: InstructionFile) -> int:
    """The most bytes for our block; a character has one byte or more, so a limit of characters is kept."""
    taken = len(own.header.encode()) if own.kind == "own" else agents_md.user_size(file.data)
    return own.limit - taken - _LINE_ENDS


def _carrier(row: Row, own: OwnFile, file: InstructionFile, scope: Scope, room: int) -> Carrier:
    return Carrier(
        path=file.path,
        kind=own.kind,
        scope=scope,
        readers=(row.name,),
        create=file.kind is FileKind.ABSENT,
        local=scope is Scope.PROJECT,
        budget=min(room, _room(own, file)),
        header=own.header,
        why=f"{row.title} reads it" + (" in every project" if scope is Scope.GLOBAL else ""),
    )


def _none(row: Row, site: Site, code: str, text: str, *, level: str = "warning") -> Choice:
    path = site.checkout / (row.own.path if row.own else AGENTS)
    return Choice((), (Notice("info" if level == "info" else "warning", code, text, path),))
