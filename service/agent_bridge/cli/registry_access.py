"""How commands reach the registry, and in which identity."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from agent_bridge.channel import ids
from agent_bridge.channel.model import GLOBAL_IDENTITY, Draft
from agent_bridge.client import address
from agent_bridge.client.answers import Posted
from agent_bridge.client.http import Registry
from agent_bridge.daemon.client import service_is_running
from agent_bridge.errors import NotRunningError

_PATIENCE = 10.0
_PAUSE = 0.2

IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="NAME",
        envvar="AGENT_BRIDGE_IDENTITY",
        help="Whose messages and sessions (default: global).",
    ),
]


def identity_of(given: str | None) -> str:
    """The identity in force: the option, else AGENT_BRIDGE_IDENTITY, else global. Raises InvalidError."""
    return ids.checked_identity(given or GLOBAL_IDENTITY)


def send(draft: Draft) -> Posted:
    """Have a message stored, also by a service that is about to answer again.

    It is sent under the same id until there is an answer, so it is stored once. Raises ChannelError where it
    wasn't stored, NotRunningError where it wasn't or that isn't known: the detail says which.
    """
    deadline = time.monotonic() + _PATIENCE
    is_unclear = False
    while True:
        try:
            with connect(draft.identity) as registry:
                return registry.send(draft)
        except NotRunningError as error:
            is_unclear = is_unclear or _may_have_arrived(error)
            if time.monotonic() < deadline and service_is_running():
                time.sleep(_PAUSE)
                continue
            stored = f"Message {draft.message_id} may be stored" if is_unclear else "Nothing was stored"
            detail = f"{stored}. {error.detail}".rstrip()
            raise NotRunningError(error.title, detail=detail, remedy=error.remedy) from error


def _may_have_arrived(error: NotRunningError) -> bool:
    """Whether the request was on its way when the connection was lost."""
    import httpx

    cause = error.__cause__
    return isinstance(cause, httpx.HTTPError) and not isinstance(
        cause, httpx.ConnectError | httpx.ConnectTimeout
    )


def connect(identity: str | None) -> Registry:
    """The registry of the running service. Raises NotRunningError, with the remedy."""
    return Registry(address.find(), identity_of(identity))
