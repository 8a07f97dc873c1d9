"""How commands reach the registry, and in which identity."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_bridge.channel import ids
from agent_bridge.channel.model import GLOBAL_IDENTITY
from agent_bridge.client import address
from agent_bridge.client.http import Registry

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


def connect(identity: str | None) -> Registry:
    """The registry of the running service. Raises NotRunningError, with the remedy."""
    return Registry(address.find(), identity_of(identity))
