"""Codex's SessionStart hook, by which it gets the memory in HOOK mode, and the trust that lets it run. Pure.

Source: Codex 0.171.0, by running it. Hooks stand in `$CODEX_HOME/hooks.json` or in its config.toml (it warns
where both have some). Those of a project need the project's trust, so the user's are taken: the command
prints nothing in other directories. A hook runs only if config.toml has its
`hooks.state."FILE:session_start:GROUP:0".trusted_hash`; FILE is the path as CODEX_HOME spells it, the hash is
SHA-256 over the canonical JSON of event, matcher and handler. `additionalContextLimit` counts tokens, one for
four bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import codex_config
from agent_bridge.harnesses.absent import Absent
from agent_bridge.harnesses.base import KeyEdit, Notice, Site
from agent_bridge.harnesses.json_edit import json_get

CONTEXT_TOKENS = 8192
CONTEXT_BYTES = 4 * CONTEXT_TOKENS
"""What our hook may tell the model: as much as Codex reads of instruction files by default."""

KEY = ("hooks", "SessionStart")
MATCHER = "startup|clear|compact"
_EVENT = "session_start"
_TIMEOUT_S = 5


def hooks_file(env: Mapping[str, str]) -> Path:
    """The user's hooks."""
    return paths.codex_home(env) / "hooks.json"


def edits(site: Site, command: str) -> tuple[KeyEdit, ...]:
    """The hook, and its trust; () where Codex doesn't trust the project or a file can't be understood."""
    if codex_config.trust(site) == "untrusted" or _problem(site):
        return ()
    element = _element(command)
    in_toml = _belongs_in_toml(site, element)
    path = codex_config.user_file(site.env) if in_toml else hooks_file(site.env)
    groups = _groups_in_toml(site) if in_toml else _groups_in_json(site)
    index = groups.index(element) if element in groups else len(groups)
    return (
        KeyEdit(
            path=path,
            format="toml" if in_toml else "json",
            key=KEY,
            value=element,
            why="Codex gets the memory by a hook when a session starts: no block in a file",
            element=True,
        ),
        KeyEdit(
            path=codex_config.user_file(site.env),
            format="toml",
            key=("hooks", "state", f"{path}:{_EVENT}:{index}:0", "trusted_hash"),
            value=trusted_hash(element),
            why="Codex runs a hook only when its text is trusted",
        ),
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps the hook from being installed or from running."""
    user = codex_config.user_file(site.env)
    if codex_config.trust(site) == "untrusted":
        text = f"Codex doesn't trust this project ({user}): it gets no facts."
        return (Notice("warning", "codex-untrusted", text, user),)
    problem = _problem(site)
    if problem:
        path = hooks_file(site.env)
        return (Notice("warning", "codex-hooks-file", f"{path} can't be changed: {problem}", path),)
    layer = codex_config.user_layer(site)
    if layer.get("features", "hooks") is False or layer.get("features", "codex_hooks") is False:
        text = f"Codex runs no hooks, by features.hooks in {user}: it gets no facts."
        return (Notice("warning", "codex-hooks-off", text, user),)
    return ()


def trusted_hash(element: Mapping[str, Any]) -> str:
    """The hash by which Codex knows a hook with one handler again."""
    (handler,) = element["hooks"]
    identity = {"event_name": _EVENT, "matcher": element["matcher"], "hooks": [{**handler, "async": False}]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _element(command: str) -> dict[str, Any]:
    handler = {
        "type": "command",
        "command": command,
        "timeout": _TIMEOUT_S,
        "additionalContextLimit": CONTEXT_TOKENS,
    }
    return {"matcher": MATCHER, "hooks": [handler]}


def _belongs_in_toml(site: Site, element: Mapping[str, Any]) -> bool:
    """Whether config.toml is where this user's hooks stand; a new one goes into hooks.json."""
    if element in _groups_in_toml(site):
        return True
    data = site.settings(hooks_file(site.env)) or b""
    has_json = bool(json_get(data, ("hooks",))) if data.strip() else False
    table = codex_config.user_layer(site).get("hooks")
    has_toml = isinstance(table, dict) and any(isinstance(groups, list) for groups in table.values())
    return has_toml and not has_json


def _groups_in_json(site: Site) -> list[Any]:
    found = json_get(site.settings(hooks_file(site.env)) or b"", KEY)
    return found if isinstance(found, list) else []


def _groups_in_toml(site: Site) -> list[Any]:
    found = codex_config.user_layer(site).get(*KEY)
    return found if isinstance(found, list) else []


def _problem(site: Site) -> str:
    """Why the user's hooks can't be understood, "" if they can."""
    user = codex_config.user_layer(site)
    if user.problem:
        return user.problem
    try:
        hooks = json_get(site.settings(hooks_file(site.env)) or b"", ("hooks",))
        groups = json_get(site.settings(hooks_file(site.env)) or b"", KEY)
    except RefusedError as error:
        return error.detail
    if not isinstance(hooks, dict | Absent):
        return "`hooks` is no object"
    return "" if isinstance(groups, list | Absent) else "`hooks.SessionStart` is no array"
