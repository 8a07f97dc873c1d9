"""The value of a key that isn't there."""

from __future__ import annotations

from enum import Enum


class Absent(Enum):
    """`ABSENT`: the key isn't in the file, which is not the same as a null there."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
