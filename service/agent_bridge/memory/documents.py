"""The three documents that people keep in a store and that are projected whole. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import EmptyFact, FactProblem, decode, has_conflict, is_private, plain_body
from agent_bridge.memory.secrets import find_secrets

DOCUMENTS = ("conventions.md", "context.md", "preferences.md")
"""Names directly below the store, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Document:
    """One of the documents; `text` has LF line ends and no frontmatter."""

    name: str
    text: str


def parse_document(name: str, data: bytes) -> Document:
    """Read a document. Raises EmptyFact where a heading at most stands, FactProblem if it must stay out."""
    text = decode(data)
    parts = frontmatter.split(text)
    keys = frontmatter.read_mapping(text[parts.start : parts.end])
    body = plain_body(text[parts.body :])
    if not body or (body.startswith("#") and "\n" not in body):
        raise EmptyFact("the document is empty")
    if has_conflict(body):
        raise FactProblem("it holds Git's conflict markers", "Resolve the conflict.")
    found = find_secrets(text)
    if found:
        raise FactProblem(
            f"it holds a credential ({found[0].kind}) and is shown to no agent",
            "Take it out of the file, and replace it where it is used if Git has seen it.",
        )
    if is_private(frontmatter.lookup(keys, "private", "Private", "PRIVATE"), "document"):
        raise FactProblem("documents are shared and can't be private", "Put private text into a fact.")
    return Document(name, body)
