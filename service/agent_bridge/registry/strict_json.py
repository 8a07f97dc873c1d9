"""Reading JSON that somebody else wrote: one meaning, or refused.

Refused are what parsers read in different ways or can't hand on: the same key twice, NaN and infinities,
text that isn't UTF-8, half of a surrogate pair, numbers over 64 bits, and nesting that a reader
further on couldn't take.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from pydantic_core import from_json

from agent_bridge.channel.errors import InvalidError

DEPTH_LIMIT = 32
"""How deeply objects and lists may be nested in a free value (`meta`, `payload`, `card`)."""
VALUES_LIMIT = 10_000
"""How many values such a free value may hold."""
COMMAS_LIMIT = 250_000
"""Commas outside of strings that a text may have: reading millions of values would stop everybody."""
LARGEST = 2**63 - 1
"""The largest number, and its negative the smallest, that such a value may hold."""
_DIGITS_LIMIT = 100
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read(text: bytes | bytearray | memoryview | str) -> Any:  # noqa: ANN401 - JSON is anything
    """The value of a JSON text. Raises InvalidError, which says what is wrong with it."""
    try:
        decoded = text if isinstance(text, str) else str(text, "utf-8")
        _check_count(decoded)
        value = _DECODER.decode(decoded)
        if _SURROGATE.search(decoded):
            from_json(decoded)
    except InvalidError:
        raise
    except UnicodeDecodeError as error:
        raise InvalidError("This isn't UTF-8 text", detail=f"byte {error.start}") from None
    except RecursionError:
        raise InvalidError("This JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidError(
            "This isn't JSON", detail=f"{error.msg}, line {error.lineno}, column {error.colno}"
        ) from None
    except ValueError as error:
        raise InvalidError("This JSON can't be read", detail=str(error)) from None
    return value


def check_free(value: object, name: str, most: int = VALUES_LIMIT) -> None:
    """Raise InvalidError, naming `name`, for a value that is too deep or too large to be handed on."""
    left = most
    level = [value]
    for _depth in range(DEPTH_LIMIT + 1):
        left -= len(level)
        if left < 0:
            raise InvalidError(f"{name} can't be used", detail=f"it holds more than {most} values")
        level = _check_level(level, name)
        if not level:
            return
    raise InvalidError(f"{name} can't be used", detail=f"it is nested more than {DEPTH_LIMIT} deep")


def _check_count(text: str) -> None:
    # Counting is quick; passing over the strings isn't, so it is done only where it can matter, and a string
    # at a time: one call for all of them would let no other thread in.
    if text.count(",") <= COMMAS_LIMIT:
        return
    found = end = 0
    for string in _STRING.finditer(text):
        found += text.count(",", end, string.start())
        end = string.end()
        if found > COMMAS_LIMIT:
            break
    if found + text.count(",", end) > COMMAS_LIMIT:
        raise InvalidError("This JSON holds too many values", detail=f"over {COMMAS_LIMIT}")


def _check_level(level: list[object], name: str) -> list[object]:
    below: list[object] = []
    for value in level:
        if isinstance(value, dict):
            below.extend(value.values())
        elif isinstance(value, list):
            below.extend(value)
        elif isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
            raise InvalidError(f"{name} can't be used", detail="a number in it has over 64 bits")
    return below


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise InvalidError("This JSON has a key twice", detail=key[:100])
            seen.add(key)
    return made


def _whole(digits: str) -> int:
    # The time that reading a number takes grows with the square of its length.
    if len(digits) > _DIGITS_LIMIT:
        raise InvalidError("This JSON can't be read", detail=f"a number has over {_DIGITS_LIMIT} digits")
    return int(digits)


def _refuse_constant(constant: str) -> NoReturn:
    raise InvalidError("This isn't JSON", detail=f"{constant} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_whole)
