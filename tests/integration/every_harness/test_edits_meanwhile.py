"""A file is edited in the moment between our reading and our replacing: the edit stands, whatever we change.

`Meanwhile` is that moment: right before the two names are swapped, a new name is given or one is taken away,
after every check of ours, somebody saves the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.errors import ConflictError
from agent_bridge.files import beside, kernel
from agent_bridge.projection import opencode_plugin, review, setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projection.ledger import Ledger

from .conftest import FIRST_ONES, NO_AGENTS_MD, MakeRepository, global_store, set_up, write

FIRST, SECOND = "Staging is reset every Monday.", "The quay is south."
THEIRS = b"A line that somebody saves in this very moment."
Save = Callable[[Path, bytes], None]


def in_place(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def by_rename(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.swp")
    aside.write_bytes(data)
    aside.replace(path)


def removed_first(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


SAVES = (in_place, by_rename, removed_first)


def in_turns(*cases: tuple[str, ...]) -> list[object]:
    """Each case with one way of saving, the first with all of them."""
    first = [(cases[0], save) for save in SAVES]
    rest = [(case, SAVES[number % 3]) for number, case in enumerate(cases[1:])]
    return [pytest.param(*case, save, id="-".join((*case, save.__name__))) for case, save in (*first, *rest)]


class Meanwhile:
    """Saves `edit` of a file's bytes, once, in the moment before the file is replaced, made or removed."""

    def __init__(
        self, patch: pytest.MonkeyPatch, path: Path, edit: Callable[[bytes], bytes], save: Save
    ) -> None:
        self.path, self.edit, self.save, self.times = path, edit, save, 0
        exchange, rename_new, swap_name = kernel.exchange, kernel.rename_new, beside.swap_name

        def exchanging(one: Path, other: Path) -> bool:
            self.strike(other)
            return exchange(one, other)

        def naming(source: Path, target: Path) -> bool:
            self.strike(target)
            return rename_new(source, target)

        def removing(path: Path, old: bytes, new: bytes | None) -> Path:
            if new is None:
                self.strike(path)
            return swap_name(path, old, new)

        patch.setattr(kernel, "exchange", exchanging)
        patch.setattr(kernel, "rename_new", naming)
        patch.setattr("agent_bridge.files.replacing.swap_name", removing)

    def strike(self, path: Path) -> None:
        if path == self.path and not self.times:
            self.times += 1
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.save(path, self.edit(path.read_bytes() if path.exists() else b""))


def append(data: bytes) -> bytes:
    return data + THEIRS + b"\n"


def work_on(engine: Engine) -> None:
    """Passes until one ends in peace, as the service makes them."""
    for _ in range(3):
        try:
            engine.reconcile()
        except ConflictError:
            continue


@pytest.mark.parametrize(
    ("layout", "name", "save"),
    in_turns(
        ("first ones", "AGENTS.md"),
        ("first ones", "CLAUDE.md"),
        ("first ones", "GEMINI.md"),  # a block that only points to AGENTS.md
        ("first ones", "AGENTS.override.md"),
        ("first ones", ".github/copilot-instructions.md"),
        ("own", ".goosehints"),
        ("own", ".memory/MEMORY.md"),
    ),
)
def test_text_beside_a_block(
    repository: MakeRepository,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
    name: str,
    save: Save,
) -> None:
    files = FIRST_ONES if layout == "first ones" else {**NO_AGENTS_MD, ".goosehints": "Mine.\n"}
    root = repository(files)
    project, engine = set_up(root, settings)
    if name != "GEMINI.md":  # its block stays the same as long as there are facts
        engine.store.add(FIRST)
        engine.reconcile()
    engine.store.add(SECOND)
    meanwhile = Meanwhile(monkeypatch, root / name, append, save)
    work_on(Engine(project, settings))
    data = (root / name).read_bytes()
    assert meanwhile.times == 1
    assert data.count(THEIRS) == 1
    assert data.count(b"@AGENTS.md" if name == "GEMINI.md" else b"quay") >= 1
    assert data.startswith(files.get(name, "").encode())


@pytest.mark.parametrize(
    ("name", "header", "save"),
    in_turns(
        (".claude/rules/agent-bridge.md", ""),
        (".opencode/memory-bridge.md", ""),
        (".gemini/memory-bridge.md", ""),
        (".agents/rules/agent-bridge.md", "---"),
        (".cursor/rules/agent-bridge.mdc", "---"),
        (".windsurf/rules/agent-bridge.md", "---"),
    ),
)
def test_text_in_a_file_of_ours(
    repository: MakeRepository,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    header: str,
    save: Save,
) -> None:
    root = repository({"AGENTS.md/keep.md": "A directory.\n"})
    project, engine = set_up(root, settings, asked="all")
    engine.store.add(FIRST)
    engine.reconcile()
    assert (root / name).read_text().startswith(header or "<!--")
    engine.store.add(SECOND)
    meanwhile = Meanwhile(monkeypatch, root / name, append, save)
    work_on(Engine(project, settings))
    data = (root / name).read_bytes()
    assert meanwhile.times == 1
    assert data.count(THEIRS) == 1
    assert b"quay" in data

    # What somebody writes into the block itself waits in the review.
    engine.store.add("Tar melts in July.")
    inside = b"A line that somebody puts into the block."
    again = Meanwhile(
        monkeypatch,
        root / name,
        lambda data: data.replace(FIRST.encode(), FIRST.encode() + b"\n\n" + inside),
        save,
    )
    work_on(Engine(project, settings))
    assert again.times == 1
    assert b"Tar melts" in (root / name).read_bytes()
    held = [path.read_bytes() for path in review.candidates_directory(project.state).iterdir()]
    assert any(inside in text for text in held)

    # And what is written as the file goes with us.
    last = Meanwhile(monkeypatch, root / name, append, save)
    last.path = root / name
    for _ in range(3):
        try:
            done = setup.eject(setup.describe(root), settings)
        except ConflictError:
            continue
        if not done.refused:
            break
    assert THEIRS in (root / name).read_bytes()
    assert b"agent-bridge:memory" not in (root / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "save"),
    in_turns(
        ("AGENTS.md",),
        (".gemini/memory-bridge.md",),
        (".agents/rules/agent-bridge.md",),
        (".roo/rules/agent-bridge.md",),
    ),
)
def test_a_file_that_appears_as_we_make_one(
    repository: MakeRepository, settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, save: Save
) -> None:
    root = repository({} if name == "AGENTS.md" else NO_AGENTS_MD)
    project, engine = set_up(root, settings)
    engine.store.add(FIRST)
    meanwhile = Meanwhile(monkeypatch, root / name, append, save)
    engine = Engine(project, settings)
    told = [notice for _ in range(2) for notice in engine.reconcile().notices]
    data = (root / name).read_bytes()
    assert meanwhile.times == 1
    if name == "AGENTS.md":
        assert data.startswith(THEIRS + b"\n")
        assert FIRST.encode() in data
    else:
        assert data == THEIRS + b"\n"
        assert root / name in [notice.path for notice in told if notice.code == "name-taken"]


