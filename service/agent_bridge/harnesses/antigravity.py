"""Antigravity, editor and `agy`: AGENTS.md, a rules file where that can't be, the user's GEMINI.md.

Source: Google's documentation and public issues up to `agy` 1.1.25; none of it was run by us. It reads
`~/.gemini/GEMINI.md`, the project's GEMINI.md and AGENTS.md, and the files of `.agents/rules` that begin with
`trigger: always_on`, of which one may have 12,000 characters. A file is shown once, by its real path.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import (
    agents_md,
    antigravity_mcp,
    gemini_carriers,
    gemini_config,
    gemini_memory,
    skill_places,
)
from agent_bridge.harnesses.base import (
    Carrier,
    FileKind,
    Ground,
    Harness,
    InstructionFile,
    KeyEdit,
    Mode,
    NativeItem,
    Notice,
    Read,
    Scope,
    Site,
)
from agent_bridge.harnesses.observe import look

RULES = ".agents/rules"
OLD_RULES = ".agent/rules"
OWN = ".agents/rules/agent-bridge.md"
HEADER = "---\ntrigger: always_on\ndescription: Project memory\n---\n\n"
RULE_LIMIT = 12_000
"""Characters of one rules file, its header too."""

_BUDGET = RULE_LIMIT - len(HEADER) - 8
"""In bytes, of which a text has at least as many as characters; some are left for line ends."""

_HOME = ".antigravity"
_PROGRAMS = ("agy", "antigravity")
_TRIGGER = re.compile(rb"\A(?:\xef\xbb\xbf)?---\r?\n(?:.*\r?\n)*?trigger:[ \t]*(\w+)[ \t]*\r?\n")
_HEAD = 2048


class Antigravity(Harness):
    """Google's Antigravity: the editor and the command line."""

    name = "antigravity"
    title = "Antigravity"
    only_if_used = True

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether a home of its editor or command line exists, or a program of it is on PATH."""
        shared = paths.gemini_home(env).glob("antigravity*")
        if (paths.home(env) / _HOME).is_dir() or any(place.is_dir() for place in shared):
            return True
        return any(shutil.which(program, path=env.get("PATH")) is not None for program in _PROGRAMS)

    def projection_mode(self, scope: Scope) -> Mode:  # noqa: ARG002
        """Both scopes are rendered."""
        return Mode.RENDER

    def listings_wanted(self, ground: Ground) -> tuple[Path, ...]:
        """The rules."""
        return () if ground.project is None else (ground.checkout / RULES,)

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:  # noqa: ARG002
        """The files that name MCP servers."""
        return antigravity_mcp.settings_files(ground)

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:  # noqa: ARG002
        """Its files in the root, the rules file and the user's own file."""
        home = paths.gemini_home(ground.env)
        own = (home, home / gemini_config.MAIN)
        if ground.project is None:
            return own
        names = (agents_md.NAME, gemini_config.MAIN, ".agents", RULES, OWN, gemini_config.FOLDER)
        return (*(ground.checkout / name for name in (*names, gemini_carriers.OWN)), *own)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """AGENTS.md, else a rules file; what the user asked for by name is written besides."""
        if scope is Scope.GLOBAL:
            known = site.file(paths.gemini_home(site.env)).is_directory
            return (gemini_carriers.global_carrier(site, self.name),) if known else ()
        if site.project is None:
            return ()
        shared = agents_md.shared_carrier(site, self.name)
        asked = self.name in site.project.requested
        found = list(shared)
        if not _problem(site) and (asked or not shared):
            found.append(_rule(site, "asked for" if shared else "AGENTS.md can't be used", self.name))
        if asked and not gemini_carriers.own_problem(site):
            found.append(gemini_carriers.own_carrier(site, (), "asked for"))
        return tuple(found)

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Files that can't be used, and facts that it gets twice."""
        if site.project is None:
            return ()
        found = []
        shared = agents_md.shared_carrier(site, self.name)
        asked = self.name in site.project.requested
        problem, path = _problem(site), site.checkout / OWN
        if problem and (asked or not shared):
            text = f"{OWN} can't be written for Antigravity: {problem}."
            found.append(Notice("warning", "antigravity-rules-unusable", text, path))
        if asked and (own := gemini_carriers.own_problem(site)):
            where = site.checkout / gemini_carriers.OWN
            found.append(Notice("warning", "gemini-own-unusable", f"{own}.", where))
        holders = _holders(site, shared, with_rule=not problem and (asked or not shared))
        if len(holders) > 1:
            text = f"Antigravity reads {' and '.join(holders)}, both with the facts: it gets them twice."
            if asked:
                text += " `agent-bridge sync --not-to antigravity` takes its own file back."
            found.append(Notice("info", "antigravity-twice", text, path))
        return (*found, *antigravity_mcp.notices(site))

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:  # noqa: ARG002
        """The server in the project's file."""
        return antigravity_mcp.edits(site)

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its own directory first."""
        return skill_places.of_antigravity(env)

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:  # noqa: ARG002 - it works on whole folders
        """The user's own file, the root's files and its rules, by the documentation."""
        root = site.checkout
        user = paths.gemini_home(site.env) / gemini_config.MAIN
        told = [(user, "the user's own, for all projects")]
        told += [(root / name, f"{name} of the project") for name in (gemini_config.MAIN, agents_md.NAME)]
        rules = gemini_memory.markdown_in(root / RULES)
        told += [(root / RULES / name, f"a rule of {RULES}") for name in rules]
        found: list[Read] = []
        seen: set[Path] = set()
        for path, why in told:
            file = look(path, root)
            if file.kind is not FileKind.ABSENT:
                found.append(_read(file, why, is_rule=path.parent == root / RULES, seen=file.real in seen))
                seen.add(file.real)
        return tuple(found)

    def hand_written(self, site: Site) -> list[NativeItem]:
        """GEMINI.md of the project and of the user, the notes in `.gemini`, the rules."""
        found = gemini_memory.hand_written(site)
        if site.project is None:
            return found
        for folder in (RULES, OLD_RULES):
            found += gemini_memory.written(site.checkout / folder, None, site.checkout)
        return found

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, `.agents`, its rules and `.gemini`, and the home that it shares with Gemini CLI."""
        home = paths.gemini_home(site.env)
        if site.project is None:
            return (home,)
        names = (".agents", RULES, gemini_config.FOLDER)
        return (site.checkout, *(site.checkout / name for name in names), home)


