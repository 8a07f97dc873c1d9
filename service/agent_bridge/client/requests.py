"""What a client asks, from values to JSON; the same for HTTP and the WebSocket."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_bridge.channel.model import GLOBAL_IDENTITY, Draft
from agent_bridge.channel.writes import Acknowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a session or an agent says of itself. A client's id comes from `channel.ids`.

    `more` is added to the wire form as it is (`url`, `wsUrl`, `port`, `card`, …). `pid` and `host` are this
    process's, so that `prune` can tell whether it lives.
    """

    agent_id: str
    name: str
    project_path: str
    identity: str = GLOBAL_IDENTITY
    project_name: str | None = None
    project_type: str | None = None
    entry_type: Literal["agent", "client"] = "client"
    client_name: str | None = None
    client_version: str | None = None
    more: Mapping[str, Any] | None = None

    def as_wire(self) -> dict[str, Any]:
        """The registration as JSON (AgentRegistration)."""
        wire: dict[str, Any] = {
            "agentId": self.agent_id,
            "name": self.name,
            "projectPath": self.project_path,
            "identity": self.identity,
            "entryType": self.entry_type,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        if self.project_name is not None:
            wire["projectName"] = self.project_name
        if self.project_type is not None:
            wire["projectType"] = self.project_type
        if self.client_name is not None:
            info = {"clientName": self.client_name, "clientVersion": self.client_version or ""}
            wire["clientInfo"] = info
        return wire | dict(self.more or {})


def draft(asked: Draft) -> dict[str, Any]:
    """A message to be sent, as JSON."""
    fields = {
        "fromAgentId": asked.from_agent_id,
        "kind": asked.kind.value,
        "content": asked.content,
        "identity": asked.identity,
        "toAgentId": asked.to_agent_id,
        "conversationId": asked.conversation_id,
        "messageId": asked.message_id,
        "replyTo": asked.reply_to,
        "fromAgentName": asked.from_agent_name,
        "taskId": asked.task_id,
        "meta": None if asked.meta is None else dict(asked.meta),
        "expiresAt": asked.expires_at,
        "requiresAck": asked.requires_ack or None,
        "expectsResponse": asked.expects_response,
    }
    return present(fields)


def acknowledge(asked: Acknowledge) -> dict[str, Any]:
    """An ack to be stored, as JSON."""
    fields = {
        "conversationId": asked.conversation_id,
        "messageId": asked.message_id,
        "state": asked.state.value,
        "actorId": asked.actor_id,
        "actorType": asked.actor_type.value,
        "identity": asked.identity,
        "detail": asked.detail,
    }
    return present(fields)


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None: absent means left out, never null."""
    return {name: value for name, value in fields.items() if value is not None}
