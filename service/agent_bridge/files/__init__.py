"""Reading and replacing files so that nobody's bytes are lost, whoever writes and whenever we die.

`read_image` and `replace` belong together: a file is read, spliced in memory, and put back only if it still
holds what was read. A caller that gets ConflictError reads again and tries once more. After a kill, `recover`
repairs what was under way. `replacing` tells how; `locked` and `write_own` are for files of our own.
"""

from __future__ import annotations

from agent_bridge.files.beside import is_temporary, sync_all, write_own
from agent_bridge.files.image import DEFAULT_LIMIT, FileImage, read_image
from agent_bridge.files.kernel import TEMPORARY_SUFFIX
from agent_bridge.files.lock import Locking, locked
from agent_bridge.files.recovery import recover
from agent_bridge.files.replacing import delete, missing_directories, replace

__all__ = [
    "DEFAULT_LIMIT",
    "TEMPORARY_SUFFIX",
    "FileImage",
    "Locking",
    "delete",
    "is_temporary",
    "locked",
    "missing_directories",
    "read_image",
    "recover",
    "replace",
    "sync_all",
    "write_own",
]
