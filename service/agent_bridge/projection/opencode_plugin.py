"""Puts our plugin into OpenCode's configuration directories, and takes it out again.

Source: OpenCode 1.18.33, by running it. Every `plugins/*.js` of a configuration directory is loaded. As soon
as there is a plugin, a start waits until a package of OpenCode's own is installed into each configuration
directory: a minute where the registry can't be reached. It installs nothing where `node_modules/` exists and
the root of `package-lock.json` names that package, so these two are put there in advance.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from agent_bridge import __version__, files
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import opencode_config
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection import apply, undo
from agent_bridge.projection.ledger import Kind, Ledger
from agent_bridge.projection.merge_driver import own_program

PLUGIN = Path("plugins", "agent-bridge.js")
LOCK = "package-lock.json"
MODULES = "node_modules"
PACKAGE = "@opencode-ai/plugin"

_THEIRS = ("package.json", LOCK, MODULES, "bun.lock", "bun.lockb")
"""Any of these means that somebody, or OpenCode, manages packages here."""
_PROGRAM_LINE = 'const PROGRAM = "agent-bridge"'
_VERSION_LINE = 'const VERSION = "0"'
_PROGRAM = re.compile(r'^const PROGRAM = (".*?")(?: //.*)?$', re.MULTILINE)

State = Literal["absent", "current", "outdated", "changed", "foreign"]


@dataclass(frozen=True, slots=True)
class Installed:
    """What was done in one configuration directory.

    `waits`: a start of OpenCode installs packages there first, because somebody manages packages there.
    """

    plugin: Path
    wrote: bool
    seeded: bool
    waits: bool


def shipped() -> str:
    """The plugin as the package brings it."""
    place = resources.files("agent_bridge.harnesses") / "opencode_plugin" / "agent-bridge.js"
    return place.read_text("utf-8")


def rendered(program: Path | None) -> bytes:
    """The plugin as it is installed: with the program's path and our version."""
    text = shipped()
    for line in (_PROGRAM_LINE, _VERSION_LINE):
        if text.count(line) != 1:
            raise AgentBridgeError(f"The plugin that was shipped lacks the line {line!r}")
    if program is not None:
        text = text.replace(_PROGRAM_LINE, f"const PROGRAM = {_quoted(str(program))}")
    return text.replace(_VERSION_LINE, f"const VERSION = {_quoted(__version__)}").encode()


def install(
    ledger: Ledger,
    directory: Path,
    program: Path | None,
    *,
    within: Path | None = None,
    before_writing: Callable[[], None] = lambda: None,
) -> Installed:
    """Install or update the plugin in a configuration directory, which is made where it is missing.

    The caller holds the owner's lock. `within`: the directory's real place must lie below this one.
    `before_writing` is called when everything is on record and nothing is written. Raises RefusedError for a
    file of that name that isn't ours, or that somebody has changed.
    """
    data = rendered(program)
    image = _look(directory, PLUGIN, within)
    apply.record_file(ledger, image, data)
    lock = _recorded_seed(ledger, directory, within)
    before_writing()
    wrote = apply.write_file(ledger, image, data)
    _write_seed(ledger, directory, lock)
    return Installed(image.path, wrote, lock is not None, _waits(directory))


def seed(
    ledger: Ledger,
    directory: Path,
    *,
    within: Path | None = None,
    before_writing: Callable[[], None] = lambda: None,
) -> bool:
    """Only keep OpenCode's start from waiting for a configuration directory; whether it will all the same."""
    lock = _recorded_seed(ledger, directory, within)
    if lock is not None:
        before_writing()
        _write_seed(ledger, directory, lock)
    return _waits(directory)


def plugins(ledger: Ledger) -> tuple[Path, ...]:
    """The configuration directories in which an owner has the plugin."""
    return tuple(path.parents[1] for path in _ours(ledger) if _is_plugin(path))


def seeds(ledger: Ledger) -> tuple[Path, ...]:
    """The files of an owner's that keep OpenCode's start from waiting."""
    return tuple(path for path in _ours(ledger) if path.name == LOCK)


def remove_plugin(ledger: Ledger, directory: Path) -> list[undo.Undone]:
    """Take the plugin out of a configuration directory."""
    return [_undone(ledger, path) for path in _ours(ledger) if path == directory / PLUGIN]


def remove_seeds(ledger: Ledger) -> list[undo.Undone]:
    """Take out what kept OpenCode's start from waiting, wherever this owner has no plugin."""
    there = plugins(ledger)
    return [_undone(ledger, path) for path in seeds(ledger) if path.parent not in there]


