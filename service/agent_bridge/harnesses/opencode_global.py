"""By which file OpenCode gets the user's facts. Pure.

Source: OpenCode 1.18.33, by running it. It shows the first that exists of AGENTS.md in its own directory
(OPENCODE_CONFIG_DIR where that is set) and
`~/.claude/CLAUDE.md` (by HOME, whatever CLAUDE_CONFIG_DIR says), never both. Imports (`@path`) stay literal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, claude_carriers, opencode_config
from agent_bridge.harnesses.base import (
    Carrier,
    FileKind,
    Ground,
    InstructionFile,
    KeyEdit,
    Notice,
    Scope,
    Site,
)
from agent_bridge.harnesses.opencode_files import NAME


@dataclass(frozen=True, slots=True)
class Choice:
    """The carrier, or None, and what a person should know about it."""

    carrier: Carrier | None
    notices: tuple[Notice, ...] = ()


def own_file(ground: Ground) -> Path:
    """OpenCode's own file of instructions for all projects."""
    return opencode_config.home_of_files(ground.env) / agents_md.NAME


def claudes_file(ground: Ground) -> Path:
    """Claude Code's file, which OpenCode reads where it has none of its own."""
    return paths.home(ground.env) / ".claude" / claude_carriers.MAIN


def choose(site: Site) -> Choice:
    """The file that OpenCode reads; one of its own is made only where it hides nothing, now or later."""
    own, theirs = site.file(own_file(site)), site.file(claudes_file(site))
    if opencode_config.claude_switched_off(site) or _is_the_users(own):
        return Choice(_carrier(own, "OpenCode reads it in every project"))
    claude = claude_carriers.choose_global(site).carrier if claude_carriers.NAME in site.used else None
    target = None if claude is None else site.file(claude.path)
    will_be = target is not None and target.real == theirs.real
    if not theirs.readable and not will_be:
        return Choice(_carrier(own, "OpenCode reads it in every project"))
    if target is not None and not will_be and _is_claudes(site, theirs):
        return _by_instruction(site, target, theirs)
    empty = own.readable and not own.data.strip()
    return Choice(
        _carrier(theirs, "OpenCode reads it in every project", create=will_be),
        (_empty(own, theirs),) if empty else (),
    )


def key_edits(site: Site) -> tuple[KeyEdit, ...]:
    """The instruction by which OpenCode reads what Claude Code's file imports, where the facts are there."""
    carrier = choose(site).carrier
    if carrier is None or carrier.path in (own_file(site), claudes_file(site)):
        return ()
    place = opencode_config.user_place(site, str(carrier.path))
    if place is None:
        return ()
    return (
        KeyEdit(
            path=place.path,
            format="json",
            key=(opencode_config.INSTRUCTIONS,),
            value=str(carrier.path),
            why=f"{claudes_file(site)} imports that file, and OpenCode follows no imports",
            only_if="OpenCode is in use",
            element=True,
        ),
    )


def _by_instruction(site: Site, target: InstructionFile, theirs: InstructionFile) -> Choice:
    """The file with the facts that Claude's imports; a block in Claude's would be a second one to Claude."""
    if opencode_config.user_place(site, str(target.path)) is not None:
        return Choice(_carrier(target, f"{theirs.path} imports it", create=False))
    text = (
        f"{theirs.path} imports the file with the facts for all projects, and OpenCode, which follows no "
        f"imports, doesn't get them: none of its settings files in {paths.opencode_config(site.env)} can be "
        "changed."
    )
    return Choice(None, (Notice("warning", "opencode-global-import", text, theirs.path),))


def _is_the_users(own: InstructionFile) -> bool:
    """Whether OpenCode's own file has a text of the user's, or leads to a file of his."""
    linked = own.kind is FileKind.SYMLINK
    return linked or (own.readable and bool(agents_md.user_text(own.data).strip()))


def _is_claudes(site: Site, theirs: InstructionFile) -> bool:
    """Whether Claude Code reads that file too: a block in it would be a second one to Claude."""
    return site.file(paths.claude_home(site.env) / claude_carriers.MAIN).real == theirs.real


def _empty(own: InstructionFile, theirs: InstructionFile) -> Notice:
    text = f"{own.path} is empty and keeps OpenCode from reading {theirs.path}. Remove it."
    return Notice("warning", "opencode-global-empty", text, own.path)


def _carrier(file: InstructionFile, why: str, *, create: bool = True) -> Carrier:
    return Carrier(
        path=file.path,
        kind="block",
        scope=Scope.GLOBAL,
        readers=(NAME,),
        create=create,
        local=False,
        why=why,
    )
