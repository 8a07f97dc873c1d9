"""The files that are derived from a store and stand in it: MEMORY.md and index.json."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agent_bridge import files
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.index import index_json, render_index
from agent_bridge.memory.snapshot import Problem
from agent_bridge.projection.ledger import Ledger

INDEX = "MEMORY.md"
INDEX_JSON = "index.json"


class DerivedFiles:
    """Writes the derived files of the store at `root`; Claude has `grace` seconds for a line of its own."""

    def __init__(self, root: Path, ledger: Ledger, *, grace: float) -> None:
        self._root = root
        self._ledger = ledger
        self._grace = grace
        self.lost: tuple[Notice, ...] = ()
        """What could not be carried over, and where it is kept."""

    @property
    def index(self) -> Path:
        """MEMORY.md."""
        return self._root / INDEX

    @property
    def json(self) -> Path:
        """index.json."""
        return self._root / INDEX_JSON

    def write_index(
        self, facts: Sequence[Fact], problems: Sequence[Problem], *, now: datetime
    ) -> float | None:
        """Bring MEMORY.md in line; returns when it wants another look (seconds since 1970), None: never."""
        if not self._root.is_dir():
            return None
        image = files.read_image(self.index, within=self._root, plain=True)
        text = render_index(
            image.data.decode("utf-8", "replace") if image.existed else None,
            facts,
            unreadable=frozenset(problem.path for problem in problems),
            now=now,
            grace=self._grace,
        )
        content = text.text.encode()
        if not image.existed or image.data != content:
            self._keep_undecodable(image)
            files.replace(image, content, keep_dir=self._ledger.kept, sync=False)
        return None if text.pending is None else text.pending.timestamp()

    def write_json(self, facts: Sequence[Fact]) -> None:
        """Bring index.json in line."""
        if self._root.is_dir():
            image = files.read_image(self.json, within=self._root, plain=True)
            files.replace(image, index_json(facts), keep_dir=self._ledger.kept, sync=False)

    def _keep_undecodable(self, image: files.FileImage) -> None:
        """Bytes of a MEMORY.md that are no UTF-8 can't be carried over; they are kept and told."""
        try:
            image.data.decode("utf-8")
        except UnicodeDecodeError:
            kept = self._ledger.kept / self._ledger.keep(image.data)
            text = f"{image.path} wasn't UTF-8; its former bytes are kept as {kept}."
            told = Notice("warning", "index-undecodable", text, image.path)
            self.lost = tuple(dict.fromkeys((*self.lost, told)))
