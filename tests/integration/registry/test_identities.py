"""The wall between identities: whatever three of them do, each is answered and told as if it were alone.

Every route and every frame, over real HTTP and WebSockets. All use the same names and ids, and everything
that one of them writes bears its mark. Between its own steps nobody may be told anything, and no answer or
frame may bear another's mark; in the end each one's steps are done once more by somebody who is alone, who
must be answered and told the same: so no count, no "exists already" and no 404 depends on others either.
What is meant to cross, AgentServer rows and the dashboard, has tests of its own at the end.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from websockets.sync.client import connect

from agent_bridge.registry.peer import _HANDLERS
from integration.registry.running import Client
from integration.registry.swept import Swept

WHO = ("red", "green", "blue")
AGENTS = ("ann", "bob")
THREADS = ("c1", "c2")
MESSAGES = ("m1", "m2", "m3")
INBOX_LIMIT = 4
EXAMPLES, STEPS = 8, 30
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STAMP = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|(?<="timestamp":)\d+')
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    directory = tmp_path_factory.mktemp("registry")
    with Swept(directory, inbox_limit=INBOX_LIMIT, terminal_retention_min=1) as running:
        yield running


@dataclass(frozen=True)
class Request:
    """A request; `{me}` stands for the identity, `{soon}` for a time in a minute."""

    route: str
    values: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    @property
    def target(self) -> str | None:
        """The session that it is for."""
        body = self.body or {}
        found: str | None = None
        if self.route == "POST /agents/{agent}/message":
            found = self.values["agent"]
        elif self.route in ("POST /channel/messages", "POST /notify-claude"):
            found = body.get("toAgentId")
        return found


@dataclass(frozen=True)
class Frame:
    """A frame; `ends` are the types one of which answers it, if it is answered."""

    kind: str
    fields: Mapping[str, Any]
    ends: tuple[str, ...] = ()

    @property
    def target(self) -> str | None:
        """The session that it is for."""
        inner = self.fields.get("message", self.fields.get("data", {}))
        found: str | None = inner.get("toAgentId")
        return found


class Side:
    """One identity: a socket that only listens, one that speaks, and requests."""

    def __init__(self, registry: Swept, identity: str) -> None:
        self.identity = identity
        self.registry = registry
        self.watcher = registry.connect(identity)
        self.speaker = registry.connect(identity)
        self.since = self.watcher.snapshot["seq"]
        self.texts: list[str] = []
        """All that it ever got, as it came."""
        self._threads: dict[str, str] = {}
        self._keep([self.watcher.snapshot, self.speaker.snapshot])

    def close(self) -> None:
        """Leave: sockets and rows."""
        for socket in (self.watcher, self.speaker):
            self._close(socket)
        for agent in AGENTS:
            self.request(Request("DELETE /agents/{agent}", {"agent": agent}))

    def has(self, agent: str) -> bool:
        """Whether it finds that session."""
        found = self.registry.http.get(f"/agents/{agent}", headers=self.registry.headers(self.identity))
        return found.status_code == 200

    def perform(self, step: Request | Frame) -> Any:  # noqa: ANN401 - JSON is anything
        """What comes of a step: the answer, and what both sockets are told. Without what differs anyway."""
        answer = self.request(step) if isinstance(step, Request) else self.frame(step)
        return [answer, *self.told()]

    def told(self) -> list[Any]:
        """What its sockets were told since it was last asked."""
        return [self._keep(socket.all_until_now()) for socket in (self.watcher, self.speaker)]

    def request(self, step: Request) -> Any:  # noqa: ANN401
        """Status, body and figures of the answer."""
        method, path = step.route.split()
        query = {name: str(self._filled(value)) for name, value in step.query.items()}
        answer = self.registry.http.request(
            method,
            path.format(**step.values),
            params=query,
            json=self._filled(step.body),
            headers=self.registry.headers(self.identity),
        )
        self.texts.append(f"{answer.headers}\n{answer.text}")
        is_json = answer.headers["content-type"].startswith("application/json")
        return [
            answer.status_code,
            self._plain(answer.json() if is_json else answer.text),
            answer.headers.get("x-total-count"),
            "x-next-before" in answer.headers,
        ]

    def frame(self, step: Frame) -> Any:  # noqa: ANN401
        """The frames up to the one that answers it."""
        self.speaker.say(step.kind, **self._filled(step.fields))
        frames: list[dict[str, Any]] = []
        while step.ends and not (frames and frames[-1]["type"] in step.ends):
            frames.append(self.speaker.next())
        return self._keep(frames)

    def replayed(self, agent: str) -> Any:  # noqa: ANN401
        """What a socket that speaks for `agent` gets of all that was stored since the beginning."""
        frames: list[dict[str, Any]] = []
        with self.registry.connect(self.identity, "events=none") as socket:
            socket.identify(agent, since=self.since, epoch=self.registry.hub.epoch)
            frames.append(socket.until("replayed", frames))
            self._close(socket)
        return [self._keep(frames), *self.told()]

    def leave(self) -> Any:  # noqa: ANN401
        """The socket that speaks goes, and another comes."""
        self._close(self.speaker)
        left = self._keep(self.watcher.all_until_now())
        self.speaker = self.registry.connect(self.identity)
        return [left, self._keep([self.speaker.snapshot])]

    def _close(self, socket: Client) -> None:
        """Returns once the registry knows."""
        peers = self.registry.hub.peers
        before = len(peers)
        socket.close()
        self.registry.wait_for(lambda: len(peers) < before)

    def _keep(self, frames: list[dict[str, Any]]) -> list[Any]:
        self.texts += [json.dumps(frame) for frame in frames]
        return [self._plain(frame) for frame in frames]

    def _filled(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, str):
            if value in ("{soon}", "{since}"):
                return {"{soon}": self.registry.clock.wall + 60_000, "{since}": self.since}[value]
            return value.replace("{me}", self.identity)
        if isinstance(value, Mapping):
            return {name: self._filled(one) for name, one in value.items()}
        return value

    def _plain(self, value: Any) -> Any:  # noqa: ANN401
        """Without times, numbers of the store's counter, made up ids, and its own name."""
        if isinstance(value, dict):
            return {name: self._plain(one) for name, one in value.items() if name not in ("seq", "epoch")}
        if isinstance(value, list):
            return [self._plain(one) for one in value]
        if isinstance(value, str):
            named = _UUID.sub(
                lambda found: self._threads.setdefault(found[0], f"t{len(self._threads)}"), value
            )
            return _STAMP.sub("T", named.replace(self.identity, "ME"))
        return "T" if isinstance(value, int) and value > 10**12 else value


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
_requests = st.sampled_from(sorted(ROUTES)).flatmap(
    lambda route: st.builds(Request, st.just(route), *ROUTES[route])
)
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
_frames = st.sampled_from(sorted(FRAMES)).flatmap(lambda kind: FRAMES[kind])


