"""Which files of a project OpenCode reads, and by which it gets the bodies of facts. Pure.

Source: OpenCode 1.18.33, by running it. A session shows every file of the first NAME of AGENTS.md, CLAUDE.md
and CONTEXT.md that exists anywhere from its directory up to the worktree's root (outside of Git: up to `/`),
and whatever `instructions` list; a path that is found twice is shown once. An AGENTS.md that we make hides
the other two names, so these are listed then (design, law 2).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from agent_bridge.harnesses import agents_md, codex_config, opencode_config
from agent_bridge.harnesses.base import NO_LIMIT, Carrier, FileKind, InstructionFile, KeyEdit, Scope, Site

NAME = "opencode"
CLAUDE = "CLAUDE.md"
CONTEXT = "CONTEXT.md"
NAMES = (agents_md.NAME, CLAUDE, CONTEXT)
BRIDGE = ".opencode/memory-bridge.md"
ENTRIES = (CLAUDE, CONTEXT, BRIDGE)
"""What we may list in `instructions`."""


def shows_claude_md(site: Site) -> bool:
    """Whether OpenCode shows the project's CLAUDE.md as well as an AGENTS.md that carries the facts.

    So it is too as long as the instruction that this takes is only wanted. A block in CLAUDE.md would be a
    second one to OpenCode then.
    """
    if NAME not in site.used or agents_md.why_not(site):
        return False
    file = site.file(CLAUDE)
    if not file.readable or file.is_same(site.file(agents_md.NAME)):
        return False
    return CLAUDE in hidden_names(site) or opencode_config.lists(site, file.path)


def hidden_names(site: Site) -> tuple[str, ...]:
    """The names that OpenCode would read, if there weren't an AGENTS.md of ours."""
    if not _agents_md_is_ours(site) or _agents_md_above(site):
        return ()
    found: dict[str, None] = {}
    root = _first_name(site, {file.name for file in map(site.file, NAMES[1:]) if _hides(site, file)})
    found.update(dict.fromkeys(root))
    below: dict[PurePosixPath, set[str]] = {}
    for nested in site.nested:
        path = PurePosixPath(nested.name)
        if path.name in NAMES and path.parent.parts and not path.parts[0].startswith("."):
            below.setdefault(path.parent, set()).add(path.name)
    for place in below:
        chain = {name for at in (place, *place.parents) for name in below.get(at, set())}
        found.update(dict.fromkeys(_first_name(site, chain | set(root))))
    return tuple(name for name in NAMES[1:] if name in found)


def carriers(site: Site) -> tuple[Carrier, ...]:
    """AGENTS.md; where that can't be, a file that OpenCode reads and has a block anyway, else its own file.

    Its own file also where it is asked for by name (`sync --to`).
    """
    if site.project is None or opencode_config.project_switched_off(site):
        return ()
    shared = agents_md.shared_carrier(site, NAME)
    found = [*shared] if shared else [_block_in(file) for file in _others_with_a_block(site)[:1]]
    asked = NAME in site.project.requested
    if (asked or not found) and not bridge_problem(site):
        why = "`sync --to` asked for it" if asked else "AGENTS.md can't be used"
        found.append(_bridge(site, why))
    return tuple(found)


def key_edits(site: Site) -> tuple[KeyEdit, ...]:
    """The instructions that OpenCode needs here: what our AGENTS.md hides from it, and our own file."""
    if site.project is None or opencode_config.project_switched_off(site):
        return ()
    wanted = (*hidden_names(site), *_carriers_hidden_below(site))
    listed = {entry for layer in opencode_config.user_layers(site) for entry in layer.entries}
    found = [
        _instruction(site, name, "without it an AGENTS.md would hide that file from OpenCode")
        for name in ENTRIES[:2]
        if (name in wanted and name not in listed) or _is_listed_for_us(site, name)
    ]
    if any(carrier.kind == "own" for carrier in carriers(site)):
        found.append(_instruction(site, BRIDGE, "OpenCode reads that file only by an instruction"))
    return tuple(edit for edit in found if edit is not None)


def unset(site: Site) -> tuple[KeyEdit, ...]:
    """The wanted instructions that aren't set yet."""
    listed = opencode_config.entries(site)
    return tuple(edit for edit in key_edits(site) if edit.value not in listed)


def native_name(site: Site) -> str:
    """The name that OpenCode reads in the root by itself; anything but a dangling link counts."""
    off = opencode_config.claude_switched_off(site)
    for name in NAMES:
        there = site.file(name).kind not in (FileKind.ABSENT, FileKind.DANGLING)
        if there and not (off and name == CLAUDE):
            return name
    return ""


