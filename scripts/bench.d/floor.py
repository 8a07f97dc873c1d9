"""The floor: what a save costs at the least. Raw inotify, read the one file, render, replace; no product."""

import ctypes
import os
import struct
import sys
from pathlib import Path

store, target, limit = Path(sys.argv[1]), Path(sys.argv[2]), 16384
libc = ctypes.CDLL(None, use_errno=True)
facts = {path.name: path.read_text() for path in store.iterdir()}
descriptor = libc.inotify_init1(0)
libc.inotify_add_watch(descriptor, os.fsencode(store), 0x8 | 0x80)  # IN_CLOSE_WRITE | IN_MOVED_TO
sys.stdout.write("ready\n")
sys.stdout.flush()


def newest(text: str) -> str:
    """What a fact is ordered by."""
    return text.split("created_at: ")[1][:24]


while True:
    buffer = os.read(descriptor, 65536)
    offset = 0
    while offset < len(buffer):
        length = struct.unpack_from("iIII", buffer, offset)[3]
        name = buffer[offset + 16 : offset + 16 + length].rstrip(b"\0").decode()
        offset += 16 + length
        if not name.startswith("."):
            facts[name] = (store / name).read_text()
    body = "\n".join(text.split("---\n", 2)[2] for text in sorted(facts.values(), key=newest, reverse=True))[
        :limit
    ]
    aside = target.with_name(".aside")
    with aside.open("w") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(target)
