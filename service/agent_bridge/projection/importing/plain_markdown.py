"""Markdown files of any origin, for who says `--as markdown`: each file is one fact.

Keys that facts have (`title` or `name`, `description`, `type`, `tags`, times, `private`, `pinned`) count;
others are not kept. Where there is no time, the file's own counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_bridge.memory.fact import FactProblem, parse_fact
from agent_bridge.memory.frontmatter import one_line
from agent_bridge.projection.importing.items import Found, Item, Left
from agent_bridge.projection.importing.pages import is_markdown, iso_of, read_page, time_of, words_of
from agent_bridge.projection.importing.tree import Tree


def read(tree: Tree) -> Iterator[Found]:
    """Every markdown file."""
    for name in tree.names:
        if not is_markdown(name):
            yield Left(name, "it is no markdown file")
            continue
        try:
            yield _page(tree, name)
        except FactProblem as problem:
            yield Left(name, problem.reason, refused=True)


def _page(tree: Tree, name: str) -> Found:
    page = read_page(tree.text(name))
    if not page.body:
        return Left(name, "the file is empty")
    known = parse_fact(name, tree.data(name))
    written = iso_of(tree.modified(name))
    return Item(
        name,
        page.body,
        title=one_line(page.keys.get("title")) or known.name,
        description=known.description,
        type=known.type,
        tags=words_of(page.keys.get("tags")) or known.tags,
        created_at=known.created_at or time_of(page.keys, "created", "date") or written,
        updated_at=known.updated_at or time_of(page.keys, "updated") or written,
        private=known.private,
        pinned=known.pinned,
    )
