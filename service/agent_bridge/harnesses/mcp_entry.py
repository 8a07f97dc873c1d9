"""An entry of our name among a harness's MCP servers, and files that take no comments. Pure.

Entries in the file that would get ours are judged where that is written, by the ledger. Here it is about
those that a user has in settings for all projects: they serve already, or are this user's word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import mcp_command
from agent_bridge.harnesses.absent import ABSENT
from agent_bridge.harnesses.base import Notice, Site
from agent_bridge.harnesses.foreign_text import BOM, place_of, text_of
from agent_bridge.harnesses.json_edit import json_get


def value_at(data: bytes | None, key: Sequence[str]) -> object:
    """The value at a key of a JSON file, `ABSENT` where there is none or the file can't be understood."""
    try:
        return json_get(data or b"", key)
    except RefusedError:
        return ABSENT


def holders(site: Site, files: Iterable[Path], key: Sequence[str]) -> list[Path]:
    """Those of some settings files that have an entry at `key`."""
    return [path for path in files if value_at(site.settings(path), key) is not ABSENT]


def of_user(site: Site, files: Iterable[Path], key: Sequence[str], title: str) -> tuple[Notice, ...]:
    """What to tell of entries in the user's own settings, because of which a project gets none.

    `title` is the harness's. Nothing is told of one that starts our program.
    """
    notices = []
    for path in holders(site, files, key):
        entry = value_at(site.settings(path), key)
        if not starts_ours(entry):
            text = (
                f"{path} has an MCP server {mcp_command.SERVER} that doesn't start {mcp_command.NAME}. "
                f"It is left alone; {title} gets no tools of ours."
            )
            notices.append(Notice("warning", "mcp-name-taken", text, path))
        elif is_off(entry):
            text = f"{path} switches {mcp_command.SERVER} off, so {title} gets no tools of ours."
            notices.append(Notice("info", "mcp-off", text, path))
    return tuple(notices)


def starts_ours(entry: object) -> bool:
    """Whether an entry starts our program, by whatever path and however that is written."""
    if not isinstance(entry, dict):
        return False
    words: list[object] = []
    for name in ("command", "args"):
        found = entry.get(name)
        words += found if isinstance(found, list) else [found]
    names = [PurePosixPath(word).name for word in words if isinstance(word, str)]
    return mcp_command.NAME in names or names[:3] == ["agent-bridge", "mcp", "start"]


def is_off(entry: object) -> bool:
    """Whether an entry says that its server isn't to be started."""
    return isinstance(entry, dict) and (entry.get("enabled") is False or entry.get("disabled") is True)


def why_not_strict(data: bytes | None) -> str:
    """Why a file isn't strict JSON with an object (no comments, no BOM), "" if it is or is empty."""
    if data is None or not data.strip():
        return ""
    if data.startswith(BOM):
        return "it begins with a byte order mark"
    try:
        value = json.loads(text_of(data), parse_constant=_no_constant)
    except RefusedError as error:
        return error.detail or error.title
    except json.JSONDecodeError as error:
        return f"{error.msg}, {place_of(error.doc, error.pos)}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return "" if isinstance(value, dict) else "it holds no JSON object"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} isn't JSON")