class Walls(RuleBasedStateMachine):
    """Three identities, one registry; `logs` is what each did and what came of it."""

    registry: ClassVar[Swept]
    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.sides = {who: Side(self.registry, f"{who}{number}x") for who in WHO}
        self.alone = {who: f"alone-{who}-{number}x" for who in WHO}
        self.logs: dict[str, list[tuple[Any, Any]]] = {who: [] for who in WHO}
        self.is_sound = True

    @initialize()
    def everybody_begins(self) -> None:
        for who in WHO:
            self.step(who, Request("POST /channel/messages", body=_FIRST))

    @rule(who=st.sampled_from(WHO), request=_requests)
    def asks(self, who: str, request: Request) -> None:
        self.step(who, request)

    @rule(who=st.sampled_from(WHO), frame=_frames)
    def says(self, who: str, frame: Frame) -> None:
        self.step(who, frame)

    def step(self, who: str, step: Request | Frame) -> None:
        """Do it, and see that nothing crosses."""
        with self.nothing_crosses(who) as side:
            others = [self.sides[other] for other in WHO if other != who]
            is_elsewhere = (
                step.target is not None
                and not side.has(step.target)
                and any(other.has(step.target) for other in others)
            )
            result = side.perform(step)
            if is_elsewhere:
                # The one thing that is told of others: that a session of that name isn't to be written to.
                assert '"wrong_identity"' in json.dumps(result)
            else:
                self.logs[who].append((step, result))
                self.done[str(result[0][0]) if isinstance(step, Request) else step.kind] += 1

    @rule(who=st.sampled_from(WHO))
    def a_socket_goes(self, who: str) -> None:
        with self.nothing_crosses(who) as side:
            self.logs[who].append((Side.leave, side.leave()))

    @rule(who=st.sampled_from(WHO))
    def somebody_catches_up(self, who: str) -> None:
        with self.nothing_crosses(who) as side:
            self.logs[who].append((_catch_up, _catch_up(side)))

    @rule(seconds=st.sampled_from([40, 70]))
    def time_passes(self, seconds: int) -> None:
        with ExitStack() as together:
            for who in WHO:
                together.enter_context(self.nothing_crosses(who))
            self.pass_time(seconds)
            for who, side in self.sides.items():
                self.logs[who].append((seconds, side.told()))

    def pass_time(self, seconds: int) -> None:
        """Let time pass, and the sweeps see it."""
        self.registry.clock.go_on(seconds * 1000)
        self.registry.sweep("presence", "expiry", "terminal")

    @contextmanager
    def nothing_crosses(self, who: str) -> Iterator[Side]:
        """Since its last step it was told nothing; nothing that comes of this one bears another's mark."""
        side = self.sides[who]
        self.is_sound = False
        assert side.told() == [[], []]
        yield side
        marks = [other.identity for other in self.sides.values() if other is not side]
        assert not [text for text in side.texts for mark in marks if mark in text]
        side.texts.clear()
        self.is_sound = True

    def teardown(self) -> None:
        """Each one's steps once more, by somebody who is alone."""
        is_sound = self.is_sound
        overheard = [side.told() for side in self.sides.values() if is_sound]
        for side in self.sides.values():
            side.close()
        if not is_sound:
            return
        assert overheard == [[[], []]] * len(WHO)
        for who, log in self.logs.items():
            side = Side(self.registry, self.alone[who])
            for step, result in log:
                assert self.again(side, step) == result, step
            side.close()

    def again(self, side: Side, step: Any) -> Any:  # noqa: ANN401
        """What comes of a step of the log."""
        if isinstance(step, int):
            self.pass_time(step)
            return side.told()
        return side.perform(step) if isinstance(step, Request | Frame) else step(side)


