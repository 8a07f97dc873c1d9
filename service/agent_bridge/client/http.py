"""Asking the registry over HTTP: one method a route, for commands that ask and go.

    with Registry(address.find(), identity="global") as registry:
        registry.agents(healthy=True)

Every method raises the ChannelError that the registry answers with, NotRunningError when nobody answers (in
time), and AnswerError when what comes back can't be understood.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from agent_bridge.channel import ids
from agent_bridge.channel.model import GLOBAL_IDENTITY, Ack, Conversation, ConversationStatus, Draft, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client import answers, exchange, requests
from agent_bridge.client.address import Address
from agent_bridge.client.answers import Events, Page, Posted, Thread
from agent_bridge.client.requests import Registration

if TYPE_CHECKING:
    import httpx

TIMEOUT = 10.0
"""Seconds that a registry may take to answer."""
View = Literal["open", "expired", "all"]
"""Of an inbox: what awaits its recipient, what it left unanswered until the time was over, or everything."""
T = TypeVar("T")


class Registry:
    """The registry at `address`, asked in one identity. Connects with the first question; not thread-safe."""

    def __init__(
        self, address: Address, identity: str = GLOBAL_IDENTITY, *, timeout: float = TIMEOUT
    ) -> None:
        self.address = address
        self.identity = ids.checked_identity(identity)
        self._timeout = timeout
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def health(self) -> dict[str, Any]:
        """`GET /health`: status, counts and the registry's time."""
        return dict(answers.mapping(self._ask("GET", "/health").data))

    def agents(
        self,
        *,
        skill: str | None = None,
        project: str | None = None,
        healthy: bool | None = None,
        entry_type: Literal["agent", "client"] | None = None,
    ) -> list[dict[str, Any]]:
        """`GET /agents`: rows (RegistryEntry) that fit all conditions. `project`: part of path or name."""
        asked = {"skill": skill, "project": project, "healthy": _flag(healthy), "entryType": entry_type}
        rows = answers.listed(self._ask("GET", "/agents", asked).data)
        return [dict(answers.mapping(row)) for row in rows]

    def agent(self, agent_id: str) -> dict[str, Any]:
        """`GET /agents/:id`: one row. Raises UnknownError."""
        return dict(answers.mapping(self._ask("GET", exchange.path("agents", agent_id)).data))

    def register(self, registration: Registration) -> dict[str, Any]:
        """`POST /agents`: put a row into the list, in place of an older one; answers the row."""
        return dict(answers.mapping(self._ask("POST", "/agents", body=registration.as_wire()).data))

    def deregister(self, agent_id: str) -> bool:
        """`DELETE /agents/:id`: take a row out of the list. Whether it was there."""
        return self._flag("DELETE", exchange.path("agents", agent_id), "removed")

    def heartbeat(self, agent_id: str, *, status: Literal["alive", "shutting-down"] = "alive") -> int:
        """`POST /agents/:id/heartbeat`: the registry's time in ms. Raises UnknownError: register again."""
        body = {"agentId": agent_id, "status": status}
        answer = self._ask("POST", exchange.path("agents", agent_id, "heartbeat"), body=body)
        return answers.whole(answers.mapping(answer.data), "timestamp")

    def agent_message(self, agent_id: str, message: Mapping[str, Any]) -> bool:
        """`POST /agents/:id/message`: hand on an AgentMessage; whether a socket of the agent took it."""
        return self._flag("POST", exchange.path("agents", agent_id, "message"), "delivered", message)

    def task_event(self, event: Mapping[str, Any]) -> None:
        """`POST /events`: tell everybody of a task's new state."""
        self._ask("POST", "/events", body=event)

    def send(self, draft: Draft) -> Posted:
        """`POST /channel/messages`: store a message. With a `message_id` it may be sent again, safely."""
        return _posted(self._ask("POST", "/channel/messages", body=requests.draft(draft)).data)

    def ack(self, asked: Acknowledge) -> Ack:
        """`POST /channel/acks`: say how far a message has come. Raises UnknownError."""
        return answers.ack(self._ask("POST", "/channel/acks", body=requests.acknowledge(asked)).data)

    def message(self, message_id: str) -> Message:
        """`GET /channel/messages/:id`: one message, as it is now. Raises UnknownError."""
        return answers.message(self._ask("GET", exchange.path("channel", "messages", message_id)).data)

    def retry(self, conversation_id: str, message_id: str) -> Message:
        """`POST /channel/messages/:conversationId/:messageId/retry`: once more. Raises UnknownError."""
        where = exchange.path("channel", "messages", conversation_id, message_id, "retry")
        return answers.message(self._ask("POST", where).data)

    def inbox(
        self, agent_id: str, *, view: View = "open", limit: int | None = None, before: str | None = None
    ) -> Page[Message]:
        """`GET /channel/inbox`: what awaits an agent, oldest first."""
        asked = {"agentId": agent_id, "view": view, "limit": limit, "before": before}
        return _page(self._ask("GET", "/channel/inbox", asked), answers.message)

    def conversations(
        self,
        *,
        pending: bool = False,
        status: ConversationStatus | None = None,
        participant: str | None = None,
        agent_id: str | None = None,
        archived: bool | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> Page[Conversation]:
        """`GET /channel/conversations`: newest first. `agent_id` leaves out what it has suppressed."""
        asked = {
            "pending": _flag(pending or None),
            "status": None if status is None else status.value,
            "participant": participant,
            "agentId": agent_id,
            "archived": _flag(archived),
            "limit": limit,
            "before": before,
        }
        return _page(self._ask("GET", "/channel/conversations", asked), answers.conversation)

    def conversation(
        self,
        conversation_id: str,
        *,
        agent_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> Thread:
        """`GET /channel/conversations/:id`: its newest messages, oldest first. Raises UnknownError."""
        asked = {"agentId": agent_id, "limit": limit, "before": before}
        answer = self._ask("GET", exchange.path("channel", "conversations", conversation_id), asked)
        return answers.thread(answer.data, answer.headers.get("x-next-before"))

    def suppress(self, conversation_id: str, agent_id: str) -> bool:
        """`POST …/suppress`: hide it from one agent until a new message comes. Raises UnknownError."""
        where = exchange.path("channel", "conversations", conversation_id, "suppress")
        return self._flag("POST", where, "suppressed", params={"agentId": agent_id})

    def revive(self, conversation_id: str, agent_id: str) -> bool:
        """`DELETE …/suppress`: take that back. Whether it was hidden."""
        where = exchange.path("channel", "conversations", conversation_id, "suppress")
        return self._flag("DELETE", where, "revived", params={"agentId": agent_id})

    def events(self, since: int, *, epoch: str | None = None, limit: int | None = None) -> Events:
        """`GET /channel/events`: what was stored after a cursor. ChannelError `resync`: it doesn't fit."""
        asked = {"since": since, "epoch": epoch, "limit": limit}
        return answers.events(self._ask("GET", "/channel/events", asked).data)

    def notify(self, content: str, **fields: Any) -> tuple[str, str]:  # noqa: ANN401 - the route's own JSON
        """`POST /notify-claude` with its fields by their names there; conversation and message id."""
        answer = self._ask("POST", "/notify-claude", body={"content": content, **fields})
        data = answers.mapping(answer.data)
        return answers.text(data, "conversationId"), answers.text(data, "messageId")

    def dashboard_code(self) -> str:
        """`POST /dashboard/codes`: a code that opens the dashboard in a browser, once, within a minute."""
        return answers.text(answers.mapping(self._ask("POST", "/dashboard/codes").data), "code")

    def _flag(
        self,
        method: str,
        where: str,
        name: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, object] | None = None,
    ) -> bool:
        return answers.mapping(self._ask(method, where, params, body).data).get(name) is True

    def _ask(
        self,
        method: str,
        where: str,
        params: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> exchange.Answer:
        import httpx

        client = self._client or self._connect()
        query = {name: str(value) for name, value in (params or {}).items() if value is not None}
        try:
            with client.stream(
                method, where, params=query, json=None if body is None else dict(body)
            ) as told:
                body_bytes = exchange.Collected(time.monotonic() + self._timeout)
                for part in told.iter_raw():
                    body_bytes.add(part, time.monotonic())
                return exchange.settle(told.status_code, told.headers, body_bytes.all())
        except httpx.HTTPError as error:
            raise exchange.unanswered(error) from error

    def _connect(self) -> httpx.Client:
        import httpx

        # Neither proxies nor certificates from the environment: the registry is on this machine's loopback.
        self._client = httpx.Client(
            base_url=self.address.url,
            headers=exchange.headers(self.address, self.identity),
            timeout=self._timeout,
            trust_env=False,
            verify=exchange.no_tls(),
        )
        return self._client


def _posted(data: object) -> Posted:
    found = answers.mapping(data)
    return Posted(answers.message(found), found.get("deduplicated") is True)


def _page(answer: exchange.Answer, parse: Callable[[object], T]) -> Page[T]:
    items = tuple(parse(one) for one in answers.listed(answer.data))
    return Page(items, answer.headers.get("x-next-before"), answer.number("x-total-count"))


def _flag(value: bool | None) -> str | None:  # noqa: FBT001 - a query's three states
    return None if value is None else str(value).lower()
