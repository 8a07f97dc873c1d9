"""Remote file systems by the mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.files.filesystems import read_mounts, remote_type

MOUNTS = r"""/dev/vda1 / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//server/share /mnt/with\040space cifs rw 0 0
user@host: /mnt/ssh fuse.sshfs rw 0 0
share /mnt/vm 9p rw 0 0
tmpfs /mnt/nfs/local tmpfs rw 0 0
server:/over /mnt/covered nfs rw 0 0
/dev/vdb1 /mnt/covered ext4 rw 0 0
gvfsd-fuse /run/user/1000/gvfs fuse.gvfsd-fuse rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/somebody", None),
        ("/mnt/nfs/project", "nfs4"),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/nfsx", None),
        ("/mnt/nfs/local/project", None),
        ("/mnt/with space/p", "cifs"),
        ("/mnt/ssh/p", "fuse.sshfs"),
        ("/mnt/vm/p", "9p"),
        ("/mnt/covered/p", None),
    ],
)
def test_the_innermost_mount_decides(path: str, kind: str | None) -> None:
    assert remote_type(Path(path), MOUNTS) == kind


def test_without_a_table_nothing_is_remote() -> None:
    assert remote_type(Path("/x"), "") is None


def test_the_kernels_own_table_is_understood(tmp_path: Path) -> None:
    assert remote_type(Path("/proc"), read_mounts()) is None
