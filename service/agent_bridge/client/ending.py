"""How a session stands, and what its callers get when it can't do what they ask."""

from __future__ import annotations

import enum

from agent_bridge.errors import AgentBridgeError, NotRunningError


class State(enum.StrEnum):
    """How a session is."""

    CONNECTING = "connecting"
    ONLINE = "online"
    SUPERSEDED = "superseded"
    """A newer connection of the same agent id has taken over; this one has ended."""
    CLOSED = "closed"


class NoAnswerError(NotRunningError):
    """No answer came in time. `message_id`: sent once more with it, a message is not stored twice."""

    code = "no_answer"

    def __init__(self, seconds: float, message_id: str) -> None:
        super().__init__(
            f"The registry didn't answer within {seconds:g} s.",
            detail=f"The message {message_id} may have been stored.",
            remedy="Send it again with the same messageId: it isn't stored twice.",
        )
        self.message_id = message_id


class EndedError(AgentBridgeError):
    """The session is over: it was closed, or a newer connection has taken over."""

    code = "session_ended"


def ended(state: State) -> EndedError:
    """The error for a session that is over."""
    if state is State.SUPERSEDED:
        return EndedError("A newer connection of the same session has taken over.")
    return EndedError("The session is closed.")


def late() -> NotRunningError:
    """The error for a registry that took the connection and said nothing."""
    return NotRunningError("The registry doesn't answer.", detail="It didn't say who we are in time.")
