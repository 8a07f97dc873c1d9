"""A directory of memories that Claude Code wrote: `MEMORY.md` as its index, one markdown file a memory.

Checked with Claude Code 2.1.332: frontmatter `name`, `description`, `metadata` (`type`, `originSessionId`,
`modified`, `node_type: memory`). A memory with frontmatter comes in byte for byte. A directory that has
nothing but a MEMORY.md with text in it (older stores) comes in as that one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_bridge.memory.fact import EmptyFact, FactProblem, is_fact_name, parse_fact, set_keys
from agent_bridge.memory.naming import safe_stem
from agent_bridge.projection.importing.items import Found, Item, Kind, Left
from agent_bridge.projection.importing.pages import read_page
from agent_bridge.projection.importing.tree import Tree

INDEX = "MEMORY.md"

_INDEX_LINE = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\[[^\]]*\]\([^)]*\).*|[ \t]*(?:#.*)?")


def read(tree: Tree) -> Iterator[Found]:
    """Everything in the directory."""
    has_memories = any(is_fact_name(name.rsplit("/", 1)[-1]) for name in tree.names)
    for name in tree.names:
        base = name.rsplit("/", 1)[-1]
        if base == INDEX:
            yield _index(tree, name, is_all=not has_memories)
        elif not is_fact_name(base):
            yield Left(name, "it is no markdown file")
        else:
            yield _memory(tree, name)


def _memory(tree: Tree, name: str) -> Found:
    try:
        data = tree.data(name)
        fact = parse_fact(name, data)
        if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
            data = set_keys(data, {"source": Kind.CLAUDE.source})
    except EmptyFact as problem:
        return Left(name, problem.reason)
    except FactProblem as problem:
        return Left(name, problem.reason, refused=True)
    return Item(name, fact.body, title=fact.title, data=data, stem=safe_stem(name, fact.body))


def _index(tree: Tree, name: str, *, is_all: bool) -> Found:
    try:
        body = read_page(tree.text(name)).body
    except FactProblem as problem:
        return Left(name, problem.reason, refused=True)
    inline = any(_INDEX_LINE.fullmatch(line) is None for line in body.split("\n"))
    if is_all and inline:
        return Item(name, body, title="Memory")
    why = "it is the index of the others"
    return Left(name, f"{why}; it holds text besides, look at it" if inline else why)
