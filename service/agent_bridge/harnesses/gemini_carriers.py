"""By which file Gemini CLI gets the bodies of facts. Pure.

It reads GEMINI.md and the names of `context.fileName`, and what they import (0.61.0). So AGENTS.md reaches it
by an import in a block of GEMINI.md, unless it reads that file already, or another one that holds the facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, claude_carriers, claude_imports, gemini_config, gemini_files
from agent_bridge.harnesses.base import (
    NO_LIMIT,
    Carrier,
    FileKind,
    InstructionFile,
    Notice,
    Scope,
    Site,
)
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.gemini_config import FOLDER, MAIN

NAME = "gemini"
OWN = ".gemini/memory-bridge.md"
"""The file that memory-bridge writes for Gemini CLI and Antigravity."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The carriers, and what a person should know about them."""

    carriers: tuple[Carrier, ...]
    notices: tuple[Notice, ...] = ()


def choose(site: Site) -> Choice:
    """The carriers of a project's facts."""
    if gemini_config.distrusted(site):
        where = gemini_config.trust_file(site.env)
        text = f"Gemini CLI is not to trust this directory ({where}) and reads none of its files."
        return Choice((), (Notice("warning", "gemini-untrusted", text, where),))
    choice = _by_what_it_reads(site) or _by_main_file(site)
    requested = _requested(site, choice)
    return Choice((*choice.carriers, *requested.carriers), (*choice.notices, *requested.notices))


def choose_global(site: Site) -> tuple[Carrier, ...]:
    """The file in its home, or another harness's file that it reads as well."""
    home = site.file(paths.gemini_home(site.env))
    if not home.is_directory:
        return ()
    read = gemini_files.loaded(site, gemini_config.names(site), home.path, import_root(site))
    for theirs in holders(site, Scope.GLOBAL):
        if any(file.is_same(site.file(theirs.path)) for file in read if file.readable):
            return (replace(theirs, readers=(NAME,), create=False, why="Gemini CLI reads it everywhere"),)
    return (global_carrier(site, NAME),)


def global_carrier(site: Site, reader: str) -> Carrier:
    """GEMINI.md in the home that Gemini CLI and Antigravity share."""
    return Carrier(
        path=paths.gemini_home(site.env) / MAIN,
        kind="block",
        scope=Scope.GLOBAL,
        readers=(reader,),
        create=True,
        local=False,
        budget=NO_LIMIT,
        why=f"{reader} reads it in every project",
    )


def own_carrier(site: Site, readers: tuple[str, ...], why: str) -> Carrier:
    """`.gemini/memory-bridge.md`."""
    return Carrier(
        path=site.checkout / OWN,
        kind="own",
        scope=Scope.PROJECT,
        readers=readers,
        create=True,
        local=True,
        budget=NO_LIMIT,
        why=why,
    )


def own_problem(site: Site) -> str:
    """Why `.gemini/memory-bridge.md` can't be written or imported, "" if it can."""
    folder = agents_md.why_no_folders(site, FOLDER)
    why = agents_md.why_closed(site, site.file(OWN))
    return folder or (f"{OWN}: {why}" if why else "")


def read_in_root(site: Site, *, below_root: bool = False) -> tuple[InstructionFile, ...]:
    """What it loads of the root's files in a session started there, or in a directory below."""
    names = gemini_config.names(site, below_root=below_root)
    return gemini_files.loaded(site, names, site.checkout, site.checkout)


def holders(site: Site, scope: Scope = Scope.PROJECT) -> list[Carrier]:
    """The files that hold the facts for others whether or not Gemini CLI is used, AGENTS.md first."""
    shared = agents_md.shared_carrier(site, NAME) if scope is Scope.PROJECT else ()
    others = [*Codex().carriers(site, scope), *ClaudeCode().carriers(site, scope)]
    found: list[Carrier] = []
    for carrier in (*shared, *others):
        file = site.file(carrier.path)
        if not any(file.is_same(site.file(known.path)) for known in found):
            found.append(carrier)
    return found


def import_root(site: Site) -> Path:
    """Below which directory the user's own GEMINI.md may import: the home, where that is a Git repository."""
    home = paths.home(site.env)
    return home if site.file(home / ".git").kind is not FileKind.ABSENT else paths.gemini_home(site.env)


def _by_what_it_reads(site: Site) -> Choice | None:
    """Files that it reads anyway and that hold the facts; None where there is none."""
    read = read_in_root(site)
    reached = [carrier for carrier in holders(site) if _is_read(site, carrier, read)]
    if reached:
        first = replace(reached[0], readers=(NAME,), why=f"Gemini CLI reads {_called(site, reached[0])} too")
        return Choice((first,), (*_twice(site, reached), *_only_in_root(site, first)))
    if any(file.path == site.checkout / OWN for file in read) or OWN in gemini_config.names(site):
        problem = own_problem(site)
        return None if problem else Choice((own_carrier(site, (NAME,), "Gemini CLI reads it already"),))
    return None


