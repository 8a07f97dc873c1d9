"""The person at the shell, as one of those who talk on the channel."""

from __future__ import annotations

import os
import pwd
import socket
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import __version__, paths, projects
from agent_bridge.channel import ids
from agent_bridge.client.requests import Registration

CLIENT_NAME = "agent-bridge-cli"
"""What the shell is called in the list of sessions."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who types: `agent_id` is the same in every shell of one project (outside of all: of the home)."""

    agent_id: str
    name: str
    identity: str
    project_path: str

    def registration(self) -> Registration:
        """The row in the list of sessions, for as long as a command waits or looks on."""
        return Registration(
            agent_id=self.agent_id,
            name=self.name,
            project_path=self.project_path,
            project_name=Path(self.project_path).name,
            identity=self.identity,
            client_name=CLIENT_NAME,
            client_version=__version__,
        )


def person(identity: str) -> Person:
    """Who types this command, in the current directory's project."""
    root = _root()
    return Person(
        agent_id=ids.client_id(CLIENT_NAME, root, identity),
        name=f"{_user()}@{socket.gethostname()}",
        identity=identity,
        project_path=root,
    )


def _root() -> str:
    try:
        known = projects.find_project(Path.cwd())
    except FileNotFoundError:  # the directory is gone
        known = None
    return str(paths.home() if known is None else known.root)


def _user() -> str:
    """The user's name by the user database: a variable could say anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
