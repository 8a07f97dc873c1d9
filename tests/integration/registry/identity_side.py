"""One identity's view of a registry: what it asks and says, and all that it gets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from integration.registry.running import Client
from integration.registry.swept import Swept

AGENTS = ("ann", "bob")
"""The sessions of each identity."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STAMP = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|(?<="timestamp":)\d+')


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