def _rule(site: Site, why: str, reader: str) -> Carrier:
    return Carrier(
        path=site.checkout / OWN,
        kind="own",
        scope=Scope.PROJECT,
        readers=(reader,),
        create=True,
        local=True,
        budget=_BUDGET,
        header=HEADER,
        why=why,
    )


def _problem(site: Site) -> str:
    """Why the rules file can't be written, "" if it can."""
    return agents_md.why_no_folders(site, ".agents", RULES) or agents_md.why_closed(site, site.file(OWN))


def _holders(site: Site, shared: tuple[Carrier, ...], *, with_rule: bool) -> list[str]:
    """The files with facts that it reads here, by the names that people know."""
    found = [agents_md.NAME] if shared else []
    main = site.file(gemini_config.MAIN)
    others = [] if gemini_carriers.NAME not in site.used else list(gemini_carriers.choose(site).carriers)
    for carrier in (*others, *gemini_carriers.holders(site)):
        one = site.file(carrier.path)
        is_main = one.is_same(main) and not carrier.text
        if is_main and not (shared and main.is_same(site.file(agents_md.NAME))):
            found.append(gemini_config.MAIN)
    return [*dict.fromkeys(found), *([OWN] if with_rule else [])]


def _read(file: InstructionFile, why: str, *, is_rule: bool, seen: bool) -> Read:
    size = len(file.data)
    text = file.data.decode("utf-8", "replace")
    hidden = file.why_unreadable
    if seen:
        hidden = "it is a file that is read already, under another name"
    trigger = _TRIGGER.match(file.data[:_HEAD])
    if is_rule and not hidden and (trigger is None or trigger[1] != b"always_on"):
        hidden = "only rules with `trigger: always_on` are read by themselves"
    shown = text[:RULE_LIMIT] if is_rule else text
    cut = f"everything behind {RULE_LIMIT:,} characters" if len(shown) < len(text) and not hidden else ""
    if hidden:
        return Read(file.path, size, 0, why, hidden=hidden)
    return Read(file.path, size, len(shown.encode("utf-8", "replace")), why, text=shown, cut=cut)
