"""By which file Claude Code gets the bodies of facts. Pure.

The rules (Claude Code 2.1.332, by running it): AGENTS.md is read natively only where neither the project nor
a directory above it has a CLAUDE.md, `.claude/CLAUDE.md` or CLAUDE.local.md; whoever creates one of these
hides it. Files in `.claude/rules` hide nothing, but aren't read where they lead out of the repository. An
import of AGENTS.md holds for sessions started in the root only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, claude_settings, claude_text, managed_block, opencode_files
from agent_bridge.harnesses.base import (
    NO_LIMIT,
    Carrier,
    FileKind,
    Ground,
    InstructionFile,
    Notice,
    Scope,
    Site,
)
from agent_bridge.harnesses.claude_imports import MAX_DEPTH, imports, resolve
from agent_bridge.harnesses.claude_settings import Instructions

NAME = "claude-code"
MAIN = "CLAUDE.md"
IN_FOLDER = ".claude/CLAUDE.md"
LOCAL = "CLAUDE.local.md"
RULES = ".claude/rules/agent-bridge.md"
OWN_FILES = (MAIN, IN_FOLDER, LOCAL)
"""Each of these hides AGENTS.md."""

IMPORT_SCAN_LIMIT = 1024 * 1024
"""Bytes of one file that are searched for imports."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The carrier, or None, and what a person should know about it."""

    carrier: Carrier | None
    notices: tuple[Notice, ...] = ()


def choose(site: Site) -> Choice:
    """The carrier of a project's facts; none where a hook brings them."""
    if site.project is not None and site.project.delivery == "hooks":
        return Choice(None)
    off = claude_settings.instructions_switched_off(site)
    if off is not None:
        text = f"Claude Code reads no instruction files here, by {off.where}: it gets no texts of facts."
        return Choice(None, (Notice("warning", "claude-instructions-off", text, off.path),))
    choice = _by_agents_md(site) or _by_own_file(site)
    names = [name for name in (agents_md.NAME, *OWN_FILES) if site.file(name).readable]
    if any(claude_settings.excluded_in_root_only(site, site.file(name).path) for name in names):
        text = (
            ".claude/settings.json excludes instruction files, and Claude Code reads it only in sessions "
            "started in the project's root: others may get facts twice or not at all. settings.local.json "
            "holds for all."
        )
        path = site.checkout / ".claude" / "settings.json"
        return Choice(
            choice.carrier, (*choice.notices, Notice("info", "claude-excludes-below-root", text, path))
        )
    return choice


def asked_for(site: Site, chosen: Carrier | None) -> Choice:
    """CLAUDE.md as a second carrier, where its user asked for it by name (`sync --to claude`)."""
    project, main = site.project, site.file(MAIN)
    asked = project is not None and NAME in project.requested and project.delivery == "blocks"
    fit = _speaks(main) and main.inside and not claude_settings.excluded(site, main.path)
    if not asked or not fit or chosen is None or agents_md.would_publish(site, main):
        return Choice(None)
    if main.is_same(site.file(chosen.path)):
        return Choice(None)
    text = (
        f"CLAUDE.md has the facts because you asked for it, and {chosen.path.name} has them too: Claude Code "
        "gets them twice. `agent-bridge sync --not-to claude` takes them out of CLAUDE.md."
    )
    second = _carrier(main, Scope.PROJECT, "asked for with `sync --to claude`")
    return Choice(second, (Notice("info", "claude-double", text, main.path),))


def choose_global(site: Site) -> Choice:
    """Carrier of the user's facts: CLAUDE.md in Claude's home, or Codex's AGENTS.md if it imports that."""
    if claude_settings.instructions_switched_off(site) is not None:
        return Choice(None)
    own = site.file(paths.claude_home(site.env) / MAIN)
    theirs = site.file(paths.codex_home(site.env) / agents_md.NAME)
    # The user's own file may import from anywhere, whichever project it is looked at from.
    loaded = _loaded(replace(site, project=None), [own])[1:]
    if theirs.readable and any(file.is_same(theirs) for file in loaded):
        return Choice(_carrier(theirs, Scope.GLOBAL, f"{own.path} imports it"))
    return Choice(_carrier(own, Scope.GLOBAL, "Claude Code reads it in every project"))


