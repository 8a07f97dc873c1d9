"""Opening a WebSocket to the registry, on this machine's loopback and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge.client import address as addresses
from agent_bridge.client import exchange

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from agent_bridge.client.address import Address

FRAME_BYTES = exchange.ANSWER_BYTES
"""A frame that is refused would come again after each reconnect, so this is over anything that is sent."""
_CLOSE_S = 1.0


async def open_socket(address: Address, identity: str, *, open_s: float, ping_s: float) -> ClientConnection:
    """A connection whose first frame, the snapshot, is to be read. `open_s` and `ping_s` in seconds.

    Raises NotRunningError where nobody listens, the ChannelError with which the registry refuses, AnswerError
    where what answers isn't the registry.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus, WebSocketException

    try:
        return await connect(
            address.socket_url,
            additional_headers=exchange.headers(address, identity),
            # With a host of our own no redirect to another one is followed.
            host=address.host,
            port=address.port,
            proxy=None,
            compression=None,
            max_size=FRAME_BYTES,
            open_timeout=open_s,
            ping_interval=ping_s,
            ping_timeout=ping_s,
            close_timeout=_CLOSE_S,
        )
    except InvalidStatus as error:
        told = error.response
        exchange.settle(told.status_code, {}, bytes(told.body or b""))
        raise exchange.not_ours(told.status_code) from None
    except (OSError, WebSocketException) as error:
        raise addresses.not_running(str(error) or type(error).__name__) from error
