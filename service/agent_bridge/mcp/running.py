"""Running a tool for a client: its arguments are checked, and whatever it raises becomes an answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.schema import input_schema
from agent_bridge.mcp.tool import ANSWER_BYTES, Answer, Tool
from agent_bridge.memory.visible import one_line

_log = get_logger("mcp")
_CUT = "\n[The answer is cut here.]"
_PROBLEMS = 5
_SHOWN = 200
FAILED = "This failed inside agent-bridge. The service's log (`agent-bridge logs`) says more."


class Counts:
    """How many calls there were, and how many of them failed by a fault of ours. From any thread."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.last_error: str | None = None
        self._lock = threading.Lock()

    def called(self) -> None:
        """One call more."""
        with self._lock:
            self.calls += 1

    def failed(self, sentence: str) -> None:
        """A fault of ours, as the status tells it."""
        with self._lock:
            self.errors += 1
            self.last_error = sentence


async def run_tool(tool: Tool, call: Call, arguments: Mapping[str, Any] | None, counts: Counts) -> Answer:
    """What the tool answers. Nothing is raised but a cancellation."""
    counts.called()
    try:
        parsed = tool.parameters.model_validate(dict(arguments or {}))
    except ValidationError as error:
        return Answer(_told(tool, error), is_error=True)
    try:
        return _bounded(tool, await tool.run(call, parsed))
    except AgentBridgeError as error:
        return Answer(_cut(error.sentence()), is_error=True)
    except OSError as error:
        sentence = _refused_by_the_system(error)
        counts.failed(f"The tool {tool.name} failed. {sentence}")
        _log.error("a tool failed", tool=tool.name, exc_info=error)
        return Answer(_cut(sentence), is_error=True)
    except Exception as error:  # noqa: BLE001 - told to the client, the log and the status
        counts.failed(f"The tool {tool.name} failed: {type(error).__name__}.")
        _log.error("a tool failed", tool=tool.name, exc_info=error)
        return Answer(FAILED, is_error=True)


def _refused_by_the_system(error: OSError) -> str:
    """A full disk, missing rights: what a user can mend, told as it is."""
    if not error.strerror:
        return FAILED
    where = "" if error.filename is None else f": {one_line(str(error.filename))[:_SHOWN]}"
    return f"The system refused it: {error.strerror}{where}. `agent-bridge logs` says more."


def _bounded(tool: Tool, answer: Answer) -> Answer:
    """The tools bound their answers themselves; nothing that is much too large gets past this."""
    data = json.dumps(answer.data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) > 3 * ANSWER_BYTES:
        _log.error("a tool's answer is too large", tool=tool.name, bytes=len(data))
        return Answer(
            f"The answer of {tool.name} is too large: {len(data):,} bytes. Ask for less.", is_error=True
        )
    return Answer(_cut(answer.text), answer.data, answer.is_error)


def _cut(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= ANSWER_BYTES:
        return encoded.decode()
    return encoded[: ANSWER_BYTES - len(_CUT)].decode("utf-8", "ignore") + _CUT


def _told(tool: Tool, error: ValidationError) -> str:
    """What is wrong with the arguments, so that a model can mend it; values are not repeated."""
    problems = [_problem(item) for item in error.errors(include_url=False, include_input=False)]
    shown = "; ".join(problems[:_PROBLEMS])
    more = f"; and {len(problems) - _PROBLEMS} more" if len(problems) > _PROBLEMS else ""
    names = ", ".join(input_schema(tool.parameters)["properties"])
    known = f"It has these: {names}." if names else "It has none."
    return f"The parameters of {tool.name} can't be used: {shown}{more}. {known}"


def _problem(item: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"])[:_SHOWN]
    if item["type"] == "extra_forbidden":
        return f"{where} isn't known"
    if item["type"] == "missing":
        return f"{where} is missing"
    message = str(item["msg"]).removeprefix("Value error, ")[:_SHOWN]
    return f"{where}: {message}" if where else message
