"""`agent-bridge-mcp`: the MCP server that agent programs start, a pipe to the service.

    agent-bridge-mcp [--project DIR] [--identity NAME] [--no-auto]

`--project` (AGENT_BRIDGE_PROJECT): where the project is found from, else the client tells. `--identity`
(AGENT_BRIDGE_IDENTITY): the partition of the channel. `--no-auto` (AGENT_BRIDGE_NO_AUTO=1): never start the
service. It loads little on purpose: a client waits for it at each start (Codex 0.171.0 for 0.8 s).
"""

from __future__ import annotations

import os
import sys

from agent_bridge.mcp.shim.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_bridge.mcp.shim.link import Link

_USAGE = "agent-bridge-mcp [--project DIR] [--identity NAME] [--no-auto]"
_WRONG_USAGE = 2
_INTERRUPTED = 130


class UsageError(Exception):
    """The options are wrong; the text says which."""


def main(argv: list[str] | None = None) -> int:
    """Be the stdio server until the client closes standard input or is gone; the exit code."""
    try:
        project, identity, starts_service = options(sys.argv[1:] if argv is None else argv, os.environ)
        return _serve(project, identity, starts_service=starts_service)
    except UsageError as error:
        note(f"{error} Usage: {_USAGE}")
        return _WRONG_USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence; never a traceback at a user
        note(f"it failed: {type(error).__name__}: {error}")
        return 1


def options(words: list[str], env: os._Environ[str] | dict[str, str]) -> tuple[str, str, bool]:
    """Project, identity and whether to start the service, from options and environment. Raises UsageError."""
    project = ""
    identity = env.get("AGENT_BRIDGE_IDENTITY", "") or "global"
    starts_service = env.get("AGENT_BRIDGE_NO_AUTO", "") in ("", "0", "false", "no")
    left = list(words)
    while left:
        name, has_value, value = left.pop(0).partition("=")
        if name == "--no-auto" and not has_value:
            starts_service = False
        elif name in ("--project", "--identity"):
            if not has_value:
                if not left:
                    raise UsageError(f"{name} needs a value.")
                value = left.pop(0)
            if name == "--project":
                project = value
            else:
                identity = value
        else:
            raise UsageError(f"{name} isn't an option.")
    return project, identity, starts_service


def _serve(project: str, identity: str, *, starts_service: bool) -> int:
    from agent_bridge.mcp.shim.streams import claim

    streams = claim()
    if streams is None:
        note("standard output is closed, so nothing could be answered.")
        return 1
    from agent_bridge.mcp.shim.catalogue import load_own
    from agent_bridge.mcp.shim.loop import Loop
    from agent_bridge.mcp.shim.relay import PATIENCE_S, UNSTARTED_PATIENCE_S, Relay

    found = load_own(os.environ)
    relay = Relay(found, PATIENCE_S if starts_service else UNSTARTED_PATIENCE_S)

    def make_link() -> Link:
        from agent_bridge.mcp.shim.hello import Origin
        from agent_bridge.mcp.shim.link import Link

        origin = Origin(os.environ, project, identity)
        return Link(relay, origin, os.environ, starts_service=starts_service, digest=found.digest)

    loop = Loop(streams, relay, make_link)
    try:
        loop.run()
    finally:
        loop.close()
        streams.restore()
    return 0


if __name__ == "__main__":
    sys.exit(main())
