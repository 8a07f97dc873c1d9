"""Whether an owner is still there to be served: its project is listed, and its directory is not gone."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from agent_bridge import paths
from agent_bridge.errors import NotFoundError, RefusedError
from agent_bridge.projects import Project, load_projects


class EjectedError(NotFoundError):
    """The project was taken out while somebody else waited for its lock; nothing may be written for it."""

    code = "ejected"


class GoneError(NotFoundError):
    """The project's directory was removed, moved away or unmounted."""

    code = "gone"


class Presence:
    """Asked under the owner's lock before each pass; reads the list of projects only when it has changed."""

    def __init__(self, project: Project | None) -> None:
        """`project` None stands for the user, who is served as long as there is any project."""
        self._project = project
        self._stamp: tuple[int, int, int] | None = None
        self._listed = False

    def check(self) -> None:
        """Raise EjectedError, GoneError or RefusedError where nothing may be written."""
        if not self._is_listed():
            raise EjectedError(
                "This project isn't set up any more" if self._project else "No project is set up any more",
                path=self._project.root if self._project else paths.projects_file(),
                remedy="Run `agent-bridge init` to set it up again.",
            )
        if self._project is not None and is_gone(self._project.root):
            raise GoneError(
                "The project's directory is gone or empty",
                path=self._project.root,
                remedy="Nothing is written until it is back: mount its disk, or move it back. "
                f"If it is gone for good: `agent-bridge eject --project {_quoted(self._project.root)}`.",
            )
        if self._project is not None:
            check_store(self._project.store)

    def _is_listed(self) -> bool:
        try:
            info = paths.projects_file().stat()
        except FileNotFoundError:
            return False
        stamp = (info.st_mtime_ns, info.st_ino, info.st_size)
        if stamp != self._stamp:
            known = load_projects()
            project = self._project
            self._listed = bool(known) if project is None else any(one.id == project.id for one in known)
            self._stamp = stamp
        return self._listed


def check_store(store: Path) -> None:
    """Raise RefusedError for a project's store that is a symlink.

    A repository can bring one along: what it leads to would be published as this project's facts, and the
    rules that keep private facts out of Git name the store's own path.
    """
    if store.is_symlink():
        raise RefusedError(
            "The project's memory is a symlink",
            path=store,
            detail=f"It leads to {store.readlink()}. Nothing is read or written there.",
            remedy="Put a directory in its place.",
        )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def is_gone(root: Path) -> bool:
    """Whether a project's root is no directory, or one without any entry, as an unmounted disk leaves it."""
    try:
        with os.scandir(root) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # unreadable is another trouble, told where the files are read
