"""Who gets which line: the conversation between a client and the services that come and go behind it.

No descriptors and no clock here: lines come in, the answers stand in the two outboxes.
"""

from __future__ import annotations

from agent_bridge.mcp.shim import messages
from agent_bridge.mcp.shim.lines import LONGEST_LINE, Outbox
from agent_bridge.mcp.shim.messages import BadMessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_bridge.mcp.shim.catalogue import Catalogue
    from agent_bridge.mcp.shim.messages import Message

PATIENCE_S = 30.0
"""How long a call waits for a service that is started for it."""
UNSTARTED_PATIENCE_S = 5.0
"""How long a call waits where the shim may start none: a service that restarts is back by then."""
PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of MCP with the classic handshake; the last is answered to a client that asks for another."""
MOST_REQUESTS = 500
"""Requests of a client that may be unanswered at a time."""
MOST_BYTES = 2 * LONGEST_LINE
"""Bytes that these may have together: each is kept until it is answered, as it may have to be sent again."""
MOST_SENDINGS = 5
"""Services to which a request is sent: one that ends each of them isn't tried for ever."""
_INITIALIZE_ID = "agent-bridge-mcp:initialize"
_RENAMED = "notifications/agent-bridge/renamed"
"""For the shim alone: the session goes by another id now (its client's roots are in another project)."""
_LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Answered without a service, whatever was promised: a client that asks for all of them while it looks at a
server may drop the server for one that fails (Gemini CLI 0.61.0: resources/list).
"""


class _Request:
    """A request without an answer. `deadline`: until when it waits for a service, None while it has one."""

    __slots__ = ("deadline", "line", "method", "request_id", "sendings")

    def __init__(self, request_id: object, method: str, line: bytes, deadline: float) -> None:
        self.request_id = request_id
        self.method = method
        self.line = line
        self.deadline: float | None = deadline
        self.sendings = 0


class Relay:
    """One client's conversation. `now` is in seconds of any clock that doesn't go back.

    `to_client` and `to_service` hold what is to be written. `client` is the name and the version that the
    client gave, None before its `initialize`. `agent_id`: what a service calls the session in place of what
    its welcome said, "" before. `asked_for_tools`: `tools/list` was answered.
    """

    __slots__ = (
        "_asked",
        "_bytes",
        "_catalogue",
        "_has_initialized",
        "_initialize",
        "_is_open",
        "_is_opening",
        "_last_asked",
        "_patience",
        "_requests",
        "_tools_changed",
        "agent_id",
        "asked_for_tools",
        "client",
        "to_client",
        "to_service",
    )

    def __init__(self, catalogue: Catalogue, patience: float) -> None:
        self.to_client = Outbox()
        self.to_service = Outbox()
        self.client: tuple[str, str] | None = None
        self.asked_for_tools = False
        self._catalogue = catalogue
        self._patience = patience
        self._initialize = b""
        self._has_initialized = False
        self._tools_changed = False
        self._requests: dict[str, _Request] = {}
        self._bytes = 0
        self._is_opening = False
        self._is_open = False
        self._asked: dict[int, object] = {}
        self._last_asked = 0
        self.agent_id = ""

    @property
    def is_waiting(self) -> bool:
        """Whether a request is unanswered."""
        return bool(self._requests)

    @property
    def is_open(self) -> bool:
        """Whether a service has answered `initialize` and takes requests."""
        return self._is_open

    def replayed(self) -> list[str]:
        """The ids, as JSON text, of the requests that the next service gets though one before it got them."""
        return [key for key, request in self._requests.items() if request.sendings]

    def next_deadline(self) -> float | None:
        """When the first request will have waited long enough for a service."""
        return min((r.deadline for r in self._requests.values() if r.deadline is not None), default=None)

    # The client's side.

    def from_client(self, line: bytes | None, now: float) -> None:
        """Take a line of the client; None is one that was too long."""
        if line is None:
            text = f"Invalid request: a line may have {LONGEST_LINE} bytes at most"
            self.to_client.put(messages.error(None, messages.INVALID_REQUEST, text))
            return
        if not line.strip():
            return
        try:
            message = messages.parse(line)
            messages.check(message, line)
            line = messages.one_line(message, line)
            self._take(message, line, now)
        except BadMessageError as error:
            self.to_client.put(messages.error(error.request_id, error.code, error.text))

    def _take(self, message: Message, line: bytes, now: float) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            self._take_answer(message)
        elif "id" not in message:
            self._take_notification(method, message, line)
        elif (answer := self._own_answer(method, message)) is not None:
            self.to_client.put(messages.result(message["id"], answer))
        else:
            self._take_request(method, message, line, now)

    def _own_answer(self, method: str, message: Message) -> Message | None:
        """The shim's own answer to a request; None where the service is to answer."""
        request_id = message["id"]
        if method == "ping":
            return {}
        if method == "server/discover":
            # Whoever declines it gets the classic handshake (Claude Code 2.1.332).
            raise BadMessageError(messages.METHOD_NOT_FOUND, "Method not found: server/discover", request_id)
        if method == "initialize":
            return self._initialized(message)
        if self.client is None:
            raise BadMessageError(messages.INVALID_REQUEST, f"{method} came before initialize", request_id)
        kind = _LISTS.get(method)
        if kind is None:
            return None
        params = message.get("params")
        if isinstance(params, dict) and params.get("cursor") is not None:
            raise BadMessageError(messages.INVALID_PARAMS, "Unknown cursor: there is one page", request_id)
        if kind == "tools":
            self.asked_for_tools = True
            return {kind: self._catalogue.tools}
        return {kind: self._catalogue.resources if kind == "resources" else []}

    def _initialized(self, message: Message) -> Message:
        request_id = message["id"]
        if self.client is not None:
            raise BadMessageError(messages.INVALID_REQUEST, "initialize was sent already", request_id)
        params = message.get("params")
        if not isinstance(params, dict):
            raise BadMessageError(messages.INVALID_PARAMS, "initialize needs params", request_id)
        version, info = params.get("protocolVersion"), params.get("clientInfo")
        if not (isinstance(version, str) and isinstance(params.get("capabilities"), dict)):
            text = "initialize needs protocolVersion (a string) and capabilities (an object)"
            raise BadMessageError(messages.INVALID_PARAMS, text, request_id)
        name, client_version = (
            (info.get("name"), info.get("version")) if isinstance(info, dict) else (None, None)
        )
        if not (isinstance(name, str) and isinstance(client_version, str)):
            text = "initialize needs clientInfo with name and version (strings)"
            raise BadMessageError(messages.INVALID_PARAMS, text, request_id)
        agreed = version if version in PROTOCOLS else PROTOCOLS[-1]
        # The service is to agree on the same version, under an id that no request of the client has.
        replay = {**message, "id": _INITIALIZE_ID, "params": {**params, "protocolVersion": agreed}}
        self._initialize = messages.one_line(replay, messages.dumped(replay))
        self.client = (name, client_version)
        answer: Message = {
            "protocolVersion": agreed,
            "capabilities": self._catalogue.capabilities,
            "serverInfo": self._catalogue.server_info,
        }
        if self._catalogue.instructions:
            answer["instructions"] = self._catalogue.instructions
        return answer

    def _take_request(self, method: str, message: Message, line: bytes, now: float) -> None:
        request_id = message["id"]
        key = messages.key_of(request_id)
        if key in self._requests or request_id == _INITIALIZE_ID:
            # Under that id the answer would be taken for that of the first.
            raise BadMessageError(messages.INVALID_REQUEST, f"Invalid request: the id {key} is in use")
        if len(self._requests) >= MOST_REQUESTS or self._bytes + len(line) > MOST_BYTES:
            text = "Too much is unanswered; wait for answers before you send more."
            self.to_client.put(messages.not_carried_out(request_id, method, text))
            return
        request = _Request(request_id, method, line, now + self._patience)
        self._requests[key] = request
        self._bytes += len(line)
        if self._is_open:
            self._send(request)

    def _take_notification(self, method: str, message: Message, line: bytes) -> None:
        if self.client is None:
            return
        if method == "notifications/initialized":
            if self._has_initialized:
                return
            self._has_initialized = True
            self._tell_of_tools()
        elif method == "notifications/cancelled":
            params = message.get("params")
            request_id = params.get("requestId") if isinstance(params, dict) else None
            if not messages.is_id(request_id) or self._forget(messages.key_of(request_id)) is None:
                return
        if self._is_open:
            self.to_service.put(line)

    def _take_answer(self, message: Message) -> None:
        ours = message["id"]
        if not isinstance(ours, int) or ours not in self._asked:
            return  # For a service that is gone, or nobody.
        theirs = self._asked.pop(ours)
        if isinstance(message.get("result"), dict) or messages.is_error(message.get("error")):
            self.to_service.put(messages.dumped({**message, "id": theirs}))
        else:
            text = "The client's answer is none."
            self.to_service.put(messages.error(theirs, messages.INVALID_REQUEST, text))

    # The service's side.

    def open(self) -> None:
        """A service has said welcome: begin with it."""
        self._is_opening = True
        self.to_service.put(self._initialize)

    def from_service(self, line: bytes | None) -> None:
        """Take a line of the service. Raises ValueError for what is no message, or refuses `initialize`."""
        if line is None:
            raise ValueError(f"a line of over {LONGEST_LINE} bytes")
        try:
            message = messages.parse(line)
            line = messages.one_line(message, line)
        except BadMessageError as error:
            raise ValueError(f"a line that is no message: {error.text}") from None
        method = message.get("method")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str | None):
            raise ValueError("a line that is no JSON-RPC message")
        if method is None:
            self._pass_answer(message, line)
        elif "id" in message:
            self._ask(message)
        else:
            self._pass_notification(method, message, line)

    def close(self, now: float, patience: float | None = None) -> None:
        """The service is gone: what it has not answered waits for the next one."""
        self._is_open = self._is_opening = False
        self.to_service.clear()
        for asked in self._asked:
            params: Message = {"requestId": asked, "reason": "The service that asked has ended."}
            self.to_client.put(messages.notification("notifications/cancelled", params))
        self._asked.clear()
        for key, request in list(self._requests.items()):
            if request.sendings >= MOST_SENDINGS:
                text = f"agent-bridge's service ended {request.sendings} times before it had answered this."
                self._give_up(key, request, text)
            elif request.deadline is None:
                request.deadline = now + (self._patience if patience is None else patience)

    def give_up(self, now: float | None, reason: str) -> None:
        """Answer what has waited long enough for a service by `now`, or (None) all that waits for one."""
        for key, request in list(self._requests.items()):
            if request.deadline is not None and (now is None or request.deadline <= now):
                self._give_up(key, request, reason)

    def serve(self, catalogue: Catalogue) -> None:
        """Answer from another catalogue from now on, and tell the client if its tools are others."""
        if self.asked_for_tools and catalogue.tools != self._catalogue.tools:
            self._tools_changed = True
        self._catalogue = catalogue
        self._tell_of_tools()

    def _tell_of_tools(self) -> None:
        if self._tools_changed and self._has_initialized:
            self._tools_changed = False
            self.to_client.put(messages.notification("notifications/tools/list_changed"))

    def _pass_answer(self, message: Message, line: bytes) -> None:
        if not messages.is_id(message.get("id")):
            return  # A complaint about a line of ours that it couldn't read; there is nobody to tell.
        if self._is_opening and message["id"] == _INITIALIZE_ID:
            self._opened(message)
        elif self._forget(messages.key_of(message["id"])) is not None:
            self.to_client.put(line)

    def _opened(self, message: Message) -> None:
        if "result" not in message:
            raise ValueError(f"an answer to initialize that is none: {str(message.get('error'))[:300]}")
        self._is_opening = False
        self._is_open = True
        if self._has_initialized:
            self.to_service.put(messages.notification("notifications/initialized"))
        for request in self._requests.values():
            self._send(request)

    def _ask(self, message: Message) -> None:
        """Pass a request on under a number of ours: those of the next service begin anew."""
        if len(self._asked) >= MOST_REQUESTS:
            raise ValueError("too many requests")
        self._last_asked += 1
        self._asked[self._last_asked] = message["id"]
        self.to_client.put(messages.dumped({**message, "id": self._last_asked}))

    def _pass_notification(self, method: str, message: Message, line: bytes) -> None:
        params = message.get("params")
        if method == _RENAMED:
            agent_id = params.get("agentId") if isinstance(params, dict) else None
            self.agent_id = agent_id if isinstance(agent_id, str) else ""
            return
        if method != "notifications/cancelled":
            self.to_client.put(line)
            return
        theirs = params.get("requestId") if isinstance(params, dict) else None
        for ours, asked in self._asked.items():
            if asked == theirs and isinstance(params, dict):
                del self._asked[ours]
                self.to_client.put(messages.dumped({**message, "params": {**params, "requestId": ours}}))
                return

    def _send(self, request: _Request) -> None:
        request.sendings += 1
        request.deadline = None
        self.to_service.put(request.line)

    def _forget(self, key: str) -> _Request | None:
        request = self._requests.pop(key, None)
        if request is not None:
            self._bytes -= len(request.line)
        return request

    def _give_up(self, key: str, request: _Request, text: str) -> None:
        self._forget(key)
        if request.sendings:
            text += " It isn't known whether the call was carried out."
        self.to_client.put(messages.not_carried_out(request.request_id, request.method, text))
