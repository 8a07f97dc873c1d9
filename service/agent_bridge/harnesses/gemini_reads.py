"""Which files a session of Gemini CLI shows the model, in order, and which it skips.

Source: Gemini CLI 0.61.0, by running it. The user's own files and the private memory stand in the system
instruction; in the first message follow, sorted by path, the files of every directory from the one that has a
`.git` down to the session's. A file that one of them imports is shown in its place, as often as it is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, gemini_carriers, gemini_config, gemini_imports, gemini_memory
from agent_bridge.harnesses.base import FileKind, InstructionFile, Read, Site
from agent_bridge.harnesses.observe import look

READS_LIMIT = 500
"""Files in the answer."""


def reads(site: Site, start: Path) -> tuple[Read, ...]:
    """The files of a session started in `start`, in the order in which the model gets them."""
    session = _Session(site, start)
    session.user()
    session.private()
    if gemini_config.distrusted(site):
        session.skip_all(f"{gemini_config.trust_file(site.env)} says that the folder isn't to be trusted")
    else:
        session.project()
    return tuple(session.found[:READS_LIMIT])


@dataclass(slots=True)
class _Session:
    """Collects what is read, file by file."""

    site: Site
    start: Path
    found: list[Read] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    """Identities of files that were found by their name; one file is taken once."""

    def user(self) -> None:
        """What stands in its home."""
        home = paths.gemini_home(self.site.env)
        for name in self._names():
            self.take(home / name, "the user's own, for all projects", gemini_carriers.import_root(self.site))

    def private(self) -> None:
        """The index of what it wrote down for itself about this directory."""
        place = gemini_memory.location(self.site, self.start)
        if place is not None:
            self.take(place / gemini_memory.INDEX, "Gemini CLI's private memory of this directory", place)

    def project(self) -> None:
        """What stands in the directories from the top of the search down to the session's."""
        top = self._root_of(self.start)
        above = [self.start, *self.start.parents]
        places = above[: above.index(top) + 1]
        names = self._names()
        for path in sorted({place / name for place in places for name in names}, key=str):
            where = "the session's directory" if path.parent == self.start else f"{path.parent}, above it"
            self.take(path, f"{path.name} of {where}", self._root_of(path.parent))
        self._tell_skipped(top, names)

    def skip_all(self, why: str) -> None:
        """The project's files, none of which is read."""
        for name in self._names():
            file = self._look(self.site.checkout / name)
            if file.readable:
                self._add(file, f"{name} of the project", hidden=why)

    def take(self, path: Path, why: str, root: Path) -> None:
        """A file found by its name, with what it imports from below `root`."""
        file = self._look(path)
        if file.kind is FileKind.ABSENT:
            return
        if not file.readable:
            self._add(file, why, hidden=file.why_unreadable)
            return
        if file.identity in self.seen:
            self._add(file, why, hidden="it is a file that is read already, under another name")
            return
        if file.identity is not None:
            self.seen.add(file.identity)
        self._show(file, why, root, ())

    def _show(self, file: InstructionFile, why: str, root: Path, chain: tuple[Path, ...]) -> None:
        text = file.data.decode("utf-8", "replace")
        self._add(file, why, text=text)
        if len(chain) >= gemini_imports.MAX_DEPTH or len(self.found) >= READS_LIMIT:
            return
        for found in gemini_imports.imports(text):
            path = gemini_imports.resolve(found.path, file.path.parent)
            imported = self._look(path)
            if path in chain or not imported.readable:
                continue
            told = f"imported by {file.path}"
            if imported.real.is_relative_to(root):
                self._show(imported, told, root, (*chain, path))
            else:
                self._add(imported, told, hidden=f"imports may not lead out of {root}")

    def _tell_skipped(self, top: Path, names: tuple[str, ...]) -> None:
        """Files of the root that one might think it reads."""
        root = self.site.checkout
        shown = {read.path for read in self.found}
        for name in dict.fromkeys((*gemini_config.names(self.site), agents_md.NAME, gemini_carriers.OWN)):
            file = self._look(root / name)
            if not file.readable or file.path in shown:
                continue
            if name in names:
                hidden = f"it looks for files from {top} on only"
            elif name in gemini_config.names(self.site):
                hidden = f"{root / gemini_config.SETTINGS} counts only in sessions started in {root}"
            else:
                importers = [one.path for one in self.found if one.hidden and self._imports(one.path, file)]
                hidden = (
                    f"{importers[0]}, which imports it, isn't read here"
                    if importers
                    else "neither context.fileName nor an import names it"
                )
            self._add(file, f"{name} of the project", hidden=hidden)

    def _imports(self, path: Path, wanted: InstructionFile) -> bool:
        text = self._look(path).data.decode("utf-8", "replace")
        found = gemini_imports.imports(text)
        return any(gemini_imports.resolve(one.path, path.parent) == wanted.path for one in found)

    def _names(self) -> tuple[str, ...]:
        return gemini_config.names(self.site, below_root=self.start != self.site.checkout)

    def _root_of(self, place: Path) -> Path:
        """The nearest directory with a marker, from `place` upwards; `place` itself where none has one."""
        markers = [name for name in gemini_config.markers(self.site) if ".." not in name]
        above = (place, *place.parents)
        return next((one for one in above if any((one / name).exists() for name in markers)), place)

    def _look(self, path: Path) -> InstructionFile:
        return look(path, self.site.checkout)

    def _add(self, file: InstructionFile, why: str, *, hidden: str = "", text: str = "") -> None:
        size = len(file.data)
        read = Read(file.path, size, 0 if hidden else size, why, hidden=hidden, text="" if hidden else text)
        self.found.append(read)
