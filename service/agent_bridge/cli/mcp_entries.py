"""What stands where so that clients start our MCP server: as it should be, and as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from agent_bridge import files
from agent_bridge.cli.result import Json
from agent_bridge.errors import AgentBridgeError, RefusedError, UsageError
from agent_bridge.harnesses import all_harnesses, antigravity_mcp, mcp_command, mcp_entry, mcp_user
from agent_bridge.harnesses.absent import ABSENT
from agent_bridge.harnesses.base import Harness, KeyEdit, Site, by_path
from agent_bridge.projection import apply

CLIENTS = ("claude-code", "codex", "opencode", "gemini", "antigravity")
"""The harnesses that can start MCP servers and whose settings are known, by name."""
_SHORT = {"claude": "claude-code", "agy": "antigravity"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a client's, and what of ours belongs in it.

    `text` is what the file would hold if it held nothing else. `state`: `set`, `missing`, `different` (an
    entry of our name that isn't as we write it) or `unreadable`; `problem` says more.
    """

    client: str
    path: Path
    text: str
    state: str
    problem: str
    edits: tuple[KeyEdit, ...]

    def as_json(self) -> dict[str, Json]:
        """For `--json`."""
        return {
            "client": self.client,
            "path": str(self.path),
            "state": self.state,
            "problem": self.problem,
            "entry": self.text,
        }


def chosen(names: Sequence[str]) -> tuple[Harness, ...]:
    """The harnesses of these names, or with none all that can start MCP servers. Raises UsageError."""
    wanted = {_SHORT.get(name, name) for name in names}
    unknown = sorted(wanted - {*CLIENTS})
    if unknown:
        raise UsageError(f"No client is called {unknown[0]!r}.", remedy=f"Known: {', '.join(CLIENTS)}.")
    return tuple(one for one in all_harnesses() if one.name in (wanted or CLIENTS))


def of_project(harness: Harness, site: Site) -> list[Entry]:
    """What belongs in the files by which a project's sessions of a client get our server."""
    return _entries(harness, harness.mcp_edits(site, mcp_command.installed()))


def of_user(harness: Harness, site: Site) -> list[Entry]:
    """The same in the files of the user's that serve all projects; none where only a command changes them."""
    return _entries(harness, mcp_user.edits(harness.name, site, mcp_command.installed()))


def of_user_already(harness: Harness, site: Site) -> list[Path]:
    """Files of the user's in which our server stands for all projects, so that a project needs none."""
    places = mcp_user.files(harness.name, site)
    return mcp_entry.holders(site, places, mcp_user.key(harness.name)) if places else []


def _entries(harness: Harness, edits: Sequence[KeyEdit]) -> list[Entry]:
    return [_entry(harness, path, tuple(group)) for path, group in by_path(edits).items()]


def _entry(harness: Harness, path: Path, edits: tuple[KeyEdit, ...]) -> Entry:
    text = reduce(apply.edited, edits, b"").decode()
    try:
        data = files.read_image(path).data
        strict = mcp_entry.why_not_strict(data) if path.name == Path(antigravity_mcp.FILE).name else ""
        if strict:
            raise RefusedError("It isn't strict JSON", path=path, detail=strict)
        state, problem = _state(data, edits), ""
    except AgentBridgeError as error:
        state, problem = "unreadable", error.sentence()
    return Entry(harness.name, path, text, state, problem, edits)


def _state(data: bytes, edits: Sequence[KeyEdit]) -> str:
    """Raises RefusedError where the file can't be understood."""
    found = [apply.get_key(edit.format, data, edit.key) for edit in edits]
    if all(_is_set(value, edit) for value, edit in zip(found, edits, strict=True)):
        return "set"
    if any(value is not ABSENT and not edit.element for value, edit in zip(found, edits, strict=True)):
        return "different"
    return "missing"


def _is_set(value: object, edit: KeyEdit) -> bool:
    if edit.element:
        return isinstance(value, list) and edit.value in value
    return value is not ABSENT and apply.is_value(value, json.dumps(edit.value))
