"""Edits in other programs' configuration files: bytes in, bytes out, only what was asked for changes."""

from __future__ import annotations

from agent_bridge.harnesses.absent import ABSENT, Absent
from agent_bridge.harnesses.json_edit import json_get, json_set, json_unset
from agent_bridge.harnesses.json_elements import json_add_element, json_has_element, json_remove_element
from agent_bridge.harnesses.line_edit import ensure_lines, our_lines, remove_lines
from agent_bridge.harnesses.toml_edit import toml_get, toml_set, toml_unset
from agent_bridge.harnesses.toml_elements import toml_add_element, toml_has_element, toml_remove_element

__all__ = [
    "ABSENT",
    "Absent",
    "ensure_lines",
    "json_add_element",
    "json_get",
    "json_has_element",
    "json_remove_element",
    "json_set",
    "json_unset",
    "our_lines",
    "remove_lines",
    "toml_add_element",
    "toml_get",
    "toml_has_element",
    "toml_remove_element",
    "toml_set",
    "toml_unset",
]