_FIRST = {
    "fromAgentId": "ann",
    "toAgentId": "bob",
    "kind": "chat",
    "content": "{me} begins",
    "conversationId": "c1",
    "messageId": "m1",
    "expectsResponse": True,
}


def _catch_up(side: Side) -> Any:  # noqa: ANN401
    return side.replayed("looker")


def test_each_is_answered_and_told_as_if_it_were_alone(registry: Swept) -> None:
    Walls.registry = registry
    Walls.done.clear()
    run_state_machine_as_test(
        Walls,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert {"200", "201", "404", *FRAMES} <= set(Walls.done), "nothing much was done"


def test_the_steps_are_every_route_and_every_frame(registry: Swept) -> None:
    document = registry.http.get("/openapi.json").json()
    routes = {f"{method.upper()} {path}" for path, one in document["paths"].items() for method in one}

    def shape(route: str) -> str:
        return re.sub(r"\{\w+\}", "{}", route)

    assert {shape(route) for route in [*ROUTES, *APART]} >= {shape(route) for route in routes}
    assert set(FRAMES) == set(_HANDLERS)


def test_agent_servers_are_seen_by_all_and_changed_by_their_own(registry: Swept) -> None:
    registry.register("server", "owner", entryType="agent", clientInfo=None, card={"skills": [{"id": "dig"}]})
    registry.register("session", "owner")
    theirs = registry.headers("visitor")
    with registry.connect("visitor") as visitor, registry.connect("owner") as owner:
        for socket in (visitor, owner):
            assert "server" in {row["agentId"] for row in socket.snapshot["agents"]}
        assert "session" not in {row["agentId"] for row in visitor.snapshot["agents"]}
        found = registry.http.get("/agents", params={"skill": "dig"}, headers=theirs).json()
        assert [row["agentId"] for row in found] == ["server"]
        assert registry.http.get("/agents/server", headers=theirs).json()["identity"] == "owner"

        assert registry.http.delete("/agents/server", headers=theirs).json() == {"removed": False}
        assert registry.http.post("/agents/server/heartbeat", headers=theirs).status_code == 404
        for socket in (visitor, owner):
            assert socket.all_until_now() == []
        registry.http.post("/agents/session/heartbeat", headers=registry.headers("owner"))
        assert visitor.all_until_now() == [], "a client's row is its identity's alone"

        assert registry.http.delete("/agents/server", headers=registry.headers("owner")).json() == {
            "removed": True
        }
        for socket in (visitor, owner):
            assert socket.until("agent.deregistered")["data"]["agentId"] == "server"


def test_only_the_dashboard_may_ask_for_everybody(registry: Swept) -> None:
    before = registry.hub.store.last_seq()
    sent = {who: registry.post(f"{who}-seen", conversationId="c", toAgentId="bob") for who in WHO}
    registry.register("session", "red-seen")
    everybody = {"identity": "*"}
    refused = registry.http.get("/agents", params=everybody)
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_identity")
    with httpx.Client(base_url=f"http://localhost:{registry.port}") as page:
        code = registry.http.post("/dashboard/codes").json()["code"]
        assert page.get("/dashboard/login", params={"code": code}).status_code == 303
        told = page.get("/channel/events", params=everybody | {"since": before}).json()["events"]
        rows = page.get("/agents", params=everybody).json()
        own = page.get("/channel/conversations").json()
        headers = {
            "Cookie": f"agent_bridge_dashboard={page.cookies['agent_bridge_dashboard']}",
            "Origin": f"http://localhost:{registry.port}",
        }
    assert [event["data"]["messageId"] for event in told] == [one["messageId"] for one in sent.values()]
    assert "session" in {row["agentId"] for row in rows}
    assert own == [], "without `*` it is of one identity like everybody"
    url = f"ws://localhost:{registry.port}/ws?identity=*"
    with connect(url, additional_headers=headers, compression=None) as connection:
        socket = Client(connection)
        for who in WHO:
            registry.post(f"{who}-seen", content=who)
        heard = [socket.until("channel.message")["data"]["content"] for _ in WHO]
    assert heard == list(WHO)
