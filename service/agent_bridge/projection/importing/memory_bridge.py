"""A memory-bridge 0.1 store, or one of ours, of another directory.

Layout: `entries/<id>.md`, `index.json` (`{"version": 1, "entries": […]}`), and three documents that people
keep. Entries stay as they are, id included; only `source` says that they were imported. A document can't stay
one, since the project has its own of that name: it comes in as facts, `conventions.md` and `preferences.md`
of type feedback, `context.md` of type project. An entry that only the index knows comes in from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent_bridge.memory.documents import DOCUMENTS
from agent_bridge.memory.fact import EmptyFact, FactProblem, is_fact_name, parse_fact, plain_body, set_keys
from agent_bridge.memory.frontmatter import split
from agent_bridge.memory.naming import safe_stem
from agent_bridge.memory.times import timestamp
from agent_bridge.projection.importing.items import Found, Item, Kind, Left
from agent_bridge.projection.importing.pages import read_page, sections_of
from agent_bridge.projection.importing.tree import Tree, read_bounded

INDEX = "index.json"
MAX_INDEX = 16 * 1024 * 1024

_TYPES = {"conventions.md": "feedback", "context.md": "project", "preferences.md": "feedback"}


@dataclass(frozen=True, slots=True)
class Row:
    """What index.json says of one entry. `summary` is its whole text; times are ISO UTC, or empty."""

    id: str
    path: str
    summary: str
    tags: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""


def read_rows(data: bytes) -> tuple[Row, ...]:
    """The entries of an index.json. Raises FactProblem where it isn't one."""
    try:
        document = json.loads(data)
        listed = document["entries"]
        if not isinstance(listed, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FactProblem("it is no index of memory-bridge", "The entries are read without it.") from error
    return tuple(row for item in listed if isinstance(item, dict) and (row := _row(item)) is not None)


def read(tree: Tree, private: frozenset[str] = frozenset()) -> Iterator[Found]:
    """Everything in a store. `private`: paths of facts that are judged private there."""
    rows: tuple[Row, ...] = ()
    if INDEX in tree.names:
        try:
            rows = read_rows(read_bounded(tree.root / INDEX, tree.root, MAX_INDEX))
            yield Left(INDEX, "it is an index")
        except FactProblem as problem:
            yield Left(INDEX, problem.reason, refused=True)
    by_path = {row.path: row for row in rows}
    for name in tree.names:
        if name in DOCUMENTS:
            yield from _document(tree, name)
        elif name != INDEX:
            yield _entry(tree, name, by_path.get(name), is_private=name in private)
    yield from (_from_row(row) for row in rows if row.path not in tree.names and row.summary.strip())


def _row(item: Mapping[str, object]) -> Row | None:
    texts = {key: value for key, value in item.items() if isinstance(value, str)}
    if "id" not in texts or "summary" not in texts:
        return None
    tags = item.get("tags")
    return Row(
        id=texts["id"],
        path=texts.get("path", "").replace("\\", "/"),
        summary=texts["summary"],
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        created_at=timestamp(texts.get("createdAt")),
        updated_at=timestamp(texts.get("updatedAt")),
    )


def _entry(tree: Tree, name: str, row: Row | None, *, is_private: bool) -> Found:
    if not is_fact_name(name.rsplit("/", 1)[-1]):
        return Left(name, "it is an index" if name.endswith("MEMORY.md") else "it is no markdown file")
    try:
        data = tree.data(name)
        fact = parse_fact(name, data)
        kept = set_keys(data, {"source": Kind.MEMORY_BRIDGE.source})
        stem = safe_stem(name, fact.body)
        return Item(name, fact.body, title=fact.title, private=is_private, data=kept, stem=stem)
    except EmptyFact as problem:
        return Left(name, problem.reason)
    except FactProblem as problem:
        return _mended(tree, name, row) or Left(name, problem.reason, refused=True)


def _mended(tree: Tree, name: str, row: Row | None) -> Item | None:
    """An entry whose tags broke its frontmatter, as memory-bridge writes them: the index has them whole."""
    if row is None:
        return None
    try:
        text = tree.text(name)
        body = plain_body(text[split(text).body :])
    except FactProblem:
        return None
    return _from_row(row, body or row.summary, name)


def _from_row(row: Row, text: str = "", name: str = "") -> Item:
    return Item(
        name or f"{INDEX}#{row.id}",
        text or plain_body(row.summary),
        tags=row.tags,
        created_at=row.created_at,
        updated_at=row.updated_at,
        fact_id=row.id,
    )


def _document(tree: Tree, name: str) -> Iterator[Found]:
    try:
        body = read_page(tree.text(name)).body
    except FactProblem as problem:
        yield Left(name, problem.reason, refused=True)
        return
    if not body or (body.startswith("#") and "\n" not in body):
        yield Left(name, "the document is empty")
        return
    title = name.removesuffix(".md").capitalize()
    for heading, text in sections_of(body):
        origin = f"{name}#{heading}" if heading else name
        yield Item(origin, text, title=f"{title}: {heading}" if heading else title, type=_TYPES[name])