def bridge_problem(site: Site) -> str:
    """Why OpenCode can't get a file of its own here, "" if it can."""
    folder = site.file(opencode_config.FOLDER)
    if folder.kind not in (FileKind.ABSENT, FileKind.DIRECTORY):
        return f"{opencode_config.FOLDER} is no directory of the project's own"
    file = site.file(BRIDGE)
    if file.kind is FileKind.SYMLINK:
        return f"{BRIDGE} is a symlink"
    closed = agents_md.why_closed(site, file)
    if closed:
        return f"{BRIDGE} can't be used: {closed}"
    if opencode_config.place_for(site, BRIDGE, ENTRIES) is None:
        return "none of its settings files in the project can be changed"
    return ""


def _agents_md_is_ours(site: Site) -> bool:
    """Whether AGENTS.md is made by us or will be: there is nothing but our block in it."""
    if NAME not in site.used or agents_md.why_not(site):
        return False
    file = site.file(agents_md.NAME)
    return file.kind is FileKind.ABSENT or not agents_md.user_text(file.data).strip()


def _agents_md_above(site: Site) -> bool:
    """Whether an AGENTS.md above the checkout hides the other names already; inside Git none counts."""
    return not site.is_git and any(path.name == agents_md.NAME for path in site.parents)


def _first_name(site: Site, present: set[str]) -> tuple[str, ...]:
    """The one of the names that counts, unless that is AGENTS.md."""
    above = set() if site.is_git else {path.name for path in site.parents}
    known = present | above
    if agents_md.NAME in known:
        return ()
    off = opencode_config.claude_switched_off(site)
    return tuple(name for name in NAMES[1:] if name in known and not (off and name == CLAUDE))[:1]


def _hides(site: Site, file: InstructionFile) -> bool:
    """Whether AGENTS.md beside `file` hides text of the user's: they aren't one file."""
    return file.readable and not file.is_same(site.file(agents_md.NAME))


def _others_with_a_block(site: Site) -> list[InstructionFile]:
    """Where AGENTS.md can't be used: files with another harness's block that OpenCode reads all the same.

    None where hooks bring the others the facts: they would get those twice.
    """
    if site.project is None or site.project.delivery == "hooks":
        return []
    codex = next((name for name in agents_md.root_names(site) if site.file(name).readable), "")
    found = []
    for name in NAMES[1:]:
        file = site.file(name)
        usable = file.readable and file.inside and not agents_md.would_publish(site, file)
        has_block = name == CLAUDE or (name == codex and name in codex_config.fallback_names(site))
        if usable and has_block and (native_name(site) == name or opencode_config.lists(site, file.path)):
            found.append(file)
    return found


def _carriers_hidden_below(site: Site) -> tuple[str, ...]:
    """Carriers in the root that an AGENTS.md below it hides from sessions started there."""
    names = tuple(site.file(carrier.path).name for carrier in carriers(site) if carrier.kind == "block")
    below = any(PurePosixPath(nested.name).name == agents_md.NAME for nested in site.nested)
    return tuple(name for name in names if name != agents_md.NAME and below)


def _is_listed_for_us(site: Site, name: str) -> bool:
    """Whether a settings file that isn't the repository's lists exactly this name: it stays as it is then."""
    return any(
        name in layer.entries and not site.file(layer.path).tracked
        for layer in opencode_config.project_layers(site)
    )


def _instruction(site: Site, entry: str, why: str) -> KeyEdit | None:
    place = opencode_config.place_for(site, entry, ENTRIES)
    if place is None:
        return None
    return KeyEdit(
        path=place.path,
        format="json",
        key=(opencode_config.INSTRUCTIONS,),
        value=entry,
        why=why,
        only_if="OpenCode is in use",
        local=not place.tracked,
        element=True,
    )


def _block_in(file: InstructionFile) -> Carrier:
    return Carrier(
        path=file.path,
        kind="block",
        scope=Scope.PROJECT,
        readers=(NAME,),
        create=False,
        local=False,
        why="OpenCode reads it",
    )


def _bridge(site: Site, why: str) -> Carrier:
    return Carrier(
        path=site.file(BRIDGE).path,
        kind="own",
        scope=Scope.PROJECT,
        readers=(NAME,),
        create=True,
        local=True,
        budget=NO_LIMIT,
        why=why,
    )
