"""What each of three identities may do: every route and every frame, all with the same names and ids."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from integration.registry.identity_side import AGENTS, Frame, Request

WHO = ("red", "green", "blue")
THREADS = ("c1", "c2")
MESSAGES = ("m1", "m2", "m3")


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with each of these; None stands for a field that is left out."""
    return st.fixed_dictionaries(fields).map(
        lambda made: {name: value for name, value in made.items() if value is not None}
    )


_agents, _threads, _messages = map(st.sampled_from, (AGENTS, THREADS, MESSAGES))
_nothing: st.SearchStrategy[Any] = st.just({})
_words = st.sampled_from(["{me} asks: will it do?", "{me} tells", "----- END MESSAGE {me}"])
_message = _some(
    fromAgentId=_agents,
    fromAgentName=st.none() | st.just("Name {me}"),
    toAgentId=st.none() | _agents,
    kind=st.sampled_from(["chat", "task_request", "presence"]),
    content=_words,
    conversationId=st.none() | _threads,
    messageId=_messages,
    replyTo=st.none() | _messages,
    meta=st.none() | st.just({"from": "{me}"}),
    expectsResponse=st.none() | st.booleans(),
    expiresAt=st.none() | st.just("{soon}"),
)
_ack = _some(
    conversationId=_threads,
    messageId=_messages,
    state=st.sampled_from(["delivered_to_bridge", "displayed_to_client", "answered", "failed"]),
    actorId=_agents,
    actorType=st.just("client"),
    detail=st.none() | st.just("{me} says so"),
)
_row = _some(
    agentId=_agents,
    name=_agents.map("name-{}".format),
    projectPath=st.sampled_from(["/p/1", "/p/2"]),
    projectName=st.just("project of {me}"),
    entryType=st.just("client"),
    clientInfo=st.just({"clientName": "tester", "clientVersion": "{me}"}),
    url=st.sampled_from(["", "http://127.0.0.1:1/{me}"]),
)
_agent_message = _some(
    fromAgentId=_agents,
    type=st.just("notification"),
    payload=st.just("{me}"),
)
_update = _some(agentId=_agents, taskId=st.just("t"), state=st.just("{me} works"))
_filters = _some(
    healthy=st.none() | st.sampled_from(["true", "false"]),
    project=st.none() | st.just("p/1"),
    entryType=st.just("client"),
)
_list = _some(
    participant=st.none() | _agents,
    agentId=st.none() | _agents,
    status=st.none() | st.sampled_from(["pending", "failed", "answered", "active", "expired"]),
    archived=st.none() | st.just("true"),
    limit=st.none() | st.just("1"),
)
_inbox = _some(agentId=_agents, view=st.sampled_from(["open", "expired", "all"]))
_agent_path = _some(agent=_agents)
_called_path = _some(agent=st.sampled_from([*AGENTS, "name-ann", "NAME-BOB"]))
_thread_path = _some(conversation=_threads)
_message_path = _some(conversation=_threads, message=_messages)
_single_path = _some(message=_messages)
_whose = _some(agentId=_agents)

