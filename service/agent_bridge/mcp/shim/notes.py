"""What the shim says on standard error: few lines, as nobody may read them and a full pipe blocks."""

from __future__ import annotations

import os

_MOST = 50
_LONGEST = 500
_count = [0]


def note(text: str) -> None:
    """Say one line on standard error, if there is one and not too many were said."""
    _count[0] += 1
    if _count[0] > _MOST:
        return
    line = f"agent-bridge-mcp: {text[:_LONGEST]}".replace("\n", " ") + "\n"
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        return  # Standard error is closed, and there is nowhere else to say it.