def follows(ground: Ground, file: InstructionFile) -> tuple[Path, ...]:
    """The files that Claude reads because `file` imports them."""
    if not file.readable or file.path.suffix != ".md":
        return ()
    home = paths.home(ground.env)
    return tuple(resolve(written, file.real, home) for written in _imports(file))


def _by_agents_md(site: Site) -> Choice | None:
    """AGENTS.md, where Claude reads it and a block may stand there."""
    shared = site.file(agents_md.NAME)
    way = _way_to_agents_md(site, shared)
    if way is None or agents_md.why_not(site):
        return None
    return Choice(_carrier(shared, Scope.PROJECT, way, local=True), _exceptions(site, way))


_NATIVE = "Claude Code reads AGENTS.md itself: nothing hides it"
_ALWAYS = "Claude Code reads AGENTS.md too, by the user's settings"
_SAME_FILE = "CLAUDE.md and AGENTS.md are one file"
_IMPORTED = "CLAUDE.md imports AGENTS.md"


def _way_to_agents_md(site: Site, shared: InstructionFile) -> str | None:
    """How Claude comes to read AGENTS.md in a session started in the root; None where it doesn't."""
    if claude_settings.excluded(site, shared.path):
        return None
    own = _own_files(site)
    if any(file.is_same(shared) for file in own):
        return _SAME_FILE
    mode = claude_settings.instructions(site)
    if mode is Instructions.BOTH:
        return _ALWAYS
    if any(file.is_same(shared) for file in _loaded(site, own)):
        return _IMPORTED
    hidden = any(map(_speaks, own)) or bool(_own_files_above(site))
    return _NATIVE if mode is Instructions.EITHER and not hidden else None


def _exceptions(site: Site, way: str) -> tuple[Notice, ...]:
    """The two cases in which a session gets no bodies although the carrier is right."""
    if way is _IMPORTED:
        text = (
            "Claude Code gets AGENTS.md by an import, which it follows only in sessions started in the "
            "project's root: one started in a sub-directory gets the titles of facts, not their texts."
        )
        return (Notice("info", "claude-import-below-root", text, site.checkout / MAIN),)
    if way is not _NATIVE:
        return ()
    hiding = [file.name for file in site.nested if PurePosixPath(file.name).name in (MAIN, LOCAL)]
    hiding = [name for name in hiding if name not in OWN_FILES]
    return tuple(
        Notice(
            "info",
            "claude-nested",
            f"{name} hides AGENTS.md from Claude Code in sessions started in its directory: "
            "they get the titles of facts, not their texts.",
            site.checkout / name,
        )
        for name in hiding[:20]
    )


def _by_own_file(site: Site) -> Choice:
    """A file that only Claude reads: CLAUDE.md where it is the user's plain one, else a rules file.

    OpenCode may be told to show CLAUDE.md beside an AGENTS.md that has the facts: then it isn't CLAUDE.md.
    """
    main = site.file(MAIN)
    notices: list[Notice] = []
    plain: Carrier | None = None
    excluded = claude_settings.excluded(site, main.path)
    hides = not _speaks(main) and _speaks(site.file(agents_md.NAME))
    if main.readable and not (excluded or hides or agents_md.would_publish(site, main)):
        if main.inside:
            plain = _carrier(main, Scope.PROJECT, "the project's CLAUDE.md")
            if not opencode_files.shows_claude_md(site):
                return Choice(plain)
        else:
            text = f"CLAUDE.md is {main.real}, outside of the repository: nothing is written there."
            notices.append(Notice("info", "claude-md-outside", text, main.path))
    why = _rules_problem(site)
    if not why:
        rules = site.file(RULES)
        return Choice(
            _carrier(rules, Scope.PROJECT, "a rules file hides nothing", own=True, local=True), tuple(notices)
        )
    notices.append(
        Notice("warning", "claude-rules-unusable", f"{RULES} can't be used: {why}.", site.checkout / RULES)
    )
    choice = _last_resort(site, tuple(notices))
    # A missing fact is worse than one that OpenCode shows twice, which its notices tell.
    return choice if choice.carrier is not None or plain is None else Choice(plain, choice.notices)


