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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from websockets.sync.client import connect

from agent_bridge.registry.peer import _HANDLERS
from integration.registry.identity_side import Frame, Request, Side
from integration.registry.identity_steps import (
    APART,
    BEGINNINGS,
    FRAMES,
    KINDS,
    LOOKS,
    ROUTES,
    WHO,
    frames,
    request,
    requests,
)
from integration.registry.running import Client
from integration.registry.swept import Swept

INBOX_LIMIT = 4
EXAMPLES, STEPS = 5, 20
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    directory = tmp_path_factory.mktemp("registry")
    with Swept(directory, inbox_limit=INBOX_LIMIT, terminal_retention_min=1) as running:
        yield running


class Walls(RuleBasedStateMachine):
    """Three identities, one registry; `logs` is what each did and what came of it."""

    registry: ClassVar[Swept]
    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.sides = {who: Side(self.registry, f"x-{who}-{number}-") for who in WHO}
        self.alone = {who: f"x-alone-{who}-{number}-" for who in WHO}
        self.logs: dict[str, list[tuple[Any, Any]]] = {who: [] for who in WHO}
        self.is_sound = True

    @initialize(kinds=st.permutations(KINDS), data=st.data())
    def everybody_begins(self, kinds: list[str], data: st.DataObject) -> None:
        """Each has something that the others could take for theirs; then each kind of step once."""
        for who in WHO:
            for step in BEGINNINGS["all"] + BEGINNINGS[who]:
                self.step(who, step)
        for kind in kinds:
            who = data.draw(st.sampled_from(WHO))
            self.step(who, data.draw(request(kind)) if kind in ROUTES else data.draw(FRAMES[kind]))

    @rule(who=st.sampled_from(WHO), request=requests)
    def asks(self, who: str, request: Request) -> None:
        self.step(who, request)

    @rule(who=st.sampled_from(WHO), frame=frames)
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
        """Look at everything; then each one's steps once more, by somebody who is alone."""
        if self.is_sound:
            for who in WHO:
                with self.nothing_crosses(who) as side:
                    self.logs[who].append((_look, _look(side)))
        is_sound = self.is_sound
        overheard = [side.told() for side in self.sides.values() if is_sound]
        for side in self.sides.values():
            side.close()
        if not is_sound:
            return
        assert overheard == [[[], []]] * len(WHO)
        for who, log in self.logs.items():
            side = Side(self.registry, self.alone[who])
            try:
                for step, result in log:
                    assert self.again(side, step) == result, step
            finally:
                side.close()

    def again(self, side: Side, step: Any) -> Any:  # noqa: ANN401
        """What comes of a step of the log."""
        if isinstance(step, int):
            self.pass_time(step)
            return side.told()
        return side.perform(step) if isinstance(step, Request | Frame) else step(side)


def _catch_up(side: Side) -> Any:  # noqa: ANN401
    return side.replayed("looker")


def _look(side: Side) -> Any:  # noqa: ANN401
    return [[side.request(look) for look in LOOKS], *side.told()]


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
    assert {"200", "201", "404", *FRAMES} <= set(Walls.done), Walls.done


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
