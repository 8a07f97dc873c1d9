"""JSON-RPC 2.0 messages as lines: what a line is, and the lines that the shim itself makes.

Stricter than `json`: no NaN, no Infinity, no nesting over `DEEPEST`, as the readers on the other side refuse
these, and what they can't read they can't answer.
"""

from __future__ import annotations

import json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
NO_SERVICE = -32000

DEEPEST = 100
_LONGEST_ID = 256
"""Characters that an id may have as JSON; the ids of what is asked again stand in a hello."""

Message = dict[str, object]


class BadMessageError(Exception):
    """A line that is no message. `code` is JSON-RPC's, `request_id` that of the line where it has one."""

    def __init__(self, code: int, text: str, request_id: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.request_id = request_id


def parse(line: bytes) -> Message:
    """The object that a line is. Raises BadMessageError."""
    try:
        # By hand, since json guesses UTF-16 and UTF-32.
        found = json.loads(line.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise BadMessageError(PARSE_ERROR, "Parse error: nested too deeply") from None
    except ValueError as error:
        # UnicodeDecodeError repeats the whole line; what else can't be read is described in few words.
        detail = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)[:200]
        raise BadMessageError(PARSE_ERROR, f"Parse error: {detail}") from None
    if not isinstance(found, dict):
        what = "batches aren't supported" if isinstance(found, list) else "a message is an object"
        raise BadMessageError(INVALID_REQUEST, f"Invalid request: {what}")
    return found


def check(message: Message, line: bytes) -> None:
    """Whether a message of a client has the shape of one. Raises BadMessageError."""
    has_id = "id" in message
    request_id = message.get("id")
    if has_id and not is_id(request_id):
        raise BadMessageError(
            INVALID_REQUEST,
            f"Invalid request: an id is an integer or a string of at most {_LONGEST_ID} characters",
        )
    if message.get("jsonrpc") != "2.0":
        raise BadMessageError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', request_id)
    if "method" not in message:
        if not has_id or ("result" in message) == ("error" in message):
            raise BadMessageError(
                INVALID_REQUEST,
                "Invalid request: neither a request nor a notification nor an answer",
                request_id,
            )
    elif not isinstance(message["method"], str):
        raise BadMessageError(INVALID_REQUEST, 'Invalid request: "method" must be a string', request_id)
    elif not isinstance(message.get("params", {}), dict | None):
        raise BadMessageError(INVALID_PARAMS, 'Invalid params: "params" must be an object', request_id)
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(message) > DEEPEST:
        raise BadMessageError(INVALID_REQUEST, f"Invalid request: nested over {DEEPEST} levels", request_id)


def is_id(value: object) -> bool:
    """Whether a value can be a request's id, in MCP: a string or an integer."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return len(key_of(value)) <= _LONGEST_ID


def is_error(value: object) -> bool:
    """Whether a value has the shape of JSON-RPC's error object."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("code"), int)
        and isinstance(value.get("message"), str)
    )


def key_of(request_id: object) -> str:
    """An id as JSON text: `1` and `"1"` are two."""
    return json.dumps(request_id)


def one_line(message: Message, line: bytes) -> bytes:
    r"""The line to pass on: as it came, unless a reader could stumble over it.

    A carriage return in it may end a line; half of a surrogate pair (`"\ud83d"`, which JavaScript writes for
    a cut emoji) is refused by strict readers, so it becomes U+FFFD. Raises BadMessageError for a number that
    can't be written again.
    """
    if b"\r" not in line and b"\\ud" not in line and b"\\uD" not in line:
        return line
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise BadMessageError(
            INVALID_REQUEST, "Invalid request: a number is too large", message.get("id")
        ) from None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def dumped(message: Message) -> bytes:
    """A message as a line, in ASCII."""
    return json.dumps(message, separators=(",", ":")).encode()


def result(request_id: object, value: Message) -> bytes:
    """The answer to a request."""
    return dumped({"jsonrpc": "2.0", "id": request_id, "result": value})


def error(request_id: object, code: int, text: str) -> bytes:
    """The answer to a request that can't be carried out, or (id None) to a line that is none."""
    return dumped({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})


def notification(method: str, params: Message | None = None) -> bytes:
    """A notification."""
    message: Message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return dumped(message)


def not_carried_out(request_id: object, method: str, text: str) -> bytes:
    """The answer to a request that no service took: a model reads it where a tool was called."""
    if method == "tools/call":
        return result(request_id, {"content": [{"type": "text", "text": text}], "isError": True})
    return error(request_id, NO_SERVICE, text)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")


def _depth(message: Message) -> int:
    depth, level = 0, [message]
    while level and depth <= DEEPEST:
        depth += 1
        below: list[object] = []
        for value in level:
            inner = value.values() if isinstance(value, dict) else value
            below += [one for one in inner if isinstance(one, dict | list)]
        level = below  # type: ignore[assignment]
    return depth
