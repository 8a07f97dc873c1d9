"""How patient a session is."""

from __future__ import annotations

from dataclasses import dataclass

from agent_bridge.client import backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds.

    heartbeat_s  between two heartbeats; the registry takes a row out after 120
    first_s, factor, longest_s  the delays between two tries to connect: `client.backoff`
    open_s       for one HTTP request, or for opening the WebSocket and being identified
    ping_s       between two pings; a registry that doesn't answer one for as long is given up
    send_s       that `send` and `ack` wait for an answer, lost connections included
    sync_s       between two looks into the inbox: a safety net
    again_s      before a message whose callback raised is shown again
    tries        how often that is done; then the message gets a `failed` receipt
    close_s      that callbacks under way and receipts get at the end
    """

    heartbeat_s: float = 30.0
    first_s: float = backoff.FIRST_S
    factor: float = backoff.FACTOR
    longest_s: float = backoff.LONGEST_S
    open_s: float = 10.0
    ping_s: float = 15.0
    send_s: float = 30.0
    sync_s: float = 300.0
    again_s: float = 15.0
    tries: int = 3
    close_s: float = 5.0
