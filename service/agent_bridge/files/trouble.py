"""The system's errors about files, said in our words."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from agent_bridge.errors import AgentBridgeError, ConflictError, RefusedError


def conflict(path: Path, detail: str = "Nothing was written.") -> ConflictError:
    """The error for a file that isn't as it was read."""
    return ConflictError(
        "This file changed while agent-bridge was about to write it",
        path=path,
        detail=detail,
        remedy="Try again.",
    )


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError raised while `path` is written into AgentBridgeError: path, reason, what to do."""
    try:
        yield
    except PermissionError as error:
        raise _no_rights(path, error) from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise RefusedError("This file is on a read-only file system", path=path) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise AgentBridgeError(
                "There is no room left to write this file",
                path=path,
                detail="It is as it was.",
                remedy="Make room, then run the command again.",
            ) from error
        raise AgentBridgeError("This file can't be written", path=path, detail=str(error)) from error


def _no_rights(path: Path, error: PermissionError) -> RefusedError:
    directory = Path(os.path.realpath(path)).parent
    if directory.is_dir() and not os.access(directory, os.W_OK | os.X_OK):
        return RefusedError(
            "The directory of this file can't be written",
            path=path,
            detail=f"Files are replaced whole, which needs the right to write in {directory}.",
            remedy="Give yourself that right, or take the file off agent-bridge's hands.",
        )
    return RefusedError(
        "This file can't be written for lack of rights",
        path=path,
        detail=str(error),
        remedy="Check its rights, owner and attributes (`lsattr`).",
    )
