"""The harness that a row of the table describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from agent_bridge.harnesses import claude_carriers, row_choice, row_places
from agent_bridge.harnesses.base import (
    Carrier,
    Ground,
    Harness,
    InstructionFile,
    Mode,
    Notice,
    Read,
    Scope,
    Site,
)
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.observe import look
from agent_bridge.harnesses.row import AGENTS, Row
from agent_bridge.harnesses.table import ROWS

_RULE_FILES = tuple(
    dict.fromkeys((claude_carriers.RULES, *(row.own.path for row in ROWS if row.own is not None)))
)
"""Files of ours in folders of rules, which others than the harness they are for may read too."""


class RowHarness(Harness):
    """A harness that only needs a file; what it does follows from its row."""

    only_if_used = True

    def __init__(self, row: Row) -> None:
        self.row = row
        self.name = row.name
        self.title = row.title

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether one of its homes is there, or one of its programs on PATH.

        What lies in a project doesn't count: that is a colleague's word, or a stranger's.
        """
        return row_places.is_used(self.row, env)

    def projection_mode(self, scope: Scope) -> Mode:
        """Rendered; the user's facts only where it has a file for them."""
        return Mode.RENDER if scope is Scope.PROJECT or self.row.user_file is not None else Mode.NONE

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:  # noqa: ARG002
        """Settings that decide which files it reads."""
        names = [*(self.row.setting.files if self.row.setting else ())]
        names += self.row.names_setting[0] if self.row.names_setting else ()
        wanted = [name for name in names if ground.project is not None or name.startswith("~/")]
        return tuple(row_choice.place(name, ground) for name in wanted)

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """What it reads, what would be hidden, and where its own files lie."""
        own = self.row.user_file
        homes = [home for home in self.row.homes if own is not None and own.path.startswith(f"{home}/")]
        user = [row_places.below_home(name, ground.env) for name in (*homes, *([own.path] if own else []))]
        if ground.project is None:
            return tuple(user)
        site = Site.of_settings(ground, config)
        names = [*row_choice.read_names(self.row, site), AGENTS, *self.row.perhaps, *self._rule_files()]
        if self.row.own is not None:
            names += [self.row.own.path, str(PurePosixPath(self.row.own.path).parent), *self.row.own.hides]
        below = [ground.checkout / name for name in names if name != "."]
        return (*dict.fromkeys(below), *user)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """AGENTS.md, or the file that it reads in its place, or one of its own."""
        if scope is Scope.GLOBAL:
            return row_choice.choose_global(self.row, site)
        return () if site.project is None else row_choice.choose(self.row, site).carriers

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Why it gets nothing, where it doesn't; what hides what; what it shows twice."""
        if site.project is None:
            return ()
        chosen = row_choice.choose(self.row, site)
        return (*chosen.notices, *self._doubles(site, chosen.carriers))

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """The user's file, then those of the root and, where it walks, of the directories down to `start`."""
        found = list(self._user_reads(site))
        names = row_choice.read_names(self.row, site)
        if self.row.setting is not None and row_choice.is_set(self.row, site):
            names = (AGENTS,)
        for directory in _directories(site.checkout, start if self.row.walks else site.checkout):
            found += self._reads_in(site, directory, names)
        return (*found, *self._folder_reads(site))

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, the directories of the files that it may read, and that of the user's file."""
        own = self.row.user_file
        user = () if own is None else (row_places.below_home(own.path, site.env).parent,)
        if site.project is None:
            return user
        names = [*self.row.reads, *self.row.perhaps, *([self.row.own.path] if self.row.own else [])]
        below = (site.checkout, *(site.checkout / PurePosixPath(name).parent for name in names))
        return tuple(dict.fromkeys((*below, *user)))

    def _rule_files(self) -> list[str]:
        return [name for name in _RULE_FILES if str(PurePosixPath(name).parent) in self.row.folders]

    def _doubles(self, site: Site, chosen: tuple[Carrier, ...]) -> tuple[Notice, ...]:
        """That more than one of the files it reads carries the facts, or will with the next pass."""
        others = (ClaudeCode(), Codex())
        coming = {carrier.path for one in others for carrier in one.carriers(site, Scope.PROJECT)}
        coming |= {carrier.path for carrier in chosen}
        names = self._rule_files()
        # A rules file of ours that no harness in use needs goes with the next pass; a colleague's stays.
        going = {site.checkout / name for name in names if not site.file(name).tracked} - _own_files(site)
        if not self.row.first_only:
            names += row_choice.read_names(self.row, site)
        instead = {site.checkout / name for name in self.row.perhaps}
        shown = {site.checkout / name for name in names} | {carrier.path for carrier in chosen} - instead
        carrying: dict[object, InstructionFile] = {}
        for path in sorted(shown):
            file = site.file(path)
            if path in coming or (path not in going and row_choice.holds_facts(file)):
                carrying.setdefault(file.identity or str(file.real), file)
        if len(carrying) < 2:
            return ()
        listed = ", ".join(file.name for file in carrying.values())
        text = (
            f"{self.title} reads {listed}, and each of them carries the facts: it shows them more than once."
        )
        return (Notice("info", "row-double", text, site.checkout / next(iter(carrying.values())).name),)

    def _user_reads(self, site: Site) -> Iterator[Read]:
        own = self.row.user_file
        if own is None:
            return
        file = site.file(row_places.below_home(own.path, site.env))
        if file.readable:
            yield self._read(file, f"{self.title} reads it in every project")

    def _reads_in(self, site: Site, directory: Path, names: tuple[str, ...]) -> Iterator[Read]:
        first = ""
        for name in names:
            file = _file(site, directory / name)
            if not file.readable:
                continue
            hidden = f"{first} comes first, and {self.title} reads one of its files" if first else ""
            which = "the first of the files" if self.row.first_only else "one of the files"
            why = f"{which} that {self.title} reads"
            yield self._read(file, why, hidden)
            if self.row.first_only:
                first = first or name

    def _folder_reads(self, site: Site) -> Iterator[Read]:
        for name in self._rule_files():
            file = site.file(name)
            if file.readable:
                yield self._read(file, f"a rule in {PurePosixPath(name).parent}, by its header always read")

    def _read(self, file: InstructionFile, why: str, hidden: str = "") -> Read:
        text = file.data.decode("utf-8-sig", "replace")
        limit = self.row.limit if file.name == AGENTS else len(text)
        shown = "" if hidden else text[:limit]
        return Read(file.path, len(file.data), len(shown.encode()), why, hidden, shown)


def rows() -> tuple[RowHarness, ...]:
    """A harness for each row of the table."""
    return tuple(RowHarness(row) for row in ROWS)


def _own_files(site: Site) -> set[Path]:
    """The carriers that the rows in use have chosen."""

    def chosen() -> set[Path]:
        used = [row for row in ROWS if row.name in site.used]
        return {carrier.path for row in used for carrier in row_choice.choose(row, site).carriers}

    return site.once("carriers of the rows", chosen)


def _directories(root: Path, start: Path) -> list[Path]:
    """From `root` down to `start`; the root alone where that lies elsewhere."""
    if not start.is_relative_to(root):
        return [root]
    parts = start.relative_to(root).parts
    return [root.joinpath(*parts[:count]) for count in range(len(parts) + 1)]


def _file(site: Site, path: Path) -> InstructionFile:
    """What stands at a path in the checkout: observed, or looked at now where it lies below the root."""
    if path.parent == site.checkout or str(path) in site.files:
        return site.file(path)
    return look(path, site.checkout)
