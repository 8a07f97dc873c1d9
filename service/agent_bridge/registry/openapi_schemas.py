"""The values of the OpenAPI document: what goes in, what comes out, and how a refusal looks.

Ids, identities, names and addresses have formats of ours; a schema can't say "printable" exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from agent_bridge.channel.directory import EntryType
from agent_bridge.channel.ids import IDENTITY_PATTERN, MAX_ID
from agent_bridge.channel.model import AckState, ActorType, ConversationStatus, Kind
from agent_bridge.registry import fields, wire_agents
from agent_bridge.registry.strict_json import DEPTH_LIMIT, LARGEST, VALUES_LIMIT
from agent_bridge.registry.wire_agents import AgentMessageType

Schema = dict[str, Any]

ID: Schema = {
    "type": "string",
    "format": "agent-bridge-id",
    "minLength": 1,
    "maxLength": MAX_ID,
    "description": "Printable characters on one line, not only blanks.",
}
IDENTITY: Schema = {"type": "string", "pattern": f"^{IDENTITY_PATTERN}$"}
LINE: Schema = {
    "type": "string",
    "format": "agent-bridge-line",
    "maxLength": fields.NAME_LIMIT,
    "description": "Without line breaks, control characters and what turns a text's direction.",
}
TIME: Schema = {"type": "integer", "minimum": 0, "maximum": fields.LARGEST_TIME, "description": "Unix ms."}
CURSOR: Schema = {"type": "integer", "minimum": 0, "maximum": fields.LARGEST_TIME}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
STRING: Schema = {"type": "string"}
FREE_VALUE: Schema = {"$ref": "#/components/schemas/FreeValue"}
FREE: Schema = {
    "type": "object",
    "additionalProperties": FREE_VALUE,
    "description": f"Anything, at most {VALUES_LIMIT} values, {DEPTH_LIMIT} deep.",
}


def words(kind: type[StrEnum]) -> Schema:
    """One of an enumeration's words."""
    return {"type": "string", "enum": [word.value for word in kind]}


