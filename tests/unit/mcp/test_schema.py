"""Parameters as clients are told them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, Field

from agent_bridge.mcp.schema import input_schema
from agent_bridge.mcp.tool import Parameters


class _Colour(StrEnum):
    """What only readers of this code are told."""

    RED = "red"
    BLUE = "blue"


class _All(Parameters):
    """Every form that a parameter of ours may have."""

    text: str = Field(validation_alias=AliasChoices("text", "content"), description="What.", max_length=9)
    client_id: str | None = Field(None, validation_alias=AliasChoices("clientId", "client_id"))
    limit: int = Field(10, ge=1, le=50)
    share: float | None = None
    pinned: bool = False
    only: Literal["one"] | None = None
    scope: Literal["project", "global"] = "project"
    tags: tuple[str, ...] = ()
    colour: _Colour | None = None
    colours: list[_Colour] | None = Field(None, description="Which.")


def test_a_schema() -> None:
    colours = {"type": "string", "enum": ["red", "blue"]}
    assert input_schema(_All) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What."},
            "clientId": {"type": "string"},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50},
            "share": {"type": "number"},
            "pinned": {"type": "boolean", "default": False},
            "only": {"type": "string", "enum": ["one"]},
            "scope": {"type": "string", "enum": ["project", "global"], "default": "project"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "colour": colours,
            "colours": {"type": "array", "description": "Which.", "items": colours},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_no_parameters() -> None:
    assert input_schema(Parameters) == {"type": "object", "properties": {}, "additionalProperties": False}


class _Inner(BaseModel):
    one: str


@pytest.mark.parametrize(
    "annotation",
    [int | str, list[int] | str, _Inner, list[_Inner], dict[str, str], Any, Annotated[int, Field(gt=0)]],
    ids=str,
)
def test_what_cannot_be_said_flat_is_refused(annotation: object) -> None:
    made = type("_Made", (Parameters,), {"__annotations__": {"one": annotation}})

    with pytest.raises(ValueError, match=r"_Made\.one"):
        input_schema(made)
