"""Repairing what a killed process left behind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.files import inplace, kernel
from agent_bridge.files.beside import (
    DELETED,
    LONGEST_NAME_KEPT,
    Marks,
    is_temporary,
    keep,
    mark,
    marks_of,
    stem,
)
from agent_bridge.files.image import read_image, there
from agent_bridge.files.replacing import put_back


def recover(keep_dir: Path, directories: Iterable[Path]) -> list[str]:
    """Repair what a killed process left behind; a plain sentence for each one that touched a user's file.

    Undoes half-done in-place writes by the journals in `keep_dir`, then clears our temporary files out of
    `directories` (flat). One that holds a save of the user's, caught inside an exchange, is put back; where
    the file has changed since, the save is kept in `keep_dir` and named. Call it under the lock that guards
    the writes of those files: it takes every temporary file for an orphan.
    """
    done = inplace.recover(keep_dir)
    for directory in dict.fromkeys(directories):
        try:
            names = sorted(name for name in os.listdir(directory) if is_temporary(name))  # noqa: PTH208
        except OSError:
            continue  # gone, or not ours to read: then we left nothing there
        for name in names:
            try:
                done += _recover_one(directory / name, keep_dir)
            except (OSError, AgentBridgeError) as error:
                done.append(f"{directory / name}: left by an interrupted write, can't be cleared: {error}")
    return done


def _recover_one(aside: Path, keep_dir: Path) -> list[str]:
    if aside.is_symlink():
        return []  # we never make one
    image = read_image(aside)
    if not image.existed:
        return []
    data, marks = image.data, marks_of(aside.name)
    if marks is None or mark(data) == marks.after:
        aside.unlink()  # our own bytes, whole or not, that never got their name
        return []
    target = _target(aside.parent, marks.stem)
    if target is None:
        return _fill_gap(aside, marks, data, keep_dir)
    if mark(data) == marks.before:
        aside.unlink()  # what was to be replaced, and was
        return []
    if mark(read_image(target).data) == marks.after and kernel.exchange(aside, target):
        if mark(read_image(aside).data) == marks.after:
            aside.unlink()
            return [f"{target}: a save that an interrupted write had caught is back in its place."]
        kernel.exchange(aside, target)
    return [_kept(aside, target, keep_dir)]


def _fill_gap(aside: Path, marks: Marks, data: bytes, keep_dir: Path) -> list[str]:
    """The target is gone: an interrupted deletion is undone; after a replacement somebody removed it."""
    target = aside.with_name(marks.stem)
    if marks.after == DELETED and len(os.fsencode(marks.stem)) <= LONGEST_NAME_KEPT:
        put_back(aside, target, keep_dir)
        return [f"{target}: an interrupted deletion is undone."]
    if mark(data) == marks.before and marks.after != DELETED:
        aside.unlink()
        return []
    return [_kept(aside, target, keep_dir)]


def _kept(aside: Path, target: Path, keep_dir: Path) -> str:
    kept = keep(aside, target, keep_dir)
    return f"{target}: a save that an interrupted write had caught is kept in {kept}."


def _target(directory: Path, wanted: str) -> Path | None:
    if there(directory / wanted):
        return directory / wanted
    return next((path for path in directory.iterdir() if stem(path.name) == wanted), None)
