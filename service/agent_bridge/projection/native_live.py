"""Memories that harnesses write by themselves while we run: taken over as they appear.

The project's engine takes what belongs to its checkouts; the user's takes what belongs to no directory, and
holds what belongs to directories that aren't set up. What has been imported once is never imported again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from agent_bridge import files
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import Harness, NativeItem, Notice, Site
from agent_bridge.memory.store import Store
from agent_bridge.projection import native_import
from agent_bridge.projection.survey import Survey
from agent_bridge.projects import Project, load_projects

MOST_NAMES = 10_000
"""Names of one directory that are looked at."""

Signature = tuple[object, ...]


class NativeLive:
    """Looks for one owner; reads the memories only where their places have changed."""

    def __init__(self, project: Project | None, store: Store, settings: Settings) -> None:
        """`project` None stands for the user."""
        self._project = project
        self._store = store
        self._settings = settings
        self._record = store.state / "native-seen"
        self._seen = ""

    def signature(self, survey: Survey) -> Signature:
        """Equal as long as no harness in use has written anything where it keeps memories."""
        site = survey.sites[0]
        places = dict.fromkeys(
            place for harness in _in_use(site) for place in harness.memory_places(site.env)
        )
        roots = tuple(str(one.checkout) for one in survey.sites)
        return (roots, *((str(place), _sign(place)) for place in places))

    def adopt(self, survey: Survey, now: datetime) -> tuple[Notice, ...]:
        """Take over what is new. The caller holds the owner's lock."""
        seen = hashlib.sha256(repr(self.signature(survey)).encode("utf-8", "surrogateescape")).hexdigest()
        if seen == self._seen or seen == self._recorded():
            self._seen = seen
            return ()
        site = survey.sites[0]
        pending = native_import.pending_items(native_import.gather(_in_use(site), site.env))
        roots = [] if self._project is None else [one.checkout for one in survey.sites]
        found = native_import.sort_items(pending, roots)
        if self._project is None:
            taken = found.user
            native_import.hold_items(_homeless(found.elsewhere))
        else:
            taken = found.project
        counts = native_import.import_items(self._store, taken, now=now, threshold=self._settings.similarity)
        native_import.release_items(taken)
        self._seen = seen
        files.write_own(self._record, seen.encode())
        return tuple(_told(counts, taken))

    def _recorded(self) -> str:
        """What the last process saw: a command needn't read all memories anew."""
        try:
            return self._record.read_text("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""


def _in_use(site: Site) -> tuple[Harness, ...]:
    return tuple(harness for harness in all_harnesses() if harness.name in site.used)


def _homeless(items: Iterable[NativeItem]) -> list[NativeItem]:
    """Those that belong to no project's directory; the others are taken by their projects' engines."""
    roots = [project.root for project in load_projects()]
    return [
        item
        for item in items
        if item.directory is None or not any(item.directory.is_relative_to(root) for root in roots)
    ]


def _told(counts: dict[str, int], taken: Sequence[NativeItem]) -> Iterator[Notice]:
    names = ", ".join(dict.fromkeys(item.harness for item in taken))
    if counts["added"]:
        what = "1 memory was" if counts["added"] == 1 else f"{counts['added']} memories were"
        yield Notice("info", "adopted", f"{what} taken over from {names}.")
    if counts["review"]:
        what = "1 memory" if counts["review"] == 1 else f"{counts['review']} memories"
        yield Notice("info", "candidates", f"{what} of {names} to look at: see `agent-bridge review`.")


def _sign(place: Path) -> object:
    """What tells of a change at a file, or of any file directly in a directory; None where nothing is."""
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries)[:MOST_NAMES]
    except NotADirectoryError:
        return _stamp(place)
    except OSError:
        return None
    return tuple((name, _stamp(place / name)) for name in names)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return (info.st_mtime_ns, info.st_size, info.st_ino)
