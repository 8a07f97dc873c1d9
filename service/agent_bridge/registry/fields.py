"""Taking typed fields out of a JSON object that somebody else wrote. Every refusal names its field.

Absent and null are the same. Nothing is converted: "1" is no number and 0 is no false.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Mapping
from typing import Any, TypeVar

from agent_bridge.channel import ids
from agent_bridge.channel.errors import InvalidError
from agent_bridge.registry.strict_json import check_free

NAME_LIMIT = 200
"""Characters of a name that is shown to people."""
TEXT_LIMIT = 4096
"""Characters of a path, an address or an explanation."""
LARGEST_TIME = 2**53 - 1
"""The largest number that every JSON reader takes for what it is."""

_Word = TypeVar("_Word", bound=enum.StrEnum)
# Line breaks and control characters.
_BREAKS = frozenset({"Cc", "Zl", "Zp"})
# Nobody sees these: with one more a name looks like somebody else's. Scripts and emoji need the joiners.
_UNSEEN = frozenset({"Cf"})
_JOINERS = frozenset("\u200c\u200d")


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """`value`, which must be a JSON object."""
    if not isinstance(value, dict):
        raise InvalidError(f"{what} must be a JSON object")
    return value


def optional_mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object of which only some fields are looked at; empty where it is left out."""
    value = data.get(name)
    return {} if value is None else mapping(value, name)


def identifier(data: Mapping[str, Any], name: str) -> str:
    """A required id."""
    value = data.get(name)
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    return ids.checked_id(value, name)


def optional_identifier(data: Mapping[str, Any], name: str) -> str | None:
    """An id that may be left out."""
    return None if data.get(name) is None else identifier(data, name)


def text(data: Mapping[str, Any], name: str, limit: int | None = None) -> str:
    """A required string with at least one character."""
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(name, "a string that isn't empty", value)
    if limit is not None and len(value) > limit:
        raise InvalidError(f"{name} can't be used", detail=f"it has more than {limit} characters")
    return value


def optional_text(data: Mapping[str, Any], name: str, limit: int = TEXT_LIMIT) -> str | None:
    """A string that may be left out or empty."""
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    if len(value) > limit:
        raise InvalidError(f"{name} can't be used", detail=f"it has more than {limit} characters")
    return value


def optional_line(data: Mapping[str, Any], name: str, limit: int = NAME_LIMIT) -> str | None:
    """A string for display: without line breaks, control characters, and what turns a text's direction or
    can't be seen."""
    value = optional_text(data, name, limit)
    if value is not None and not (value.isascii() and value.isprintable()):
        for character in value:
            kind = unicodedata.category(character)
            if kind in _BREAKS or (kind in _UNSEEN and character not in _JOINERS):
                raise InvalidError(
                    f"{name} can't be used", detail=f"it holds the character U+{ord(character):04X}"
                )
    return value


def flag(data: Mapping[str, Any], name: str) -> bool | None:
    """True, false, or None where it is left out."""
    value = data.get(name)
    if value is not None and value is not True and value is not False:
        raise _wrong(name, "true or false", value)
    return value


def whole(data: Mapping[str, Any], name: str, largest: int = LARGEST_TIME) -> int | None:
    """A whole number from 0 to `largest`, or None where it is left out."""
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise _wrong(name, f"a whole number from 0 to {largest}", value)
    return value


def word(data: Mapping[str, Any], name: str, words: type[_Word]) -> _Word:
    """One of the words of an enumeration."""
    value = data.get(name)
    known = words._value2member_map_.get(value) if isinstance(value, str) else None
    if not isinstance(known, words):
        raise _wrong(name, f"one of {', '.join(words)}", value)
    return known


def free(data: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """An object with anything in it, not too deep and not too large, or None where it is left out."""
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _wrong(name, "a JSON object", value)
    check_free(value, name)
    return value


def _wrong(name: str, wanted: str, value: object) -> InvalidError:
    if value is None:
        return InvalidError(f"{name} is required", detail=f"it must be {wanted}")
    return InvalidError(f"{name} can't be used", detail=f"it must be {wanted}")
