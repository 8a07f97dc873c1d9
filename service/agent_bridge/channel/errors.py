"""What the channel refuses, each with the HTTP status and the `code` that its callers see."""

from __future__ import annotations

from typing import ClassVar

from agent_bridge.errors import EXIT_LEFT_UNDONE, EXIT_USAGE, AgentBridgeError


class ChannelError(AgentBridgeError):
    """A request to the channel that wasn't done; `status` is its HTTP status."""

    status: ClassVar[int] = 400
    code = "invalid"


class InvalidError(ChannelError):
    """A field is missing, or has a value that can't be used; `detail` names it."""

    exit_code = EXIT_USAGE
    code = "invalid"


class WrongIdentityError(ChannelError):
    """The target is known and lives in another identity."""

    status = 403
    exit_code = EXIT_LEFT_UNDONE
    code = "wrong_identity"


class UnknownError(ChannelError):
    """No such agent, message or conversation in the caller's identity."""

    status = 404
    code = "unknown"


class AmbiguousError(ChannelError):
    """Several sessions fit; the detail lists them."""

    status = 409
    exit_code = EXIT_LEFT_UNDONE
    code = "ambiguous"


class TooLargeError(ChannelError):
    """The body is larger than `message_bytes`."""

    status = 413
    code = "too_large"


class TooManyError(ChannelError):
    """The sender is over its rate, or the recipient's inbox is full; nothing was stored."""

    status = 429
    code = "too_many"


class StorageError(ChannelError):
    """The database can't be written or read at the moment; nothing was stored. May be tried again."""

    status = 503
    code = "storage"


class DiskFullError(StorageError):
    """There is no room left for the database."""

    status = 507
    code = "disk_full"
