"""What our plugin asks for when a session of OpenCode starts: the memory that its files don't bring.

A session waits for the answer, so `entry` calls `main` without the parser of the command line.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_bridge import __version__, git, paths, projects
from agent_bridge.cli.printing import show
from agent_bridge.cli.result import Json, Result, failure
from agent_bridge.errors import AgentBridgeError, UsageError
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.harnesses.opencode import OpenCode
from agent_bridge.memory.store import Store
from agent_bridge.projection.session_text import Part, tell_missing
from agent_bridge.projects import Project

_COMMAND = "opencode context"
_HINT = "The tool `memory_search`, or `agent-bridge search WORDS`, finds them."


def main(directory: str) -> int:
    """Print the envelope for a session in `directory` and return the exit code."""
    try:
        if not Path(directory).is_dir():
            raise UsageError("There is no such directory", path=directory)
        result = told(Path(directory))
    except AgentBridgeError as error:
        result = failure(_COMMAND, error)
    show(result, as_json=True)
    return int(result.exit_code)


def told(start: Path) -> Result:
    """What a session in a directory isn't told by its instruction files; nothing where no project is set up.

    The data are `version`, `project` (its root), `text`, `facts` (ids in it) and `left_out`.
    """
    start = Path(os.path.realpath(start))
    listed = projects.find_project(start)
    data: dict[str, Json] = {"version": __version__, "project": None, "text": "", "facts": [], "left_out": []}
    if listed is None:
        return Result(_COMMAND, data=data)
    harness = OpenCode()
    # The session's own environment decides which files it reads, not what `init` saw.
    site = observe_site(listed, checkout_of(start, listed), harnesses=(harness,), env=dict(os.environ))
    shown = [read.text for read in harness.reads(site, start) if not read.hidden]
    own = Store(listed.store, state=listed.state).scan()
    user = Store(paths.global_store(), scope="global", state=paths.user_state()).scan()
    scopes: tuple[Part, ...] = (
        ("project", own.documents, own.readable),
        ("global", user.documents, user.readable),
    )
    missing = tell_missing(shown, scopes, hint=_HINT)
    data |= {
        "project": str(listed.root),
        "text": missing.text,
        "facts": list(missing.facts),
        "left_out": list(missing.left_out),
    }
    return Result(_COMMAND, data=data, view=(missing.text,) if missing.text else ())


def checkout_of(start: Path, project: Project) -> Path:
    """The checkout that a directory lies in, a worktree perhaps; the project's root outside of Git."""
    found = git.find_checkout(Path(os.path.realpath(start)))
    return project.root if found is None else Path(os.path.realpath(found.root))
