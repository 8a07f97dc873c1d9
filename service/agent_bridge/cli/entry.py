"""The program's entry: answers fast what must be fast, and never shows a traceback to a user.

`--version`, `status`, the service and what Git and the harnesses start (the merge driver, hooks) are
dispatched before anything heavy is imported; everything else goes to the typer application.
"""

from __future__ import annotations

import sys

_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
_BROKEN_PIPE = 141  # 128 + SIGPIPE


def main() -> int:
    """Run the command in `sys.argv` and return its exit code."""
    words = sys.argv[1:]
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        from agent_bridge.cli.printing import silence

        silence()
        return _BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last line of defence; it is written down and told
        from agent_bridge.cli.crash import report

        return report(error, words)


def _dispatch(words: list[str]) -> int:
    if words[:2] == ["mcp", "start"]:
        from agent_bridge.mcp.shim.main import main as serve_tools

        return serve_tools(words[2:])
    if words in (["--version"], ["-V"]):
        from agent_bridge import __version__

        sys.stdout.write(f"agent-bridge {__version__}\n")
        sys.stdout.flush()
        return 0
    if words[:1] == ["merge-driver"]:
        from agent_bridge.projection.merge_driver import main as merge

        return merge(words[1:])
    if words[:2] == ["hook", "session-start"]:
        from agent_bridge.cli.hook import session_start

        return session_start(words[2:])
    if words[:4] == ["opencode", "context", "--json", "--project"] and len(words) == 5:
        from agent_bridge.cli.opencode_context import main as tell

        return tell(words[4])
    if words == ["service", "run"]:
        # Signals are caught before anything slow is imported.
        from agent_bridge.daemon.service import run as serve

        return serve()
    if words[:1] == ["status"] and set(words[1:]) <= {"--json"}:
        from agent_bridge.cli.printing import show
        from agent_bridge.cli.status import status

        result = status()
        show(result, as_json="--json" in words)
        return result.exit_code
    from agent_bridge.cli.app import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
