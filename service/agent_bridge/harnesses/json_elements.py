"""One element in an array of somebody's JSON file: is it there, add it, remove it; every other byte stays."""

from __future__ import annotations

import copy

from agent_bridge.harnesses.array_text import (
    ArrayText,
    Item,
    Style,
    array_at,
    with_element,
    without_element,
)
from agent_bridge.harnesses.foreign_text import eol_of, place_of, text_of, unwritable
from agent_bridge.harnesses.json_edit import (
    Key,
    checked,
    deepest,
    dumps,
    json_set,
    json_unset,
    literal_of,
    parsed_json,
    same,
    unit_of,
)
from agent_bridge.harnesses.json_text import Node, after_comments_on_line


def json_has_element(data: bytes, key: Key, value: object) -> bool:
    """Whether the array at `key` has an element equal to `value`; False where nothing is at `key`.

    Raises RefusedError (line and column) for what isn't JSON or no array.
    """
    array = _array(text_of(data), tuple(key))
    return array is not None and _index(array, value) is not None


def json_add_element(data: bytes, key: Key, value: object) -> bytes:
    """The file with `value` as the last element of the array at `key`; equal bytes where it is in it.

    A missing array is made. Raises RefusedError (line and column) for what isn't JSON or no array.
    """
    path = tuple(key)
    text = text_of(data)
    array = _array(text, path)
    if array is None:
        return json_set(data, path, [value])
    if _index(array, value) is not None:
        return data
    root = parsed_json(text)
    wanted = copy.deepcopy(root.value)
    array_at(wanted, path).append(value)
    return checked(data, with_element(text, _places(array), _style(text, root, value)), wanted, path)


def json_remove_element(data: bytes, key: Key, value: object, *, made: bool = False) -> bytes:
    """The file without the first element equal to `value`; equal bytes where there is none.

    `made`: the array was made for elements of ours, so without any it goes too. Raises RefusedError.
    """
    path = tuple(key)
    text = text_of(data)
    array = _array(text, path)
    index = None if array is None else _index(array, value)
    if array is None or index is None:
        return data
    if made and len(array.elements or ()) == 1:
        return json_unset(data, path)
    root = parsed_json(text)
    wanted = copy.deepcopy(root.value)
    del array_at(wanted, path)[index]
    changed = without_element(text, _places(array), index, _style(text, root, value))
    return checked(data, changed, wanted, path)


def _array(text: str, path: tuple[str, ...]) -> Node | None:
    """The array at a path, None where it could be made."""
    node, depth = deepest(parsed_json(text), path)
    if depth == len(path):
        if node.elements is None:
            raise unwritable(path, f"{place_of(text, node.start)}: it is no array.")
        return node
    if node.members is None:
        name = f"`{'.'.join(path[:depth])}`" if depth else "the whole file"
        raise unwritable(path, f"{place_of(text, node.start)}: {name} is no object.")
    return None


def _index(array: Node, value: object) -> int | None:
    elements = array.elements or ()
    return next((index for index, one in enumerate(elements) if same(one.node.value, value)), None)


def _places(array: Node) -> ArrayText:
    items = tuple(Item(one.start, one.node.end, one.comma) for one in array.elements or ())
    return ArrayText(array.start, array.end, items)


def _style(text: str, root: Node, value: object) -> Style:
    unit, eol = unit_of(text, root), eol_of(text)

    def render(indent: str | None) -> str:
        return dumps(value) if indent is None else literal_of(value, indent, unit, eol)

    return Style(render, after_comments_on_line, "//", unit, eol)