@pytest.mark.parametrize(
    ("name", "kind", "save"),
    in_turns(
        (".claude/settings.local.json", "json"),
        ("opencode.json", "element"),
        (".git/info/exclude", "lines"),
        (".git/info/attributes", "lines"),
        ("~/.codex/config.toml", "toml"),
        ("~/.codex/hooks.json", "json element"),
        ("~/.claude/CLAUDE.md", "block"),
        ("~/.codex/AGENTS.md", "block"),
        ("~/.gemini/GEMINI.md", "block"),
        ("~/.kiro/steering/agent-bridge.md", "own"),
    ),
)
def test_settings_lines_and_the_users_own_files(
    repository: MakeRepository,
    settings: Settings,
    sealed_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    save: Save,
) -> None:
    texts = {
        "json": '{\n  "mine": 1\n}\n',
        "json element": '{"hooks": {}}\n',
        "element": '{\n  "instructions": ["docs/*.md"]\n}\n',
        "lines": "/build\n",
        "toml": "# mine 1\n[features]\nmemories = true\n",
        "block": "Mine.\n",
        "own": "",
    }
    edits: dict[str, Callable[[bytes], bytes]] = {
        "json": lambda data: data.replace(b"{", b'{"theirs": [1, 2],', 1),
        "json element": lambda data: data.replace(b"{", b'{"theirs": [1, 2],', 1),
        "element": lambda data: data.replace(b"[", b'["theirs.md", ', 1),
        "lines": lambda data: b"/theirs\n" + data,
        "toml": lambda data: b"theirs = 2\n" + data,
        "block": append,
        "own": append,
    }
    marks = {"block": THEIRS, "own": THEIRS}
    root = repository({"CLAUDE.md": "Brief.\n"} if kind == "element" else FIRST_ONES)
    path = sealed_home / name[2:] if name.startswith("~/") else root / name
    if kind == "element":  # the other three places are taken, so that the user's own file is changed
        write(
            root, {".opencode/opencode.json": "{}", ".opencode/opencode.jsonc": "{}", "opencode.jsonc": "{}"}
        )
    if texts[kind]:
        write(path.parent, {path.name: texts[kind]})
    described = setup.describe(root, delivery="hooks" if "hooks" in name else "blocks")
    global_store().add(SECOND)
    meanwhile = Meanwhile(monkeypatch, path, edits[kind], save)
    for _ in range(3):
        try:
            setup.init(described, settings)
        except ConflictError:
            continue
        global_engine(settings).reconcile()
    data = path.read_bytes()
    assert meanwhile.times == 1
    assert data.count(marks.get(kind, b"theirs")) == 1
    stays = {
        "json": b'"mine": 1',
        "element": b'"docs/*.md"',
        "toml": b"# mine 1",
        "lines": b"/build",
        "block": b"Mine.",
    }
    assert stays.get(kind, b"") in data
    if kind == "own":  # what appears where we make a file is somebody else's file of the same name
        assert data == THEIRS + b"\n"
        return
    ours = {
        "json": b"autoMemoryDirectory",
        "json element": b"SessionStart",
        "element": b"CLAUDE.md",
        "lines": b"agent-bridge",
        "toml": b"memories = false",
    }
    assert ours.get(kind, SECOND.encode()) in data
    if path.suffix == ".json":
        json.loads(data)


@pytest.mark.parametrize("save", SAVES)
def test_the_plugin_of_opencode(
    repository: MakeRepository, settings: Settings, monkeypatch: pytest.MonkeyPatch, save: Save
) -> None:
    root = repository(FIRST_ONES)
    project, _ = set_up(root, settings)
    path = root / ".opencode/plugins/agent-bridge.js"
    opencode_plugin.install(Ledger(project.state), root / ".opencode", Path("/before/agent-bridge"))
    meanwhile = Meanwhile(monkeypatch, path, append, save)
    with pytest.raises(ConflictError):
        opencode_plugin.install(Ledger(project.state), root / ".opencode", Path("/after/agent-bridge"))
    assert meanwhile.times == 1
    assert path.read_bytes().endswith(THEIRS + b"\n")
    assert b"/before/" in path.read_bytes()
