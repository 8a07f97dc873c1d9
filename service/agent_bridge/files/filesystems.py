"""Which file systems report no changes made elsewhere: those reached over a network or through FUSE."""

from __future__ import annotations

import os
import re
from pathlib import Path

_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ncpfs", "afs", "ceph", "glusterfs", "lustre"}
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def read_mounts() -> str:
    """The kernel's mount table as text; empty where there is none (macOS)."""
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def remote_type(path: Path, mounts: str) -> str | None:
    """The type of the file system that `path` lies on if it is a remote one, else None.

    `mounts` is the text of /proc/self/mounts (proc(5): device, mount point with octal escapes, type, ...).
    The longest mount point wins, and of equal ones the last, which covers the others.
    """
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[1])
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, fields[2]
    return kind if _is_remote(kind) else None


def _is_remote(kind: str) -> bool:
    return kind in _REMOTE or kind == "fuse" or kind.startswith("fuse.")
