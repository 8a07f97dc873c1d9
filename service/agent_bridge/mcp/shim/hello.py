"""The first line to the service, and its answer (`agent_bridge.mcp.hello` is the service's side of it)."""

from __future__ import annotations

import os

from agent_bridge.mcp.shim import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_bridge.mcp.shim.messages import Message

HELLO_VERSION = 1
ENVIRONMENT = (
    "AGENT_BRIDGE_PROJECT",
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCODE",
    "OPENCODE_PID",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)
_LONGEST_VALUE = 4096
"""Bytes; a longer one is no path and no id, and counts as not set."""


class RefusedError(Exception):
    """The service doesn't take this shim; the text is its reason."""


class Origin:
    """Where the shim was started: what a hello says that stays the same."""

    __slots__ = ("cwd", "environment", "identity", "nonce", "parent_pid", "pid", "project")

    def __init__(self, env: Mapping[str, str], project: str, identity: str) -> None:
        self.nonce = os.urandom(16).hex()
        self.pid = os.getpid()
        self.parent_pid = os.getppid() or self.pid  # 0: it is in another namespace
        self.cwd = _working_directory(env)
        # Relative to where the shim was started; the service is elsewhere.
        self.project = os.path.join(self.cwd, project) if project else ""  # noqa: PTH118
        self.identity = identity
        self.environment = {
            name: env[name]
            for name in ENVIRONMENT
            if name in env and len(os.fsencode(env[name])) <= _LONGEST_VALUE
        }

    def hello(self, client: tuple[str, str], agent_id: str, replayed: list[str]) -> bytes:
        """The hello as a line. `client`: name and version; `agent_id`: what a welcome gave, "" before."""
        hello: Message = {
            "version": HELLO_VERSION,
            "nonce": self.nonce,
            "pid": self.pid,
            "parentPid": self.parent_pid,
            "cwd": self.cwd,
            "project": self.project,
            "identity": self.identity,
            "client": {"name": client[0], "version": client[1]},
            "agentId": agent_id,
            "replayed": replayed,
            "environment": self.environment,
        }
        return messages.dumped({"hello": hello})


class Welcome:
    """What the service says of itself: the session's id in the registry, and its catalogue's digest."""

    __slots__ = ("agent_id", "digest")

    def __init__(self, agent_id: str, digest: str) -> None:
        self.agent_id = agent_id
        self.digest = digest


def answer_to_hello(line: bytes | None) -> Welcome:
    """What the service answered. Raises RefusedError, and ValueError where it is no answer."""
    try:
        message = messages.parse(line or b"")
    except messages.BadMessageError as error:
        raise ValueError(f"no answer to the hello: {error.text}") from None
    refused, welcome = message.get("refused"), message.get("welcome")
    if isinstance(refused, dict) and isinstance(refused.get("reason"), str):
        raise RefusedError(refused["reason"][:500])
    if not isinstance(welcome, dict) or welcome.get("version") != HELLO_VERSION:
        raise ValueError("no welcome of a version that this installation knows")
    agent_id, digest = welcome.get("agentId", ""), welcome.get("catalogue", "")
    if not isinstance(agent_id, str) or not isinstance(digest, str):
        raise ValueError("a welcome that isn't well-formed")
    return Welcome(agent_id, digest)


def _working_directory(env: Mapping[str, str]) -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # It was removed.
        given = env.get("PWD", "")
        return given if given.startswith("/") else "/"
