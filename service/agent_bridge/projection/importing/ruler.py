"""The source directory of ruler: `.ruler/AGENTS.md` (older: `instructions.md`) and every other `*.md` below.

As ruler 0.3 reads it: the files are put together in that order. `ruler.toml` and what lies below `skills/`,
`agents/`, `commands/` isn't text for every session. Further `.ruler` directories deeper in the project apply
to the directory that they stand in, which is written below their rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_bridge.memory.fact import FactProblem
from agent_bridge.projection.importing.items import Found, Item, Left
from agent_bridge.projection.importing.pages import (
    first_heading,
    is_markdown,
    read_page,
    sections_of,
    title_of_name,
)
from agent_bridge.projection.importing.tree import Tree

DIRECTORY = ".ruler"
_OTHER = frozenset({"skills", "agents", "subagents", "commands", "hooks"})


def read(tree: Tree) -> Iterator[Found]:
    """Every rule in a `.ruler` directory, or in all those of the project that `tree` is."""
    for name in tree.names:
        directory, inside, below = _parted(tree, name)
        if not inside:
            continue  # the project's own files
        if not is_markdown(name) or below.split("/", 1)[0] in _OTHER:
            yield Left(name, "it is no rule")
        else:
            yield from _rule(tree, name, below, directory)


def _parted(tree: Tree, name: str) -> tuple[str, bool, str]:
    """Where the `.ruler` directory of a file stands, whether it is in one, and its path below that."""
    if tree.root.name == DIRECTORY:
        return "", True, name
    parts = name.split("/")
    if DIRECTORY not in parts[:-1]:
        return "", False, name
    at = parts.index(DIRECTORY)
    return "/".join(parts[:at]), True, "/".join(parts[at + 1 :])


def _rule(tree: Tree, name: str, below: str, directory: str) -> Iterator[Found]:
    try:
        body = read_page(tree.text(name)).body
    except FactProblem as problem:
        yield Left(name, problem.reason, refused=True)
        return
    if not body:
        yield Left(name, "the file is empty")
        return
    title = first_heading(body) or ("Rules" if below == "AGENTS.md" else title_of_name(below))
    where = f"\n\nApplies below: `{directory}/`" if directory else ""
    for heading, text in sections_of(body):
        yield Item(
            f"{name}#{heading}" if heading else name,
            text + where,
            title=f"{title}: {heading}" if heading else title,
            type="feedback",
            tags=("rule",),
        )
