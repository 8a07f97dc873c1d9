"""How facts look in the command line's answers: as JSON, in a table, in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_bridge.cli.result import Json, Table
from agent_bridge.cli.where import Place
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.store import Snapshot

COLUMNS = ("id", "type", "tags", "title")
PIPED = (0, 2, 3)


def fact_table(rows: Iterable[tuple[Place, Fact]]) -> Table:
    """A row a fact; with its scope where facts of more than one are shown."""
    listed = [(place, presentable(fact)) for place, fact in rows]
    several = len({place.scope for place, _ in listed}) > 1
    return Table(
        columns=(*COLUMNS, "scope") if several else COLUMNS,
        rows=tuple(_row(fact) + ((place.scope.value,) if several else ()) for place, fact in listed),
        piped=PIPED,
    )


def fact_json(place: Place, fact: Fact, private: frozenset[str]) -> dict[str, Json]:
    """The stable fields of a fact, without its text; `private` are the ids that stay out of tracked files."""
    fact = presentable(fact)
    return {
        "id": fact.id,
        "scope": place.scope.value,
        "path": fact.path,
        "title": fact.title,
        "hook": fact.hook,
        "type": fact.type,
        "tags": list(fact.tags),
        "pinned": fact.pinned,
        "private": fact.id in private,
        "secrets": list(fact.secrets),
        "source": fact.source,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
    }


def private_ids(snapshot: Snapshot) -> frozenset[str]:
    """Facts that stay out of Git and of tracked files: marked or judged so, or holding a secret."""
    return frozenset(fact.id for fact in (*snapshot.private, *snapshot.withheld))


def fact_in_full(fact: Fact, *, is_private: bool) -> str:
    """The fact as `show` prints it: a line of what is known about it, then its text."""
    fact = presentable(fact)
    known = [fact.type, *(f"#{tag}" for tag in fact.tags)]
    known += ["pinned"] if fact.pinned else []
    known += ["private"] if is_private else []
    known += [f"from {fact.source}"] if fact.source else []
    known += [fact.updated_at or fact.created_at] if fact.updated_at or fact.created_at else []
    return f"[{fact.id}] {', '.join(known)}\n\n{fact.body.rstrip()}"


def whole_memory(snapshot: Snapshot, heading: str) -> str:
    """Everything that a store remembers as plain markdown: the documents, then each fact with its text."""
    parts = [f"# {heading}"]
    parts += [document.text.strip() for document in snapshot.documents if document.text.strip()]
    parts.append("## Recorded memories")
    parts += [_item(presentable(fact)) for fact in snapshot.facts] or ["- No recorded memories."]
    return "\n\n".join(parts)


def _row(fact: Fact) -> tuple[str, ...]:
    return fact.id, fact.type, tags_shown(fact.tags), fact.title


def tags_shown(tags: Sequence[str]) -> str:
    """Tags in a cell; `untagged` where there are none."""
    return ", ".join(tags) or "untagged"


def _item(fact: Fact) -> str:
    first, *rest = fact.body.strip().splitlines() or [fact.title]
    tags = f" ({', '.join(fact.tags)})" if fact.tags else ""
    if not rest:
        return f"- [{fact.id}] {first}{tags}"
    return "\n".join(
        [f"- [{fact.id}] {fact.title}{tags}", "", *(f"  {line}".rstrip() for line in (first, *rest))]
    )
