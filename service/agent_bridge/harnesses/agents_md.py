"""The one AGENTS.md that several harnesses read: may it be used or created, and its budget. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from agent_bridge.harnesses import codex_config, managed_block
from agent_bridge.harnesses.base import LEAST_BUDGET, Carrier, FileKind, InstructionFile, Scope, Site

NAME = "AGENTS.md"
OVERRIDE = "AGENTS.override.md"

_LINE_ENDS = 8
"""Bytes kept free for the line ends that a block brings along."""


def shared_carrier(site: Site, name: str) -> tuple[Carrier, ...]:
    """AGENTS.md as the carrier of harness `name`, which reads it too; () where it can't be used (`why_not`).

    One block serves all its readers, so it has the budget that Codex leaves.
    """
    if why_not(site):
        return ()
    file = site.file(NAME)
    return (
        Carrier(
            path=file.path,
            kind="block",
            scope=Scope.PROJECT,
            readers=(name,),
            create=file.kind is FileKind.ABSENT,
            local=True,
            budget=budget(site, file),
            why=f"{name} reads it",
        ),
    )


def why_not(site: Site) -> str:
    """Why AGENTS.md can't be the file that several harnesses share here, "" if it can."""
    if site.project is None:
        return "it belongs to projects"
    if site.project.delivery == "hooks":
        return "this project has asked for no blocks in files"
    file = site.file(NAME)
    closed = why_closed(site, file)
    if closed:
        return closed
    hidden = would_hide(site)
    if hidden:
        return f"it would hide {', '.join(hidden)} from Codex"
    room = budget(site, file)
    return f"the user's own text leaves {max(room, 0)} bytes for it" if room < LEAST_BUDGET else ""


def would_publish(site: Site, file: InstructionFile) -> bool:
    """Whether Git tracks a file while the whole store is to stay out of Git."""
    return site.project is not None and site.project.mode == "local" and file.tracked


def why_unusable(file: InstructionFile) -> str:
    """Why no block can be written into a file, which need not be there; "" if one can."""
    if file.kind is FileKind.DANGLING:
        return "it is a symlink that leads nowhere"
    if file.is_directory:
        return "it is a directory"
    if file.kind is FileKind.OTHER:
        return file.problem or "it is no regular file"
    if not file.inside:
        how = "it would lie in" if file.kind is FileKind.ABSENT else "it is a symlink to"
        return f"{how} {file.real}, outside of the repository"
    return ""


def why_closed(site: Site, file: InstructionFile) -> str:
    """Why no block may be written into a file here, which need not be there; "" if one may."""
    published = "Git tracks it, and the store is kept out of Git" if would_publish(site, file) else ""
    return why_unusable(file) or published


def why_no_folders(site: Site, *names: str) -> str:
    """Why nothing can be made in these directories of the checkout, there or not; "" if it can."""
    for place in map(site.file, names):
        if place.kind is not FileKind.ABSENT and not place.is_directory:
            return f"{place.name} is no directory"
        if not place.inside:
            return f"{place.name} leads to {place.real}, outside of the repository"
    return ""


def would_hide(site: Site) -> tuple[str, ...]:
    """Files that a new AGENTS.md would hide from a harness: Codex's fallback names (0.171.0)."""
    if site.file(NAME).readable:
        return ()
    return tuple(name for name in codex_config.fallback_names(site) if site.file(name).readable)


def hidden_from_others(site: Site) -> tuple[str, ...]:
    """Files of the root that programs which read the first of several names show no more beside AGENTS.md.

    OpenCode 1.18.33, by running it; Zed and Amp by their documents. Here it is mended by settings; those who
    get an AGENTS.md by Git have none.
    """
    names = ("CLAUDE.md", "CONTEXT.md")
    return () if site.file(NAME).readable else tuple(name for name in names if site.file(name).readable)


def root_names(site: Site) -> tuple[str, ...]:
    """The names of which Codex reads the first that exists, in each directory."""
    return (OVERRIDE, NAME, *codex_config.fallback_names(site))


def budget(site: Site, carrier: InstructionFile) -> int:
    """The most bytes that our block may have in `carrier` so that Codex cuts no text of the user.

    `project_doc_max_bytes` is spent from the root downward over one file a directory (0.171.0), so the
    largest chain of user text is taken off: the root's file without our block, and the files on the way to
    the deepest directory that has any. 0 or less means no room.
    """
    return codex_config.max_bytes(site) - user_size(carrier.data) - _largest_chain_below(site) - _LINE_ENDS


def says_something(file: InstructionFile) -> bool:
    """Whether anything but white space and our block stands in a file."""
    return bool(user_text(file.data).strip())


def user_size(data: bytes) -> int:
    """The bytes of a file without our block."""
    return len(user_text(data))


def user_text(data: bytes) -> bytes:
    """A file without our block."""
    return b"".join(managed_block.around(data))


def _largest_chain_below(site: Site) -> int:
    """The most bytes that Codex reads below the root on the way to any one directory."""
    order = {name: number for number, name in enumerate(root_names(site))}
    chosen: dict[PurePosixPath, tuple[int, int]] = {}
    for nested in site.nested:
        path = PurePosixPath(nested.name)
        number = order.get(path.name)
        if number is None or not path.parent.parts:
            continue
        here = (number, nested.size)
        chosen[path.parent] = min(chosen.get(path.parent, here), here)
    chains = (sum(chosen[at][1] for at in (here, *here.parents) if at in chosen) for here in chosen)
    return max(chains, default=0)