def keep_current(ledger: Ledger) -> list[Notice]:
    """Bring installed plugins to this version; one that is gone or that somebody has changed stays so."""
    notices = []
    program = own_program()
    for path in _ours(ledger):
        if not _is_plugin(path) or program is None:
            continue
        try:
            image = _look(path.parents[1], PLUGIN, None)
            if image.existed and apply.is_our_file(ledger.get(path), image.data) and not _fits(image.data):
                apply.record_file(ledger, image, rendered(program))
                apply.write_file(ledger, image, rendered(program))
                text = f"{path} was brought to version {__version__}; OpenCode takes it at its next start."
                notices.append(Notice("info", "plugin-updated", text, path))
        except AgentBridgeError as error:
            notices.append(Notice("warning", error.code, error.sentence(), path))
    return notices


def keep_seeded(
    user: Ledger, ledger: Ledger, checkouts: Iterable[Path], before_writing: Callable[[], None]
) -> list[Notice]:
    """Where a plugin of ours is loaded, keep its start from waiting for a checkout's own directory.

    `user` and `ledger` are the records of the user's plugin and of the project's. OpenCode's directory in a
    checkout may come later than the plugin: with a file of ours, or by its user.
    """
    notices = []
    for directory in (checkout / opencode_config.FOLDER for checkout in checkouts):
        if not directory.is_dir() or not (plugins(user) or directory in plugins(ledger)):
            continue
        try:
            if ledger.get(directory / LOCK) is None:
                seed(ledger, directory, within=directory.parent, before_writing=before_writing)
        except AgentBridgeError as error:
            notices.append(Notice("warning", error.code, error.sentence(), directory))
    return notices


def state(ledger: Ledger, directory: Path) -> State:
    """How the plugin is in a configuration directory."""
    try:
        image = _look(directory, PLUGIN, None)
    except RefusedError:
        return "foreign"
    if not image.existed:
        return "absent"
    entry = ledger.get(image.path)
    if entry is None:
        return "foreign"
    if not apply.is_our_file(entry, image.data):
        return "changed"
    return "current" if _fits(image.data) else "outdated"


def _ours(ledger: Ledger) -> list[Path]:
    """What this owner has put into configuration directories, the newest first."""
    return [Path(entry.path) for entry in reversed(ledger.entries()) if entry.kind is Kind.FILE]


def _is_plugin(path: Path) -> bool:
    return path.parts[-2:] == PLUGIN.parts


def _undone(ledger: Ledger, path: Path) -> undo.Undone:
    entry = ledger.get(path)
    return undo.Undone(str(path), "untouched") if entry is None else undo.undo(ledger, entry)


def _fits(data: bytes) -> bool:
    """Whether an installed plugin is of this version, and names a program that is there."""
    found = _PROGRAM.search(data.decode("utf-8", "replace"))
    if found is None:
        return False
    try:
        program = Path(json.loads(found[1]))
    except ValueError:
        return False
    named = program if program.is_absolute() else None
    return data == rendered(named) and (named is None or named.is_file())


def _look(directory: Path, name: Path | str, within: Path | None) -> FileImage:
    """A file of ours; neither it nor the directory `plugins` may be a link, which could lead anywhere."""
    path = directory / name
    if path.parent != directory and path.parent.is_symlink():
        raise RefusedError(
            "This directory is a symlink; nothing is put there",
            path=path.parent,
            detail=f"It leads to {path.parent.readlink()}.",
            remedy="Make it a directory of its own.",
        )
    return files.read_image(path, plain=True, within=within)


def _recorded_seed(ledger: Ledger, directory: Path, within: Path | None) -> FileImage | None:
    """The lock file to write, on record; None where packages are somebody else's affair."""
    there = [name for name in _THEIRS if os.path.lexists(directory / name)]
    known = ledger.get(directory / LOCK)
    if set(there) - {LOCK, MODULES} or (known is None and there):
        return None
    image = _look(directory, LOCK, within)
    if image.existed and not apply.is_our_file(known, image.data):
        return None  # OpenCode, or its user, has installed something since
    if not image.existed and there:
        return None
    apply.record_file(ledger, image, _lock_bytes(), directory=directory / MODULES)
    return image


def _write_seed(ledger: Ledger, directory: Path, lock: FileImage | None) -> None:
    if lock is not None:
        apply.write_file(ledger, lock, _lock_bytes())
        (directory / MODULES).mkdir(exist_ok=True)


def _lock_bytes() -> bytes:
    lock = {"lockfileVersion": 3, "packages": {"": {"dependencies": {PACKAGE: "*"}}}}
    return (json.dumps(lock, indent=2) + "\n").encode()


def _waits(directory: Path) -> bool:
    """Whether OpenCode installs its package here before it loads a plugin (1.18.33)."""
    if not (directory / MODULES).is_dir():
        return True
    try:
        root = json.loads((directory / LOCK).read_bytes())["packages"][""]
        return PACKAGE not in {**root.get("dependencies", {}), **root.get("devDependencies", {})}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return True


def _quoted(text: str) -> str:
    """A text as JavaScript has it. Raises RefusedError for a path that no JSON can say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedError("The program's path isn't UTF-8", path=text) from None
    return json.dumps(text)
