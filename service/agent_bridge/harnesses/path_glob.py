"""Globs over whole paths, matched without backtracking: a repository may carry the patterns. Pure."""

from __future__ import annotations

from enum import Enum


class _Step(Enum):
    """What a pattern is made of, next to plain characters."""

    ONE = "?"
    SEGMENT = "*"
    DEEP = "**"
    OPTIONAL_DEEP = "**/"
    """Stands before DEEP and `/`, and may skip both."""


def matches(pattern: str, path: str) -> bool:
    """Whether `pattern` describes the whole `path`. `**` crosses directories, `*` and `?` don't."""
    steps = _steps(pattern)
    states = _reach(steps, {0})
    for character in path:
        following: set[int] = set()
        for at in states:
            step = steps[at] if at < len(steps) else None
            if step is _Step.DEEP or (step is _Step.SEGMENT and character != "/"):
                following.add(at)
            elif step == character or (step is _Step.ONE and character != "/"):
                following.add(at + 1)
        states = _reach(steps, following)
        if not states:
            return False
    return len(steps) in states


def _steps(pattern: str) -> list[_Step | str]:
    steps: list[_Step | str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            steps += [_Step.OPTIONAL_DEEP, _Step.DEEP, "/"]
            at += 3
        elif pattern.startswith("**", at):
            steps.append(_Step.DEEP)
            at += 2
        else:
            steps.append({"*": _Step.SEGMENT, "?": _Step.ONE}.get(pattern[at], pattern[at]))
            at += 1
    return steps


def _reach(steps: list[_Step | str], states: set[int]) -> set[int]:
    """The states, and those that are reached from them without a character."""
    reached: set[int] = set()
    todo = list(states)
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        step = steps[at] if at < len(steps) else None
        if step is _Step.OPTIONAL_DEEP:
            todo += [at + 1, at + 3]
        elif step is _Step.DEEP or step is _Step.SEGMENT:
            todo.append(at + 1)
    return reached
