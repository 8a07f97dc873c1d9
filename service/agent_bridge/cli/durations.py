"""Times as a person types them: `90`, `45s`, `10m`, `2h`, `7d`. Pure."""

from __future__ import annotations

import math

from agent_bridge.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MOST = 10 * 365 * 86_400.0


def seconds(text: str, option: str) -> float:
    """The seconds that `text` means, which may have a unit. Raises UsageError, which names `option`."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        value = math.nan
    if not 0 < value <= _MOST:
        raise UsageError(f"{option} can't be {text!r}.", remedy="Say a time such as 90, 45s, 10m, 2h or 7d.")
    return value
