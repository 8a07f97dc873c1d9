"""Signs of memory-bridge 0.1 in a project that nothing of ours changes: a person is told of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import config_edit, gemini_carriers, opencode_config, opencode_files
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection.excludes import DERIVED_FILES
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import STORE_NAME, Project

GENERATED = (opencode_files.BRIDGE, gemini_carriers.OWN)
"""Whole files that memory-bridge wrote."""

_PLUGINS = (".opencode/plugins", ".opencode/plugin")
_NAME = "memory-bridge"


def ledger_of(project: Project) -> Ledger:
    """The ledger of what memory-bridge had written and we have taken out."""
    return Ledger(project.state / "legacy")


def tell_signs(project: Project) -> tuple[Notice, ...]:
    """A lock that was left behind, and plugins that do what the service does now. Reads only."""
    removed = {Path(entry.path) for entry in ledger_of(project).entries()}
    gone = {
        name for name in GENERATED if project.root / name in removed and not (project.root / name).exists()
    }
    return (
        *_stale_lock(project.store),
        *_plugin_files(project.root),
        *_configured(project.root, gone),
    )


def tell_tracked(project: Project, checkout: git.Checkout | None) -> tuple[Notice, ...]:
    """Derived files that Git tracks, with the way to untrack them."""
    if checkout is None:
        return ()
    places = [project.store / name for name in DERIVED_FILES]
    try:
        tracked = git.tracked(checkout, places)
    except AgentBridgeError:
        return ()  # a pass tells what is wrong with the repository
    return tuple(derived_tracked(place) for place in places if place in tracked)


def derived_tracked(path: Path) -> Notice:
    """That Git tracks a file which is made from the facts, so that each machine and branch changes it."""
    text = (
        f"{path} is made from the facts, yet Git tracks it: it changes with each fact, and merges conflict. "
        f"`git rm --cached -- {STORE_NAME}/{path.name}` untracks it. Until then no private fact stands in it."
    )
    return Notice("warning", "derived-tracked", text, path)


def _stale_lock(store: Path) -> list[Notice]:
    lock = store / "index.lock"
    if not lock.is_dir() or lock.is_symlink():
        return []
    text = (
        f"{lock} is memory-bridge's lock, left behind if that isn't adding at this moment. Nothing of ours "
        f"waits for it; memory-bridge does, until `rmdir` removes it."
    )
    return [Notice("info", "legacy-lock", text, lock)]


def _plugin_files(root: Path) -> list[Notice]:
    found = []
    for directory in _PLUGINS:
        try:
            names = sorted(os.listdir(root / directory))  # noqa: PTH208 - names are wanted
        except OSError:
            continue
        found += [root / directory / name for name in names if name.startswith(f"{_NAME}.")]
    return [_redundant(path, f"{path} is memory-bridge's plugin") for path in found]


def _configured(root: Path, gone: set[str]) -> list[Notice]:
    found = []
    for name in opencode_config.PROJECT_FILES:
        path = root / name
        try:
            image = files.read_image(path, within=root)
            plugins = _listed(image.data, "plugin") if image.existed else []
            instructions = _listed(image.data, "instructions") if image.existed else []
        except AgentBridgeError:
            continue  # OpenCode's own carriers tell of it
        found += [
            _dangling(path, entry) for entry in instructions if isinstance(entry, str) and entry in gone
        ]
        for entry in plugins:
            spec = entry[0] if isinstance(entry, list) and entry else entry
            if isinstance(spec, str) and _NAME in spec:
                told = f"{path} lists memory-bridge's plugin ({json.dumps(spec)})"
                found.append(_redundant(path, told))
    return found


def _listed(data: bytes, key: str) -> list[object]:
    value = config_edit.json_get(data, (key,))
    return value if isinstance(value, list) else []


def _dangling(path: Path, name: str) -> Notice:
    text = f"{path} still names {name}, which memory-bridge had generated. OpenCode skips it."
    return Notice("info", "legacy-instructions", text, path)


def _redundant(path: Path, told: str) -> Notice:
    text = (
        f"{told}. It isn't needed any more, and shows the memory a second time. Remove it; "
        f"`agent-bridge opencode install-plugin` installs the one that knows this store."
    )
    return Notice("warning", "legacy-plugin", text, path)
