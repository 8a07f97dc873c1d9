"""The WebSocket in the OpenAPI document: OpenAPI has no words for frames, so they are told as text."""

from __future__ import annotations

SAID = {
    "identify": "`agentId`, `identity`?, `since`? and `epoch`? (replay what was stored after that cursor), "
    "`events`?: `all` (default) or `own`, what concerns this agent or everybody. Answer: `identified` with "
    "`seq` and `epoch`, the cursor to come back with. Register by `POST /agents` first.",
    "channel.send": "`message` (`Draft`), `requestId`?. Answer after the commit: `channel.sent`, or "
    "`channel.error`.",
    "channel.ack": "`ack` (`Acknowledgement`), `requestId`?. Answer: `channel.acked`, or `channel.error`.",
    "agent.message": "`data` (`AgentMessageAsked`): told to `toAgentId`, and not kept.",
    "heartbeat": "A sign of life of the agent that was identified.",
}
"""The frames that a client may send, by `type`: what stands beside it, and what comes back."""
TOLD = {
    "snapshot": "The first frame: `agents`, and `seq` and `epoch`, beside `type`.",
    "agent.registered": "`AgentRow`.",
    "agent.deregistered": "`agentId`: it left, or a newer row took its place.",
    "agent.removed": "`agentId`: no sign of life for too long.",
    "agent.unhealthy": "`agentId`.",
    "agent.heartbeat": "`agentId`, `timestamp`.",
    "agent.message": "`AgentMessageAsked`.",
    "task.update": "`TaskUpdate`.",
    "channel.message": "`Message`.",
    "channel.ack": "`Ack`.",
    "channel.conversation.suppressed": "`conversationId`, `agentId`.",
    "channel.conversation.revived": "`conversationId`, `agentId`.",
    "claude.notify": "For older clients, beside `channel.message`.",
    "identified": "`agentId`, `identity`, `seq`, `epoch`, beside `type`.",
    "replayed": "The replay has come to its end; `seq`, beside `type`.",
    "resync": "The cursor doesn't fit, fetch everything afresh; `reason`, `seq`, `epoch`, beside `type`.",
    "channel.sent": "`requestId`, `message`, `deduplicated`.",
    "channel.acked": "`requestId`, `ack`.",
    "channel.error": "`requestId`, `error`, `code`: nothing was stored.",
    "error": "`error`, `code`; `about` names the frame's type.",
}
"""What a client is told, by `type`."""


def about_frames() -> str:
    """The WebSocket's frames, as Markdown."""
    return "\n".join(
        [
            "",
            "",
            "## The WebSocket `/ws`",
            "",
            "The token goes into the upgrade's `Authorization` header, like with every request. Every "
            "frame is a JSON object with a `type`. A client's frames have their fields beside it; ours "
            "have them in `data` unless said otherwise, `timestamp`, and `seq` where something was "
            "stored. A frame may be as large as `message_bytes` and its envelope: many libraries take 1 "
            "MiB unless told. Nothing is told twice, unless marked `replay`. Close code 4001: another "
            "connection identified itself as the same agent; don't connect again.",
            "",
            "A recipient says how far a message came: `delivered_to_bridge`, then `displayed_to_client`. "
            "It answers by a message with `replyTo` and the same `conversationId`, which counts as "
            "`answered`.",
            "",
            "A client may send:",
            "",
            *(f"- `{kind}`: {text}" for kind, text in SAID.items()),
            "",
            "It is told:",
            "",
            *(f"- `{kind}`: {text}" for kind, text in TOLD.items()),
        ]
    )