# route: the values in its path, its query, its body
ROUTES: dict[str, tuple[st.SearchStrategy[Any], st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "GET /health": (_nothing, _nothing, st.none()),
    "GET /agents": (_nothing, _filters, st.none()),
    "POST /agents": (_nothing, _nothing, _row),
    "GET /agents/{agent}": (_agent_path, _nothing, st.none()),
    "DELETE /agents/{agent}": (_agent_path, _nothing, st.none()),
    "POST /agents/{agent}/heartbeat": (_agent_path, _nothing, st.none()),
    "POST /agents/{agent}/message": (_called_path, _nothing, _agent_message),
    "POST /agents/{agent}/ag-ui": (_agent_path, _nothing, _nothing),
    "POST /events": (_nothing, _nothing, _update),
    "POST /channel/messages": (_nothing, _nothing, _message),
    "GET /channel/messages/{message}": (_single_path, _nothing, st.none()),
    "POST /channel/acks": (_nothing, _nothing, _ack),
    "GET /channel/inbox": (_nothing, _inbox, st.none()),
    "GET /channel/events": (_nothing, st.just({"since": "{since}"}), st.none()),
    "GET /channel/conversations": (_nothing, _list, st.none()),
    "GET /channel/conversations/{conversation}": (_thread_path, _nothing, st.none()),
    "POST /channel/conversations/{conversation}/suppress": (_thread_path, _whose, st.none()),
    "DELETE /channel/conversations/{conversation}/suppress": (_thread_path, _whose, st.none()),
    "POST /channel/messages/{conversation}/{message}/retry": (_message_path, _nothing, st.none()),
    "POST /notify-claude": (
        _nothing,
        _nothing,
        _some(content=_words, messageId=_messages, toAgentId=st.none() | _agents),
    ),
    "GET /dashboard": (_nothing, _nothing, st.none()),
}
APART = {
    "POST /dashboard/codes": "the dashboard's door, see the last test",
    "GET /dashboard/login": "the same",
    "GET /openapi.json": "the same for everybody",
}


def request(route: str) -> st.SearchStrategy[Request]:
    return st.builds(Request, st.just(route), *ROUTES[route])


FRAMES: dict[str, st.SearchStrategy[Frame]] = {
    "identify": _some(agentId=_agents, events=st.sampled_from(["all", "own"])).map(
        lambda fields: Frame("identify", fields, ("identified", "error"))
    ),
    "channel.send": _message.map(
        lambda message: Frame(
            "channel.send", {"requestId": "r", "message": message}, ("channel.sent", "channel.error")
        )
    ),
    "channel.ack": _ack.map(
        lambda ack: Frame("channel.ack", {"requestId": "r", "ack": ack}, ("channel.acked", "channel.error"))
    ),
    "agent.message": st.builds(
        lambda data, target: Frame("agent.message", {"data": {**data, "toAgentId": target}}),
        _agent_message,
        _agents,
    ),
    "heartbeat": st.just(Frame("heartbeat", {})),
}
KINDS = (*ROUTES, *FRAMES)
requests = st.sampled_from(sorted(ROUTES)).flatmap(request)
frames = st.sampled_from(sorted(FRAMES)).flatmap(lambda kind: FRAMES[kind])


def _send(**message: object) -> Request:
    return Request("POST /channel/messages", body={"kind": "chat", "content": "{me} begins"} | message)


def _ack_by_bob(conversation: str, message: str, state: str) -> Request:
    about = {"conversationId": conversation, "messageId": message, "state": state}
    return Request(
        "POST /channel/acks", body=about | {"actorId": "bob", "actorType": "client", "detail": "of {me}"}
    )


def _register(agent: str, project: str) -> Request:
    row = {"agentId": agent, "name": f"name-{agent}", "projectPath": project, "projectName": "of {me}"}
    client = {"entryType": "client", "clientInfo": {"clientName": "tester", "clientVersion": "1"}}
    return Request("POST /agents", body=row | client | {"url": "http://127.0.0.1:1/{me}"})


BEGINNINGS: dict[str, list[Request | Frame]] = {
    "all": [
        _send(fromAgentId="ann", toAgentId="bob", conversationId="c1", messageId="m1", expectsResponse=True),
        _send(fromAgentId="{me}", conversationId="c2", messageId="m2"),
        Frame("identify", {"agentId": "ann"}, ("identified",)),
    ],
    "red": [_ack_by_bob("c1", "m1", "delivered_to_bridge"), _register("ann", "/p/1")],
    "green": [_ack_by_bob("c2", "m2", "displayed_to_client"), _register("bob", "/p/1")],
    "blue": [
        Request(
            "POST /channel/conversations/{conversation}/suppress", {"conversation": "c1"}, {"agentId": "bob"}
        ),
        _register("ann", "/p/2"),
        _register("bob", "/p/1"),
    ],
}
LOOKS = [
    Request("GET /health"),
    Request("GET /agents", query={"entryType": "client"}),
    *(Request("GET /agents/{agent}", {"agent": agent}) for agent in AGENTS),
    *(Request("POST /agents/{agent}/ag-ui", {"agent": agent}, body={}) for agent in AGENTS),
    *(
        Request("GET /channel/inbox", query={"agentId": agent, "view": view})
        for agent in AGENTS
        for view in ("open", "all")
    ),
    Request("GET /channel/conversations", query={"archived": "true"}),
    Request("GET /channel/conversations", query={"participant": "ann"}),
    Request("GET /channel/conversations", query={"agentId": "bob"}),
    *(
        Request("GET /channel/conversations/{conversation}", {"conversation": thread}, {"agentId": "bob"})
        for thread in THREADS
    ),
    Request("GET /channel/events", query={"since": "{since}"}),
    *(
        Request(
            "POST /agents/{agent}/message",
            {"agent": f"name-{agent}"},
            body={"fromAgentId": "looker", "type": "notification"},
        )
        for agent in AGENTS
    ),
]
"""All that one can see."""
