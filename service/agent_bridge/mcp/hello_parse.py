"""A shim's hello, from the line that it sent: every field checked and bounded, whatever sent it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.ids import checked_id, checked_identity
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.hello import ENVIRONMENT, HELLO_VERSION, Hello

HELLO_BYTES = 256 * 1024
"""Bytes that the line may have; most of it are the ids of what is sent again."""
_PATH = 4_096
_TEXT = 200
_REPLAYED = 1_000
_REQUEST_ID = 300
_LARGEST_PID = 2**31 - 1
_NONCE = re.compile("[0-9a-f]{32}")


class HelloError(AgentBridgeError):
    """What was sent is no hello, or one of another version; the shim is told so."""

    code = "hello"


def parse_hello(line: bytes) -> Hello:
    """The hello in a line of JSON. Raises HelloError for one that can't be used."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise HelloError("The hello isn't JSON") from None
    said = document.get("hello") if isinstance(document, dict) else None
    if not isinstance(said, dict):
        raise HelloError("The first line is no hello")
    version = said.get("version")
    if version != HELLO_VERSION or isinstance(version, bool):
        raise HelloError(
            f"The service understands hellos of version {HELLO_VERSION} only",
            remedy="Restart this client, and the service: agent-bridge service restart.",
        )
    client = said.get("client")
    if not isinstance(client, dict):
        raise HelloError("The hello names no client")
    return Hello(
        nonce=_nonce(said.get("nonce")),
        pid=_pid(said, "pid"),
        parent_pid=_pid(said, "parentPid"),
        cwd=_path(said, "cwd"),
        project=_path(said, "project"),
        identity=_identity(said.get("identity", "global")),
        client_name=shown(client.get("name", "")),
        client_version=shown(client.get("version", "")),
        agent_id=_agent_id(said.get("agentId", "")),
        replayed=_replayed(said.get("replayed", [])),
        environment=_environment(said.get("environment", {})),
    )


def shown(text: object) -> str:
    """A name that a program gives itself: on one line, at most 200 characters; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    return "".join(letter if letter.isprintable() else "-" for letter in text[:_TEXT]).strip()


def is_path(text: str) -> bool:
    """Whether it is an absolute path of a length that paths have."""
    return text.startswith("/") and "\0" not in text and len(text.encode("utf-8", "surrogatepass")) <= _PATH


def _nonce(text: object) -> str:
    if isinstance(text, str) and _NONCE.fullmatch(text):
        return text
    raise HelloError("The hello's nonce can't be used", detail="it is 32 hexadecimal digits")


def _pid(said: Mapping[str, Any], key: str) -> int:
    number = said.get(key)
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _LARGEST_PID:
        return number
    raise HelloError(f"The hello's {key} can't be used")


def _path(said: Mapping[str, Any], key: str) -> str:
    text = said.get(key, "")
    if isinstance(text, str) and (not text or is_path(text)):
        return text
    raise HelloError(f"The hello's {key} can't be used", detail=f"an absolute path of at most {_PATH} bytes")


def _identity(text: object) -> str:
    try:
        return checked_identity(text)
    except InvalidError as error:
        remedy = "It comes from AGENT_BRIDGE_IDENTITY or --identity, given to agent-bridge-mcp."
        raise HelloError(error.title, detail=error.detail, remedy=remedy) from None


def _agent_id(text: object) -> str:
    if text == "":
        return ""
    try:
        return checked_id(text, "agentId")
    except InvalidError as error:
        raise HelloError(error.title, detail=error.detail) from None


def _replayed(ids: object) -> frozenset[str]:
    if (
        isinstance(ids, list)
        and len(ids) <= _REPLAYED
        and all(isinstance(one, str) and len(one) <= _REQUEST_ID for one in ids)
    ):
        return frozenset(ids)
    raise HelloError("The hello's replayed ids can't be used")


def _environment(variables: object) -> dict[str, str]:
    """Those we know; one that can't be used counts as not set, since other programs set them."""
    if not isinstance(variables, dict):
        raise HelloError("The hello's environment can't be used")
    return {
        name: text
        for name in ENVIRONMENT
        if isinstance(text := variables.get(name), str) and 0 < len(text) <= _PATH and "\0" not in text
    }
