"""The parameters of the memory tools, with the names that models use for them by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from agent_bridge.mcp.tool import Parameters
from agent_bridge.memory.visible import visible

TITLE_CHARACTERS = 120
"""A longer title is cut wherever it is shown."""
MOST_TAGS, TAG_CHARACTERS = 20, 60
MOST_HITS, MOST_LISTED = 50, 200

FactType = Literal["project", "feedback", "user", "reference", "decision"]
WriteScope = Literal["project", "global"]
ReadScope = Literal["project", "global", "both"]

_ID = AliasChoices("id", "fact", "factId", "fact_id")
_TEXT = AliasChoices("text", "content", "fact")


def _folded(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def _parted(value: object) -> object:
    """Tags as a list where they were given as one text."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a surrogate pair; give it as plain Unicode text") from error
    return text


def _plain_title(text: str) -> str:
    title = " ".join(visible(_encodable(text)).split())
    if not title:
        raise ValueError("it is empty; leave it out, or give a few words")
    if len(title) > TITLE_CHARACTERS:
        raise ValueError(f"it has {len(title)} characters; {TITLE_CHARACTERS} are the most, on one line")
    return title


def _plain_tags(tags: list[str]) -> list[str]:
    plain = list(dict.fromkeys(tag for tag in map(_plain_tag, tags) if tag))
    if len(plain) > MOST_TAGS:
        raise ValueError(f"there are {len(plain)} tags; {MOST_TAGS} are the most")
    return plain


def _plain_tag(text: str) -> str:
    tag = " ".join(visible(_encodable(text)).split()).strip("#\"'")
    if len(tag) > TAG_CHARACTERS or "," in tag:
        raise ValueError(f"a tag is a word or two without commas, of at most {TAG_CHARACTERS} characters")
    return tag


def _plain_id(text: str) -> str:
    fact_id = _encodable(text).strip().strip("[]`").strip()
    if not fact_id or len(fact_id) > 1000:
        raise ValueError("give the id as `recall` and `list_memory` show it in brackets")
    return fact_id


_Title = Annotated[str, AfterValidator(_plain_title)]
_Tags = Annotated[list[str], BeforeValidator(_parted), AfterValidator(_plain_tags)]
_Id = Annotated[str, AfterValidator(_plain_id)]
_Text = Annotated[str, AfterValidator(_encodable)]
_Type = Annotated[FactType, BeforeValidator(_folded)]
_WriteScope = Annotated[WriteScope, BeforeValidator(_folded)]
_ReadScope = Annotated[ReadScope, BeforeValidator(_folded)]


class MemoryParameters(Parameters):
    """What may be left out may be null too: some models fill in every parameter."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if value is not None}


class Remember(MemoryParameters):
    """Parameters of `remember`."""

    text: _Text = Field(
        validation_alias=_TEXT,
        description="What to remember: one fact that stands by itself, in markdown.",
    )
    title: _Title | None = Field(
        None, description="A short title; without it a heading or the first line of the text is taken."
    )
    tags: _Tags = Field(default_factory=list, description="A few words to find it by.")
    type: _Type = Field(
        "project",
        description="project: how this project works. feedback: how the user wants things done. "
        "user: about the user, kept private. reference: where something is found. decision: what was "
        "decided and why.",
    )
    scope: _WriteScope = Field(
        "project", description="project: this project only. global: all of the user's projects."
    )
    pinned: bool = Field(default=False, description="Put it before all other facts.")
    private: bool = Field(default=False, description="Keep it out of Git and of files that others see.")


class Recall(MemoryParameters):
    """Parameters of `recall`."""

    query: _Text = Field(
        "",
        validation_alias=AliasChoices("query", "words", "text"),
        max_length=1000,
        description="A few words that the fact holds, in any order.",
    )
    scope: _ReadScope = Field("both", description="Whose facts to look through.")
    limit: int = Field(10, ge=1, le=MOST_HITS, description="The most facts to answer with.")
    id: _Id | None = Field(
        None, validation_alias=_ID, description="Show this one fact whole, instead of a query."
    )
    offset: int = Field(
        0, ge=0, le=1 << 21, description="With id: the character to begin at, for very long facts."
    )


class ListMemory(MemoryParameters):
    """Parameters of `list_memory`."""

    scope: _ReadScope = Field("both", description="Whose facts to list.")
    tag: str | None = Field(None, max_length=200, description="Only facts with this tag.")
    type: str | None = Field(
        None,
        max_length=40,
        description="Only facts of this type: project, feedback, user, reference, decision.",
    )
    limit: int = Field(50, ge=1, le=MOST_LISTED, description="The most facts to list.")
    cursor: str | None = Field(
        None, max_length=4000, description="What the last answer gave, to get the facts after it."
    )


class UpdateMemory(MemoryParameters):
    """Parameters of `update_memory`."""

    id: _Id = Field(validation_alias=_ID, description="The fact's id, as recall shows it in brackets.")
    text: _Text | None = Field(
        None,
        validation_alias=AliasChoices("text", "content"),
        description="The whole new text; it takes the place of the old one.",
    )
    title: _Title | None = Field(None, description="The new title.")
    tags: _Tags | None = Field(None, description="All tags it shall have; an empty list takes them away.")
    scope: _WriteScope | None = Field(
        None, description="Where the fact is; without it the project is looked through first."
    )


class Forget(MemoryParameters):
    """Parameters of `forget`."""

    id: _Id = Field(validation_alias=_ID, description="The fact's id, as recall shows it in brackets.")
    scope: _WriteScope | None = Field(
        None, description="Where the fact is; without it the project is looked through first."
    )
