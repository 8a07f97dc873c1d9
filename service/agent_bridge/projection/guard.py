"""What keeps a store's private facts out of Git where no project's excludes do: lines in its own .gitignore.

A store that isn't set up, or not any more, has nothing else. `init` lifts it: from then on what is shared is
let in by name.
"""

from __future__ import annotations

from agent_bridge import files
from agent_bridge.files import FileImage
from agent_bridge.memory.store import Store

_TITLE = "# Private facts lie here; run `agent-bridge init` to share the others."
_LINES = f"{_TITLE}\n*.[mM][dD]\n*.[mM][dD]?*\nindex.json\n".encode()


def guard(store: Store) -> None:
    """Keep every fact of a store out of Git. Raises AgentBridgeError where that can't be written."""
    image = _image(store)
    if _LINES not in image.data:
        gap = b"" if not image.data or image.data.endswith(b"\n") else b"\n"
        files.replace(image, image.data + gap + _LINES, keep_dir=store.state / "kept")


def guard_private(store: Store) -> None:
    """The same, where there is anything private in it."""
    snapshot = store.scan()
    if snapshot.private or snapshot.withheld:
        guard(store)


def lift(store: Store) -> None:
    """Take the guard away again; nothing happens where none is."""
    image = _image(store)
    if image.existed and _LINES in image.data:
        files.replace(image, image.data.replace(_LINES, b""), keep_dir=store.state / "kept")


def _image(store: Store) -> FileImage:
    """Its .gitignore; in a repository that is no link, which could lead to anybody's file."""
    return files.read_image(store.root / ".gitignore", plain=store.scope != "global")
