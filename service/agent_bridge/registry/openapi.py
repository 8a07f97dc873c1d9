"""The OpenAPI document: every route with what it takes, answers and refuses.

Written by hand, since the handlers read their bodies by themselves; a test compares it with the routes and
has a program try every one of its promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from agent_bridge import __version__
from agent_bridge.channel.directory import EntryType
from agent_bridge.channel.model import ConversationStatus
from agent_bridge.channel.storage.answers import MAX_PAGE
from agent_bridge.registry import openapi_schemas as schemas
from agent_bridge.registry.calls import QUERY_TEXT_LIMIT
from agent_bridge.registry.channel_routes import EVENTS_PAGE, InboxView
from agent_bridge.registry.dashboard_access import COOKIE
from agent_bridge.registry.openapi_schemas import (
    BOOLEAN,
    COUNT,
    CURSOR,
    ID,
    IDENTITY,
    STRING,
    TIME,
    Schema,
    array,
    ref,
)
from agent_bridge.registry.openapi_socket import about_frames
from agent_bridge.registry.security import IDENTITY_HEADER

_ERRORS = {
    400: "A field is missing or can't be used; the sentence names it.",
    401: "Neither the token nor a cookie that holds.",
    403: "A foreign host, origin or identity.",
    404: "Nothing of that name in the caller's identity.",
    408: "The body took too long to come.",
    409: "The cursor doesn't fit the database, or a name fits several agents.",
    413: "The body is too large.",
    414: "Path and query are too long.",
    429: "The sender is over its rate, or there is no room for more; nothing was stored.",
    431: "The headers are too large.",
    500: "Something went wrong that nobody foresaw.",
    503: "The database or the token can't be used at the moment.",
    507: "There is no room left for the database.",
}
_ANYWHERE = (400, 401, 403, 413, 414, 431, 500, 503)
_TRUE_OR_FALSE: Schema = {"type": "string", "enum": ["true", "false"]}
_OPEN: list[dict[str, list[str]]] = [{}, {"token": []}, {"dashboard": []}]
_TEXT: Schema = {"type": "string", "maxLength": QUERY_TEXT_LIMIT}


@cache
def document() -> dict[str, Any]:
    """The whole document (OpenAPI 3.1)."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agent-bridge registry",
            "version": __version__,
            "description": "Messages between agents, and who is there. JSON; times are Unix milliseconds; "
            "what is absent is left out." + about_frames(),
            "license": {"name": "MIT"},
        },
        "security": [{"token": []}, {"dashboard": []}],
        "paths": {**_agent_paths(), **_channel_paths(), **_other_paths()},
        "components": {
            "schemas": schemas.schemas(),
            "responses": {str(status): _refusal(status) for status in _ERRORS},
            "parameters": {
                "identity": {
                    "name": IDENTITY_HEADER,
                    "in": "header",
                    "schema": IDENTITY,
                    "description": "The namespace, `global` where none is named. May stand in the query "
                    "as `identity` instead; the dashboard's cookie may ask for all with `*`.",
                }
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "It stands in the token file."},
                "dashboard": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def _agent_paths() -> dict[str, Any]:
    row, rows = ref("AgentRow"), array(ref("AgentRow"))
    agent = _in_path("agent", "The agent's id.")
    named = _in_path("agent", "The agent's id, or its name in any case.")
    filters = (
        _query("skill", _TEXT, "A skill's id or tag, exactly."),
        _query("project", _TEXT, "A part of the project's path or name, in any case."),
        _query("healthy", _TRUE_OR_FALSE, "Only rows that are, or aren't, healthy."),
        _query("entryType", schemas.words(EntryType), "Only AgentServers, or only client sessions."),
    )
    return {
        "/agents": {
            "get": _operation("Who is there", {200: _json(rows)}, parameters=filters),
            "post": _operation("Make oneself known", {201: _json(row)}, body="Registration", refused=(429,)),
        },
        "/agents/{agent}": {
            "get": _operation("One row", {200: _json(row)}, parameters=(agent,), refused=(404,)),
            "delete": _operation("Leave", {200: _flags("removed")}, parameters=(agent,)),
        },
        "/agents/{agent}/heartbeat": {
            "post": _operation(
                "A sign of life; the body is read past",
                {200: _json(_object(ok=BOOLEAN, timestamp=TIME))},
                parameters=(agent,),
                refused=(404, 408),
            ),
        },
        "/agents/{agent}/message": {
            "post": _operation(
                "Tell an agent something outside the channel",
                {200: _json(_object(ok=BOOLEAN, delivered=BOOLEAN, via=_one_of("websocket", "event-only")))},
                body="AgentMessageAsked",
                parameters=(named,),
                refused=(404, 409, 429),
            ),
        },
        "/agents/{agent}/ag-ui": {
            "post": _operation(
                "Run an agent; its own stream of events is piped through",
                {200: {"description": "AG-UI events.", "content": {"text/event-stream": {"schema": STRING}}}},
                body="AgUiRun",
                parameters=(agent,),
                refused=(404, 429),
            ),
        },
        "/events": {
            "post": _operation("Tell of a task's new state", {200: _flags("ok")}, body="TaskUpdate"),
        },
    }


def _channel_paths() -> dict[str, Any]:
    conversation = _in_path("conversation", "The conversation's id.")
    message = _in_path("message", "The message's id.")
    before = _query("before", CURSOR, "`X-Next-Before` of the page before this one.")
    limit = _query("limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}, "How many at most.")
    reader = _query("agentId", ID, "The agent for which it is asked.")
    stored = _json(ref("StoredMessage"))
    return {
        "/channel/messages": {
            "post": _operation(
                "Send a message; answered after it was stored",
                {201: stored, 200: stored | {"description": "The row as first stored: its id was there."}},
                body="Draft",
                refused=(404, 429, 507),
            ),
        },
        "/channel/messages/{message}": {
            "get": _operation(
                "One message, and in `state` how far it came",
                {200: _json(ref("Message"))},
                parameters=(message,),
                refused=(404,),
            ),
        },
        "/channel/messages/{conversation}/{message}/retry": {
            "post": _operation(
                "Send a message once more",
                {200: _json(ref("Message"))},
                parameters=(conversation, message),
                refused=(404, 429, 507),
            ),
        },
        "/channel/acks": {
            "post": _operation(
                "Say how far a message has come",
                {201: _json(ref("Ack"))},
                body="Acknowledgement",
                refused=(404, 507),
            ),
        },
        "/channel/inbox": {
            "get": _operation(
                "What awaits an agent, oldest first",
                {200: _page("Message")},
                parameters=(
                    reader | {"required": True},
                    _query("view", schemas.words(InboxView), "Open ones by default."),
                    before,
                    limit,
                ),
            ),
        },
        "/channel/events": {
            "get": _operation(
                "What was stored after a cursor",
                {200: _json(ref("Events"))},
                parameters=(
                    _query("since", CURSOR, "The `seq` up to which everything is known.")
                    | {"required": True},
                    _query("epoch", _TEXT, "The `epoch` in which that cursor was given."),
                    _query("limit", {"type": "integer", "minimum": 1, "maximum": EVENTS_PAGE}, "How many."),
                ),
                refused=(409,),
            ),
        },
        "/channel/conversations": {
            "get": _operation(
                "Conversations, the one with the newest message first",
                {200: _page("Conversation")},
                parameters=(
                    _query("participant", ID, "Who sent or was sent something there."),
                    reader | {"description": "Leaves out what that agent has suppressed."},
                    _query("status", schemas.words(ConversationStatus), "Only those."),
                    _query("pending", _TRUE_OR_FALSE, "Only those that await an answer."),
                    _query("archived", _TRUE_OR_FALSE, "Those that were put away instead."),
                    before,
                    limit,
                ),
            ),
        },
        "/channel/conversations/{conversation}": {
            "get": _operation(
                "One conversation: its newest messages, oldest first",
                {200: _json(ref("Thread"), headers=_NEXT)},
                parameters=(conversation, reader, before, limit),
                refused=(404,),
            ),
        },
        "/channel/conversations/{conversation}/suppress": {
            "post": _operation(
                "Hide it from an agent's lists until a new message comes",
                {200: _flags("suppressed")},
                parameters=(conversation, reader | {"required": True}),
                refused=(404, 408, 507),
            ),
            "delete": _operation(
                "Show it again",
                {200: _flags("revived")},
                parameters=(conversation, reader | {"required": True}),
                refused=(507,),
            ),
        },
        "/notify-claude": {
            "post": _operation(
                "Send a chat message to a Claude session",
                {
                    200: _json(
                        _object(ok=BOOLEAN, conversationId=ID, messageId=ID, deduplicated=BOOLEAN),
                    )
                },
                body="Notification",
                refused=(404, 429, 507),
            ),
        },
    }


def _other_paths() -> dict[str, Any]:
    text = {"content": {"text/plain": {"schema": STRING}}}
    return {
        "/health": {
            "get": _operation(
                "Whether the registry is there; figures for who has the token",
                {200: _json(ref("Health"))},
                security=_OPEN,
            ),
        },
        "/openapi.json": {"get": _operation("This document", {200: _json({"type": "object"})})},
        "/dashboard": {
            "get": _operation("The dashboard's pages", {503: text | {"description": "Not there."}}),
        },
        "/dashboard/codes": {
            "post": _operation(
                "A code that opens the dashboard in a browser, once, within a minute",
                {201: _json(_object(code=STRING))},
                refused=(408,),
                security=[{"token": []}],
            ),
        },
        "/dashboard/login": {
            "get": _operation(
                "Change a code for the dashboard's cookie",
                {303: {"description": "To the dashboard.", "headers": _COOKIE}},
                parameters=(_query("code", _TEXT, "From `/dashboard/codes`.") | {"required": True},),
                security=[],
            ),
        },
    }


_NEXT = {"X-Next-Before": {"schema": COUNT, "description": "Where the next page begins; absent at the end."}}
_TOTAL = {
    "X-Total-Count": {
        "schema": COUNT,
        "description": "How many on all pages; for open inboxes and conversations; 10,000 stands for more.",
    }
}
_COOKIE = {
    "Location": {"schema": STRING, "required": True},
    "Set-Cookie": {"schema": STRING, "required": True},
}


def _operation(
    summary: str,
    answers: dict[int, Schema],
    *,
    body: str | None = None,
    parameters: Iterable[Schema] = (),
    refused: Iterable[int] = (),
    security: list[dict[str, list[str]]] | None = None,
) -> Schema:
    refusals = {*_ANYWHERE, *refused, *((408,) if body else ())} - set(answers)
    made: Schema = {
        "summary": summary,
        "parameters": [*parameters, {"$ref": "#/components/parameters/identity"}],
        "responses": {
            **{str(status): {"description": "Done.", **answer} for status, answer in answers.items()},
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(refusals)},
        },
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    if security is not None:
        made["security"] = security
    return made


def _refusal(status: int) -> Schema:
    made: Schema = {"description": _ERRORS[status], "content": {"application/json": {"schema": ref("Error")}}}
    if status == 401:
        made["headers"] = {"WWW-Authenticate": {"schema": STRING, "required": True}}
    if status == 429:
        seconds: Schema = {"type": "integer", "minimum": 1}
        made["headers"] = {"Retry-After": {"schema": seconds, "required": True, "description": "Seconds."}}
    return made


def _json(schema: Schema, *, headers: Schema | None = None) -> Schema:
    made: Schema = {"content": {"application/json": {"schema": schema}}}
    return made | ({"headers": headers} if headers else {})


def _page(name: str) -> Schema:
    return _json(array(ref(name)), headers=_NEXT | _TOTAL)


def _flags(*names: str) -> Schema:
    return _json(_object(**dict.fromkeys(names, BOOLEAN)))


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _one_of(*texts: str) -> Schema:
    return {"type": "string", "enum": list(texts)}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _in_path(name: str, description: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": ID, "description": description}