def _last_resort(site: Site, notices: tuple[Notice, ...]) -> Choice:
    """Where rules can't be used: one of the other files, none of which may hide AGENTS.md anew."""
    hidden = any(map(_speaks, _own_files(site))) or bool(_own_files_above(site))
    hidden = hidden or claude_settings.instructions(site) is Instructions.CLAUDE_ONLY
    for name in (IN_FOLDER, LOCAL) if hidden else ():
        file = site.file(name)
        usable = file.readable and file.inside and not claude_settings.excluded(site, file.path)
        if usable and not agents_md.would_publish(site, file):
            return Choice(_carrier(file, Scope.PROJECT, f"the project's {name}"), notices)
    local = site.file(LOCAL)
    free = local.kind is FileKind.ABSENT and not claude_settings.excluded(site, local.path)
    if free and hidden:
        return Choice(_carrier(local, Scope.PROJECT, "AGENTS.md is hidden already", local=True), notices)
    text = "There is no file by which Claude Code could get the texts of facts without hiding others."
    return Choice(None, (*notices, Notice("warning", "claude-no-carrier", text, site.checkout)))


def _rules_problem(site: Site) -> str:
    """Why Claude would not read a rules file here, "" if it would.

    A link that leads out is never followed, one that stays inside only in sessions started in the root.
    """
    for name in (".claude", ".claude/rules"):
        place = site.file(name)
        if place.kind is not FileKind.ABSENT and not place.is_directory:
            return f"{name} is no directory"
        if place.kind is FileKind.LINKED_DIRECTORY and place.inside:
            return f"{name} is a symlink, which Claude Code doesn't follow in sessions started below the root"
        if not place.inside:
            return f"{name} leads to {place.real}, and Claude Code reads no rules outside of the repository"
    rules = site.file(RULES)
    if claude_settings.excluded(site, rules.path):
        return "claudeMdExcludes excludes it"
    if rules.kind is FileKind.SYMLINK:
        return "it is a symlink"
    return agents_md.why_unusable(rules)


def _own_files(site: Site) -> list[InstructionFile]:
    """CLAUDE.md and its like in the root, as far as Claude reads them."""
    found = [site.file(name) for name in OWN_FILES]
    return [file for file in found if not claude_settings.excluded(site, file.path)]


def _own_files_above(site: Site) -> list[Path]:
    """The same above the root; Claude's own home doesn't count, wherever it lies."""
    home = paths.claude_home(site.env)
    above = [path for path in site.parents if path.name in (MAIN, LOCAL) and path.parent != home]
    return [path for path in above if not claude_settings.excluded(site, path)]


def _loaded(site: Site, start: list[InstructionFile]) -> list[InstructionFile]:
    """`start` and what it imports, in order. Claude skips a project's imports that lead out."""
    loaded = list(start)
    seen = {file.path for file in start}
    fresh = [file for file in start if file.readable]
    for _ in range(MAX_DEPTH):
        targets = [site.file(path) for file in fresh for path in follows(site, file)]
        fresh = []
        for target in targets:
            if target.path not in seen and (target.inside or site.project is None):
                seen.add(target.path)
                fresh.append(target)
        loaded += fresh
    return loaded


def _imports(file: InstructionFile) -> tuple[str, ...]:
    """What the user's text of a file imports. Our block doesn't count: it must not decide where it stands."""
    return imports(_users_text(file.data[:IMPORT_SCAN_LIMIT]).decode("utf-8-sig", "replace"))


def _speaks(file: InstructionFile) -> bool:
    """Whether a person's text stands in a file. One that is empty or has only comments hides no AGENTS.md,
    so nothing may be put into it: with a block it would."""
    return file.readable and claude_text.shown(_users_text(file.data)) != ""


def _users_text(data: bytes) -> bytes:
    return b"\n".join(managed_block.around(data))


def _carrier(
    file: InstructionFile, scope: Scope, why: str, *, own: bool = False, local: bool = False
) -> Carrier:
    return Carrier(
        path=file.path,
        kind="own" if own else "block",
        scope=scope,
        readers=(NAME,),
        create=True,
        local=local,
        budget=NO_LIMIT,
        why=why,
    )


__all__ = ["Choice", "asked_for", "choose", "choose_global", "follows"]
