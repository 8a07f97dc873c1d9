"""What agents and client sessions send about themselves and their tasks, from JSON to checked values.

As in `wire`: text or object, InvalidError names the field, unknown fields are left aside.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import InvalidError
from agent_bridge.registry import fields, strict_json
from agent_bridge.registry.wire import Json, own_identity, read

PAYLOAD_VALUES = 200_000
"""Values that the payload of a task may hold: lists of files are long."""
ADDRESS_LIMIT = 2048
_LARGEST_PID = 2**31 - 1
_PATH_LIMIT = 4096
_HTTP = re.compile(r"https?://[^\s/?#]+[^\s]*")
_SOCKET = re.compile(r"wss?://[^\s/?#]+[^\s]*")


class AgentMessageType(enum.StrEnum):
    """What one agent sends another outside the channel."""

    REQUEST = "task.request"
    RESPONSE = "task.response"
    NOTIFICATION = "notification"


def registration(data: Json, identity: str | None) -> AgentRow:
    """An agent or a client session that makes itself known. Times are the directory's to stamp."""
    data = read(data)
    for required in ("agentId", "name", "projectPath"):
        if data.get(required) is None:
            raise InvalidError("agentId, name and projectPath are required", detail=f"{required} is missing")
    client = fields.optional_mapping(data, "clientInfo")
    kind = data.get("entryType")
    return AgentRow(
        agent_id=fields.identifier(data, "agentId"),
        name=_line(data, "name", fields.NAME_LIMIT),
        project_path=_line(data, "projectPath", _PATH_LIMIT),
        identity=own_identity(data, identity),
        entry_type=EntryType.AGENT if kind is None else fields.word(data, "entryType", EntryType),
        project_name=fields.optional_line(data, "projectName") or "",
        project_type=fields.optional_line(data, "projectType") or "unknown",
        url=_address(data, "url", _HTTP),
        ws_url=_address(data, "wsUrl", _SOCKET),
        port=fields.whole(data, "port", 65_535) or 0,
        card=fields.free(data, "card") or {},
        client_name=fields.optional_line(client, "clientName"),
        client_version=fields.optional_line(client, "clientVersion"),
        pid=fields.whole(data, "pid", _LARGEST_PID) or None,
        host=fields.optional_line(data, "host"),
    )


def agent_message(data: Json, now: int, *, to_agent_id: str | None = None) -> dict[str, Any]:
    """An AgentMessage in its wire form, `toAgentId` filled in where it isn't there; `now` in wall ms."""
    data = read(data)
    return _present(
        {
            "fromAgentId": fields.identifier(data, "fromAgentId"),
            "toAgentId": fields.optional_identifier(data, "toAgentId")
            or to_agent_id
            or _missing("toAgentId"),
            "taskId": fields.optional_identifier(data, "taskId"),
            "type": fields.word(data, "type", AgentMessageType).value,
            "payload": _payload(data),
            "timestamp": _or(fields.whole(data, "timestamp"), now),
        }
    )


def task_update(data: Json, now: int) -> dict[str, Any]:
    """The body of `POST /events` in its wire form; `now` in wall ms."""
    data = read(data)
    return _present(
        {
            "agentId": fields.identifier(data, "agentId"),
            "agentName": fields.optional_line(data, "agentName"),
            "taskId": fields.identifier(data, "taskId"),
            "state": _line(data, "state", fields.NAME_LIMIT),
            "skillId": fields.optional_identifier(data, "skillId"),
            "timestamp": _or(fields.whole(data, "timestamp"), now),
            "payload": _payload(data),
            "clientId": fields.optional_identifier(data, "clientId"),
            "clientName": fields.optional_line(data, "clientName"),
        }
    )


def _line(data: Mapping[str, Any], name: str, limit: int) -> str:
    fields.text(data, name, limit)
    return fields.optional_line(data, name, limit) or ""


def _address(data: Mapping[str, Any], name: str, form: re.Pattern[str]) -> str:
    value = fields.optional_line(data, name, ADDRESS_LIMIT)
    if value and not form.fullmatch(value):
        raise InvalidError(f"{name} can't be used", detail="it must be an address, or empty")
    return value or ""


def _payload(data: Mapping[str, Any]) -> object:
    value = data.get("payload")
    strict_json.check_free(value, "payload", PAYLOAD_VALUES)
    return value


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _missing(name: str) -> str:
    raise InvalidError(f"{name} is required")


def _present(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}
