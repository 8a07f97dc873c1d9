"""What the channel refuses, as exit codes: 1 unknown, 2 wrong usage, 3 not running, 4 for a person."""

from __future__ import annotations

import pytest

from agent_bridge.channel.errors import (
    AmbiguousError,
    InvalidError,
    StorageError,
    TooManyError,
    UnknownError,
    WrongIdentityError,
)
from agent_bridge.client.address import not_running
from agent_bridge.client.answers import refusal
from agent_bridge.errors import AgentBridgeError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownError("x"), 1),
        (TooManyError("x"), 1),
        (StorageError("x"), 1),
        (InvalidError("x"), 2),
        (not_running(), 3),
        (AmbiguousError("x"), 4),
        (WrongIdentityError("x"), 4),
        (refusal({"error": "x", "code": "invalid"}, 400), 2),
        (refusal({"error": "x", "code": "wrong_identity"}, 403), 4),
        (refusal({"error": "x", "code": "unknown"}, 404), 1),
        (refusal({"error": "x", "code": "new"}, 418), 1),
    ],
)
def test_exit_codes(error: AgentBridgeError, code: int) -> None:
    assert error.exit_code == code
