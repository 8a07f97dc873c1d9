"""Times as they are typed."""

from __future__ import annotations

import pytest

from agent_bridge.cli.durations import seconds
from agent_bridge.errors import UsageError


@pytest.mark.parametrize(
    ("text", "meant"), [("90", 90), ("0.5", 0.5), ("45s", 45), ("10m", 600), ("2h", 7200), ("7d", 604_800)]
)
def test_what_is_meant(text: str, meant: float) -> None:
    assert seconds(text, "--x") == meant


@pytest.mark.parametrize("text", ["", "m", "soon", "-1", "0", "nan", "inf", "1e99", "10 weeks"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="--timeout"):
        seconds(text, "--timeout")