def _by_main_file(site: Site) -> Choice:
    """A block in GEMINI.md: an import of AGENTS.md or of a file of its own, else the facts themselves."""
    main = site.file(MAIN)
    problem = agents_md.why_closed(site, main)
    if problem:
        text = f"Gemini CLI gets no facts: {MAIN} can't hold a block, as {problem}."
        return Choice((), (Notice("warning", "gemini-md-unusable", text, main.path),))
    shared = () if _would_show_main_twice(site) else agents_md.shared_carrier(site, NAME)
    if shared and gemini_files.import_would_work(main.data, "@x"):
        return Choice((*shared, _main(site, text=_import_of(site, agents_md.NAME))))
    own = own_problem(site)
    if not shared and not own and gemini_files.import_would_work(main.data, "@x"):
        carrier = own_carrier(site, (NAME,), "AGENTS.md can't bring Gemini CLI the facts")
        return Choice((carrier, _main(site, text=_import_of(site, OWN))))
    return Choice((_main(site, readers=(NAME,)),))


def _main(site: Site, *, text: str = "", readers: tuple[str, ...] = ()) -> Carrier:
    main = site.file(MAIN)
    return Carrier(
        path=main.path,
        kind="block",
        scope=Scope.PROJECT,
        readers=readers,
        create=main.kind is FileKind.ABSENT,
        local=True,
        budget=NO_LIMIT,
        why=f"Gemini CLI reads {MAIN} only" if text else f"Gemini CLI follows no import in {MAIN} here",
        text=text,
    )


def _import_of(site: Site, name: str) -> str:
    """The import as the block says it: in a comment, which hides it from Claude alone, where Claude may read
    GEMINI.md and has the facts from elsewhere."""
    seen = {site.checkout / file for file in (*claude_carriers.OWN_FILES, agents_md.NAME)}
    fresh = [site.file(path) for path in seen]
    for _ in range(claude_imports.MAX_DEPTH):
        follow = {path for file in fresh for path in claude_carriers.follows(site, file)} - seen
        seen |= follow
        fresh = [site.file(path) for path in follow]
    main = site.file(MAIN)
    shown_to_claude = any(site.file(path).is_same(main) for path in seen)
    return f"<!-- @{name} -->" if shown_to_claude else f"@{name}"


def _would_show_main_twice(site: Site) -> bool:
    """Whether AGENTS.md imports GEMINI.md: through our import its text would be shown a second time."""
    main = site.file(MAIN)
    read = gemini_files.loaded(site, (agents_md.NAME,), site.checkout, site.checkout)
    return main.readable and any(file.is_same(main) for file in read)


def _is_read(site: Site, carrier: Carrier, read: tuple[InstructionFile, ...]) -> bool:
    file = site.file(carrier.path)
    named = [site.checkout / name for name in gemini_config.names(site)]
    return file.path in named or any(file.is_same(one) for one in read)


def _twice(site: Site, reached: list[Carrier]) -> tuple[Notice, ...]:
    if len(reached) < 2:
        return ()
    names = " and ".join(_called(site, carrier) for carrier in reached)
    text = (
        f"Gemini CLI reads {names}, by its settings or by imports: facts that stand in both are shown twice."
    )
    return (Notice("info", "gemini-twice", text, reached[1].path),)


def _only_in_root(site: Site, carrier: Carrier) -> tuple[Notice, ...]:
    """A project's `context.fileName` counts only in sessions started in the project's root."""
    below = read_in_root(site, below_root=True)
    named = [site.checkout / name for name in gemini_config.names(site, below_root=True)]
    file = site.file(carrier.path)
    if file.path in named or any(file.is_same(one) for one in below):
        return ()
    settings = site.checkout / gemini_config.SETTINGS
    text = (
        f"Gemini CLI reads {_called(site, carrier)} by context.fileName in {settings}, which counts only in "
        "sessions started in the project's root: others get no facts. The user's own settings hold for all."
    )
    return (Notice("info", "gemini-names-below-root", text, settings),)


def _requested(site: Site, choice: Choice) -> Choice:
    """`.gemini/memory-bridge.md` where the user asked for it by name."""
    wanted = site.project is not None and NAME in site.project.requested
    if not wanted or any(carrier.path == site.checkout / OWN for carrier in choice.carriers):
        return Choice(())
    problem = own_problem(site)
    if problem:
        return Choice((), (Notice("warning", "gemini-own-unusable", f"{problem}.", site.checkout / OWN),))
    read = read_in_root(site)
    path = site.checkout / OWN
    if OWN in gemini_config.names(site) or any(file.path == path for file in read):
        text = f"Gemini CLI reads {OWN} beside the file that has the facts already: it shows them twice."
        notice = Notice("warning", "gemini-twice", text, path)
    else:
        text = (
            f"{OWN} is written as you asked; Gemini CLI reads it only where a setting or an import names it."
        )
        notice = Notice("info", "gemini-own-unread", text, path)
    return Choice((own_carrier(site, (), "asked for"),), (notice,))


def _called(site: Site, carrier: Carrier) -> str:
    return site.file(carrier.path).name