def ref(name: str) -> Schema:
    """A schema of this document by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def schemas() -> dict[str, Schema]:
    """All of them by name."""
    return {**_asked(), **_answered()}


def _asked() -> dict[str, Schema]:
    name_line = LINE | {"minLength": 1}
    path = LINE | {"minLength": 1, "maxLength": 4096}
    message_options: Schema = {
        "conversationId": ID,
        "messageId": ID,
        "replyTo": ID,
        "taskId": ID,
        "meta": FREE,
        "expiresAt": TIME,
        "requiresAck": BOOLEAN,
        "expectsResponse": BOOLEAN
        | {
            "description": "Absent: a `chat` or `task_request` awaits an answer unless its text says no; "
            "one with `replyTo` only where its text asks."
        },
        "identity": IDENTITY,
    }
    content: Schema = {"type": "string", "minLength": 1}
    draft: Schema = {
        "fromAgentId": ID,
        "fromAgentName": LINE,
        "toAgentId": ID,
        "kind": words(Kind),
        "content": content,
        "createdAt": TIME
        | {"description": "Kept in `meta` as `senderCreatedAt`; the registry stamps its own."},
        **message_options,
    }
    return {
        "FreeValue": {
            "anyOf": [
                {"type": ["string", "boolean", "null"]},
                {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
                {"type": "array", "items": FREE_VALUE},
                {"type": "object", "additionalProperties": FREE_VALUE},
            ]
        },
        "Draft": _taken(draft, ("fromAgentId", "kind", "content")),
        "Notification": _taken(
            {"content": content, "agentId": ID, "agentName": LINE, "toAgentId": ID, **message_options},
            ("content",),
        ),
        "Acknowledgement": _taken(
            {
                "conversationId": ID,
                "messageId": ID,
                "state": words(AckState),
                "actorId": ID,
                "actorType": words(ActorType),
                "detail": {"type": "string", "maxLength": fields.TEXT_LIMIT},
                "identity": IDENTITY,
            },
            ("conversationId", "messageId", "state", "actorId", "actorType"),
        ),
        "Registration": _taken(
            {
                "agentId": ID,
                "name": name_line,
                "projectPath": path,
                "projectName": LINE,
                "projectType": LINE,
                "entryType": words(EntryType)
                | {
                    "description": "`client`: a session that can be written to. The newest of one program "
                    "(`clientName`), project and identity takes the place of older ones."
                },
                "identity": IDENTITY,
                "url": _address("http"),
                "wsUrl": _address("ws"),
                "port": {"type": "integer", "minimum": 0, "maximum": 65_535},
                "card": FREE,
                "clientInfo": {
                    "type": ["object", "null"],
                    "properties": {"clientName": _or_null(LINE), "clientVersion": _or_null(LINE)},
                },
                "pid": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                "host": LINE | {"description": "With `pid`: where it runs, by the machine's host name."},
            },
            ("agentId", "name", "projectPath"),
        ),
        "AgentMessageAsked": _taken(
            {
                "fromAgentId": ID,
                "toAgentId": ID,
                "taskId": ID,
                "type": words(AgentMessageType),
                "payload": FREE_VALUE,
                "timestamp": TIME,
            },
            ("fromAgentId", "type"),
        ),
        "TaskUpdate": _taken(
            {
                "agentId": ID,
                "agentName": LINE,
                "taskId": ID,
                "state": name_line,
                "skillId": ID,
                "timestamp": TIME,
                "payload": FREE_VALUE,
                "clientId": ID,
                "clientName": LINE,
            },
            ("agentId", "taskId", "state"),
        ),
        "SuppressAsked": _taken({"agentId": ID}, ()),
        "AgUiRun": {"type": "object", "description": "An AG-UI run request; handed on as it is."},
    }


def _answered() -> dict[str, Schema]:
    message: Schema = {
        "conversationId": ID,
        "messageId": ID,
        "fromAgentId": ID,
        "kind": words(Kind),
        "content": STRING,
        "createdAt": TIME,
        "expectsResponse": BOOLEAN,
        "requiresAck": BOOLEAN,
        "attemptCount": {"type": "integer", "minimum": 1},
        "state": words(AckState),
        "identity": IDENTITY,
        "seq": COUNT,
    }
    message_options = {
        "toAgentId": ID,
        "replyTo": ID,
        "fromAgentName": LINE,
        "taskId": ID,
        "meta": {"type": "object"},
        "expiresAt": TIME,
    }
    ack: Schema = {
        "conversationId": ID,
        "messageId": ID,
        "state": words(AckState),
        "actorId": ID,
        "actorType": words(ActorType),
        "timestamp": TIME,
        "identity": IDENTITY,
        "seq": COUNT,
    }
    row: Schema = {
        "agentId": ID,
        "name": LINE,
        "entryType": words(EntryType),
        "identity": IDENTITY,
        "projectPath": STRING,
        "projectName": STRING,
        "projectType": STRING,
        "url": STRING,
        "wsUrl": STRING,
        "port": COUNT,
        "card": {"type": "object"},
        "registeredAt": TIME,
        "lastHeartbeat": TIME,
        "healthy": BOOLEAN,
    }
    client_info = _given({"clientName": STRING, "clientVersion": STRING})
    conversation: Schema = {
        "conversationId": ID,
        "identity": IDENTITY,
        "status": words(ConversationStatus),
        "lastMessage": ref("Message"),
        "pendingReply": BOOLEAN,
        "expired": BOOLEAN,
        "pendingCount": COUNT,
        "pendingMessageIds": array(ID),
        "messageCount": COUNT,
        "participants": array(ID),
        "updatedAt": TIME,
        "archived": BOOLEAN,
        "suppressed": BOOLEAN,
    }
    thread: Schema = {
        "conversationId": ID,
        "identity": IDENTITY,
        "messages": array(ref("Message")),
        "acknowledgements": array(ref("Ack")),
        "suppressed": BOOLEAN,
        "archived": BOOLEAN,
    }
    event = _given({"type": STRING, "seq": COUNT, "data": {"type": "object"}})
    return {
        "Error": _given({"error": STRING, "code": STRING}),
        "Message": _given(message, message_options),
        "StoredMessage": _given({**message, "deduplicated": BOOLEAN}, message_options),
        "Ack": _given(ack, {"detail": STRING}),
        "Conversation": _given(conversation, {"lastAckState": words(AckState)}),
        "Thread": _given(thread),
        "Event": event,
        "Events": _given({"epoch": STRING, "seq": COUNT, "more": BOOLEAN, "events": array(ref("Event"))}),
        "AgentRow": _given(row, {"clientInfo": client_info, "pid": COUNT, "host": STRING}),
        "Health": {
            "type": "object",
            "required": ["status"],
            "properties": {
                "status": {"const": "ok"},
                "agents": COUNT,
                "wsConnections": COUNT,
                "wsDashboardClients": COUNT,
                "timestamp": {"type": "string", "format": "date-time"},
            },
        },
    }


def _taken(properties: Schema, required: Iterable[str]) -> Schema:
    """What callers send. Null stands for absent, and fields that nobody knows are left aside."""
    needed = list(required)
    optional = {name: _or_null(schema) for name, schema in properties.items() if name not in needed}
    made: Schema = {"type": "object", "properties": {name: properties[name] for name in needed} | optional}
    return made | ({"required": needed} if needed else {})


def _given(properties: Schema, optional: Schema | None = None) -> Schema:
    """What we answer: `properties` are always there."""
    return {"type": "object", "required": list(properties), "properties": properties | (optional or {})}


def _or_null(schema: Schema) -> Schema:
    if not isinstance(schema.get("type"), str):
        return schema
    made = schema | {"type": [schema["type"], "null"]}
    return made | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


def _address(scheme: str) -> Schema:
    return {
        "type": "string",
        "format": f"agent-bridge-{scheme}-address",
        "maxLength": wire_agents.ADDRESS_LIMIT,
        "description": f"Empty, or an address that begins with {scheme}:// or {scheme}s://.",
    }
