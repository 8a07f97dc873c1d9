"""The parameters of a tool as the JSON Schema that clients are told: flat, and of few words.

Providers of models take different parts of JSON Schema, and clients drop or rewrite what they don't know:
Codex 0.171.0 and Gemini CLI 0.61.0 pass on only a few keywords, and a `$ref` or an `anyOf` with null makes
some of them refuse a tool. So there is one object, its properties have plain types, and what may be left out
isn't required. What a schema doesn't say is still checked by the model itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_bridge.mcp.tool import Parameters

_KEPT = ("type", "description", "enum", "items", "default", "minimum", "maximum")
"""What is told of a property, in this order."""
_LEFT_OUT = (
    "title",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "format",
    "uniqueItems",
    "examples",
)
"""What is checked here, but not told: the description says what a model has to know of it."""


def input_schema(parameters: type[Parameters]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, by the first name of each.

    Raises ValueError where the parameters can't be said so: a nested object, a choice of types.
    """
    whole = parameters.model_json_schema(by_alias=True)
    definitions = whole.get("$defs", {})
    properties = {
        name: _flat(f"{parameters.__name__}.{name}", told, definitions)
        for name, told in whole.get("properties", {}).items()
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if whole.get("required"):
        schema["required"] = whole["required"]
    return schema | {"additionalProperties": False}


def _flat(where: str, told: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """One property without references and null; `where` names it in an error."""
    found = _resolved(where, told, definitions)
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if found.get("default", 0) in (None, [], ""):
        del found["default"]
    unknown = found.keys() - {*_KEPT, *_LEFT_OUT}
    if unknown or not isinstance(found.get("type"), str) or found["type"] == "object":
        raise ValueError(f"{where}: clients can't be told this: {sorted(unknown) or found.get('type')}")
    if "items" in found:
        found["items"] = _flat(f"{where}[]", found["items"], definitions)
    return {key: found[key] for key in _KEPT if key in found}


def _resolved(where: str, told: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The property with what its reference names, and as the one type that it may have besides null."""
    found = dict(told)
    if "$ref" in found:
        name = str(found.pop("$ref")).rpartition("/")[2]
        named = _resolved(where, definitions[name], definitions)
        named.pop("description", None)  # the docstring of a class, which is for readers of the code
        found = {**named, **found}
    if "anyOf" in found:
        choices = [one for one in found.pop("anyOf") if one.get("type") != "null"]
        if len(choices) != 1:
            raise ValueError(f"{where}: clients can't be told a choice of types")
        found = {**_resolved(where, choices[0], definitions), **found}
    return found
