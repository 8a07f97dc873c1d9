"""Editing a fact's text in the user's own editor, on a copy."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent_bridge.errors import AgentBridgeError, ConflictError, UsageError

_FALLBACK = "vi"


def edited(name: str, text: str, read_again: Callable[[], str]) -> str:
    """What the user made of `text`.

    `read_again` gives the text as it is when the editor has been closed: where it has changed meanwhile,
    the edited copy is kept and ConflictError names it. Raises AgentBridgeError where the editor fails (the
    copy is kept if it was changed), UsageError where it empties the text.
    """
    directory = Path(tempfile.mkdtemp(prefix="agent-bridge-edit-"))
    copy = directory / f"{name.replace('/', '-')}.md"
    shown = text.rstrip("\n") + "\n"
    copy.write_text(shown, encoding="utf-8")
    _open_editor(copy, shown)
    try:
        new = copy.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentBridgeError("The edited copy can't be read", path=copy, detail=str(error)) from error
    if new != shown and read_again() != text:
        raise ConflictError(
            "The fact was changed by somebody else meanwhile; your version is kept",
            path=copy,
            remedy="Run the command again and bring your changes in.",
        )
    _clear(copy)
    if not new.strip():
        raise UsageError(
            "The text is empty; nothing was changed.", remedy="`agent-bridge rm` removes a fact."
        )
    return new if new != shown else text


def _open_editor(copy: Path, shown: str) -> None:
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALLBACK)
    try:
        code = subprocess.run([*words, str(copy)], check=False).returncode
        failure = f"it exited with {code}" if code else ""
    except OSError as error:
        failure = error.strerror or str(error)
    if not failure:
        return
    if copy.read_text(encoding="utf-8", errors="replace") == shown:
        _clear(copy)
        raise AgentBridgeError(
            f"The editor {words[0]!r} failed: {failure}", remedy="Set VISUAL or EDITOR, or use `--text`."
        )
    raise AgentBridgeError(f"The editor {words[0]!r} failed: {failure}; your version is kept", path=copy)


def _clear(copy: Path) -> None:
    # Editors leave backups and swap files beside the copy; they go with it.
    for leftover in copy.parent.iterdir():
        leftover.unlink()
    copy.parent.rmdir()
