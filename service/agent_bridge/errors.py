"""Errors a person can act on: what happened, to which file, what to do.

Every error that may reach a user derives from `AgentBridgeError`; the command line prints it without a
traceback and exits with its `exit_code` (design: 0 done, 1 failed or degraded, 2 wrong usage, 3 not
running, 4 left undone for a person).
"""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_RUNNING = 3
EXIT_LEFT_UNDONE = 4


class AgentBridgeError(Exception):
    """Something failed; carries a title, a detail, the file it concerns and a remedy."""

    exit_code: ClassVar[int] = EXIT_FAILED
    code: ClassVar[str] = "failed"

    def __init__(self, title: str, *, detail: str = "", path: object = None, remedy: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.path = None if path is None else str(path)
        self.remedy = remedy

    def __str__(self) -> str:
        parts = [self.title]
        if self.path and self.path not in self.title:
            parts[0] += f": {self.path}"
        if self.detail:
            parts.append(self.detail)
        if self.remedy:
            parts.append(self.remedy)
        return "\n".join(parts)

    def sentence(self) -> str:
        """The same on one line, for lists of many: `title: path (detail). Remedy.`"""
        title = self.title.removesuffix(".")
        place = f": {self.path}" if self.path and self.path not in title else ""
        detail = f" ({' '.join(self.detail.split())})" if self.detail else ""
        return f"{title}{place}{detail}. {self.remedy}".rstrip()

    def as_dict(self) -> dict[str, str]:
        """The error as the `errors` items of the JSON envelope: code, title, and what else is known."""
        known = {"detail": self.detail, "path": self.path or "", "remedy": self.remedy}
        return {"code": self.code, "title": self.title, **{key: text for key, text in known.items() if text}}


class UsageError(AgentBridgeError):
    """The command's words don't fit together."""

    exit_code = EXIT_USAGE
    code = "usage"


class ConfigError(UsageError):
    """A setting has a value that can't be used; names key, value, file and line."""

    code = "config"


class NotFoundError(AgentBridgeError):
    """No such fact, project or file."""

    code = "not_found"


class DuplicateError(AgentBridgeError):
    """The same text is in the store already; `fact_id` names it."""

    code = "duplicate"

    def __init__(self, fact_id: str) -> None:
        super().__init__(f"This is already remembered as {fact_id}.", remedy="Edit that fact instead.")
        self.fact_id = fact_id


class RefusedError(AgentBridgeError):
    """Left undone for a person: going on could lose or garble somebody's text."""

    exit_code = EXIT_LEFT_UNDONE
    code = "refused"


class ConflictError(RefusedError):
    """The file changed between reading and replacing it; nothing was written."""

    code = "conflict"


class MarkerError(RefusedError):
    """Our markers in a file are dangling, nested or doubled; `line` is counted from 1."""

    code = "markers"

    def __init__(self, title: str, *, line: int, path: object = None) -> None:
        super().__init__(
            title,
            path=path,
            detail=f"line {line}",
            remedy="Repair or remove the markers by hand, then run `agent-bridge sync`.",
        )
        self.line = line


class LockTimeoutError(AgentBridgeError):
    """Somebody else holds a lock for too long."""

    code = "locked"


class NotRunningError(AgentBridgeError):
    """The service doesn't run, or doesn't answer."""

    exit_code = EXIT_NOT_RUNNING
    code = "not_running"
