"""What is to become a fact, and what a fact is to become. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent_bridge.errors import UsageError
from agent_bridge.memory.fact import (
    Fact,
    FactProblem,
    new_fact_bytes,
    parse_fact,
    plain_body,
    replace_body,
    set_keys,
    with_heading,
)
from agent_bridge.memory.secrets import find_secrets
from agent_bridge.memory.times import iso


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A text, and what is known about it.

    `source` names who wants it remembered; `origin` the file or the session that it comes from.
    """

    text: str
    tags: tuple[str, ...] = ()
    type: str = "project"
    source: str = "cli"
    private: bool = False
    title: str | None = None
    pinned: bool = False
    origin: str = ""

    @property
    def holds_secret(self) -> bool:
        """Whether the text seems to hold a credential."""
        return bool(find_secrets(self.text))

    def content(self, fact_id: str, now: datetime) -> bytes:
        """The bytes of the fact's file; a text that holds a credential is private."""
        return new_fact_bytes(
            self.text,
            fact_id=fact_id,
            now=now,
            type=self.type,
            tags=tuple(dict.fromkeys(tag for tag in (" ".join(tag.split()) for tag in self.tags) if tag)),
            source=self.source,
            private=self.private or self.holds_secret,
            pinned=self.pinned,
            title=self.title,
            origin=self.origin,
        )

    def check(self, now: datetime) -> None:
        """Raise UsageError where this can't become a fact."""
        check_text(plain_body(self.text), self.content("00000000-0000-check", now))


def check_text(text: str, data: bytes) -> None:
    """Raise UsageError where there is no text, or where a file of these bytes is no fact."""
    if not text:
        raise UsageError("There is no text to remember.")
    try:
        parse_fact("check.md", data)
    except FactProblem as problem:
        raise UsageError(
            f"This text can't be remembered: {problem.reason}.", remedy=problem.remedy
        ) from problem


def revised(
    data: bytes,
    fact: Fact,
    *,
    text: str | None,
    title: str | None,
    tags: Iterable[str] | None,
    now: datetime,
) -> bytes:
    """The bytes of a fact's file with another text, title or tags; what is None stays.

    A title is the first heading of the text where it has one, else the key `name`. Raises FactProblem.
    """
    keys: dict[str, object] = {"updated_at": iso(now)}
    if tags is not None:
        keys["tags"] = tuple(tags) or None
    if title is not None:
        headed = with_heading(fact.body if text is None else plain_body(text), title)
        if headed is None:
            keys["name"] = title
        else:
            text = headed
    return set_keys(data if text is None else replace_body(data, text), keys)
