"""The harnesses that get a project's memory by a hook when a session starts, and what that takes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_bridge.harnesses import hook_command
from agent_bridge.harnesses.base import Harness, HookRoom, KeyEdit, Site
from agent_bridge.projects import Project


@dataclass(frozen=True, slots=True)
class Hooked:
    """One harness: its name and title, how much its hook may tell, and the settings that install the hook."""

    name: str
    title: str
    room: HookRoom
    edits: tuple[KeyEdit, ...]


def hooked(project: Project, harnesses: Iterable[Harness], site: Site) -> tuple[Hooked, ...]:
    """Those of the given harnesses that get the memory by a hook; `site` is the main checkout's.

    () unless the project has asked for hooks, and where it isn't known which program to name.
    """
    if project.delivery != "hooks" or not sys.executable:
        return ()
    found = []
    for harness in harnesses:
        if harness.hook_room is None:
            continue
        edits = harness.hook_edits(site, hook_command.session_start(sys.executable, harness.name))
        if edits:
            found.append(Hooked(harness.name, harness.title, harness.hook_room, edits))
    return tuple(found)


def own_edits(project: Project, all_hooked: Iterable[Hooked]) -> tuple[KeyEdit, ...]:
    """Their edits of files in the project."""
    return tuple(edit for edit in _edits(all_hooked) if edit.path.is_relative_to(project.root))


def user_edits(project: Project, all_hooked: Iterable[Hooked]) -> tuple[KeyEdit, ...]:
    """Their edits of files that serve the user's other projects too."""
    return tuple(
        edit for one in all_hooked for edit in one.edits if not edit.path.is_relative_to(project.root)
    )


def _edits(all_hooked: Iterable[Hooked]) -> Iterator[KeyEdit]:
    return (edit for one in all_hooked for edit in one.edits)
