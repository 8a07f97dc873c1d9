"""What stands at a path: recognised by its shape, never by what somebody calls it.

Reads the disk, changes nothing. A directory is looked at itself and for the directory of a tool in it
(`.memory`, `.rulesync`, `.ruler`), so a project's root will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge.errors import NotFoundError, UsageError
from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.frontmatter import Value
from agent_bridge.projection.importing import (
    basic_memory,
    claude_memory,
    memory_bridge,
    plain_markdown,
    ruler,
    rulesync,
)
from agent_bridge.projection.importing.items import Found, Kind
from agent_bridge.projection.importing.pages import is_markdown
from agent_bridge.projection.importing.tree import Tree, read_bounded, single_file, walk

_READERS: dict[Kind, Callable[[Tree], Iterator[Found]]] = {
    Kind.MEMORY_BRIDGE: memory_bridge.read,
    Kind.CLAUDE: claude_memory.read,
    Kind.BASIC_MEMORY: basic_memory.read,
    Kind.RULESYNC: rulesync.read,
    Kind.RULER: ruler.read,
    Kind.MARKDOWN: plain_markdown.read,
}
_NAMED = {
    Kind.MEMORY_BRIDGE: ".memory",
    Kind.RULESYNC: ".rulesync",
    Kind.RULER: ruler.DIRECTORY,
}
_HIDDEN = {Kind.RULER: frozenset({ruler.DIRECTORY}), Kind.RULESYNC: frozenset({rulesync.CURATED})}
_LOOKED_AT = 200
"""So many notes of a directory are opened to see whose they are."""

_CONFIG_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """A recognised place: what it is, and its directory or file (a real path)."""

    kind: Kind
    path: Path

    def tree(self) -> Tree:
        """Its files."""
        if self.path.is_file():
            return single_file(self.path)
        tree = walk(self.path, hidden=_HIDDEN.get(self.kind, frozenset()))
        if self.kind is Kind.RULER and self.path.name != ruler.DIRECTORY:
            # The project around the rules isn't the import's business.
            left = tuple(one for one in tree.left if f"/{ruler.DIRECTORY}/" in f"/{one.origin}")
            return replace(tree, left=left)
        return tree

    def read(self, tree: Tree, private: frozenset[str] = frozenset()) -> Iterator[Found]:
        """Its texts; `private` are paths of facts that are private there."""
        if self.kind is Kind.MEMORY_BRIDGE:
            return memory_bridge.read(tree, private)
        return _READERS[self.kind](tree)


def recognise(path: Path, kind: Kind | None = None) -> Source:
    """What stands at `path`; `kind` is what somebody says it is.

    Raises NotFoundError where nothing is, UsageError where it isn't recognised, or is several things.
    """
    real = _real(path)
    if not (real.is_file() or real.is_dir()):
        raise UsageError("This is neither a directory nor a file", path=path)
    if kind is not None:
        return Source(kind, _place(real, kind))
    if real.is_file():
        raise _unrecognised_file(real)
    found = [(one, place) for one, name in _NAMED.items() if (place := _tools_place(real, name)) is not None]
    if len(found) > 1:
        names = ", ".join(str(place) for _, place in found)
        raise UsageError(
            "This directory holds several things to import",
            path=path,
            detail=names,
            remedy="Name one of them.",
        )
    if found:
        return Source(*found[0])
    known = _by_content(real)
    if known is None:
        raise _unrecognised(real)
    return Source(known, real)


def _real(path: Path) -> Path:
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError("There is nothing to import", path=path) from None
    except (OSError, RuntimeError) as error:  # no rights, a loop of links, a home of nobody's
        raise UsageError("This can't be read", path=path, detail=str(error)) from error


def _place(real: Path, kind: Kind) -> Path:
    """The tool's directory in `real`, or `real` itself."""
    name = _NAMED.get(kind)
    place = None if name is None or real.is_file() else _tools_place(real, name)
    return place or real


def _tools_place(real: Path, name: str) -> Path | None:
    if real.name == name:
        return real
    inside = real / name
    if not inside.is_dir():
        return None
    # Further .ruler directories below apply to where they stand, so the whole project is the source.
    return real if name == ruler.DIRECTORY else inside.resolve()


def _by_content(real: Path) -> Kind | None:
    if (real / "index.json").is_file() and (real / "entries").is_dir():
        return Kind.MEMORY_BRIDGE
    tree = walk(real)
    heads = list(_heads(tree))
    # A link isn't among a tree's names: Claude's index is asked for by its file.
    if (real / claude_memory.INDEX).is_file() and not any("permalink" in head for head in heads):
        return Kind.CLAUDE
    if not heads:
        return None
    if any("permalink" in head for head in heads) or _most(
        heads, lambda head: {"title", "type"} <= set(head)
    ):
        return Kind.BASIC_MEMORY
    if _most(heads, _is_claudes):
        return Kind.CLAUDE
    if "ruler.toml" in tree.names:
        return Kind.RULER
    if _most(heads, lambda head: "targets" in head and ("root" in head or "globs" in head)):
        return Kind.RULESYNC
    return None


def _is_claudes(head: dict[str, Value]) -> bool:
    return {"name", "description"} <= set(head) and ("metadata" in head or "type" in head)


def _most(heads: list[dict[str, Value]], fits: Callable[[dict[str, Value]], bool]) -> bool:
    return 2 * sum(map(fits, heads)) > len(heads)


def _heads(tree: Tree) -> Iterator[dict[str, Value]]:
    for name in [name for name in tree.names if is_markdown(name)][:_LOOKED_AT]:
        try:
            text = tree.text(name)
            parts = frontmatter.split(text)
            yield frontmatter.read_mapping(text[parts.start : parts.end])
        except FactProblem:
            continue


def _unrecognised_file(real: Path) -> UsageError:
    if real.name == basic_memory.CONFIG:
        return _about_config(real) or _unrecognised(real)
    return _unrecognised(real)


def _unrecognised(real: Path) -> UsageError:
    config = real / basic_memory.CONFIG
    about = _about_config(config) if config.is_file() else None
    return about or UsageError(
        "This isn't recognised as anything to import",
        path=real,
        remedy=f"Say what it is: --as {', '.join(kind.value for kind in Kind)}.",
    )


def _about_config(config: Path) -> UsageError | None:
    try:
        listed = basic_memory.projects_in(read_bounded(config, config.parent, _CONFIG_LIMIT))
    except FactProblem:
        return None
    if not listed:
        return None
    return UsageError(
        "This is basic-memory's configuration, not its notes",
        path=config,
        detail="It lists: " + ", ".join(f"{name} ({place})" for name, place in sorted(listed.items())),
        remedy="Import one of these directories.",
    )
