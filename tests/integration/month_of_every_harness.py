"""The same month for a user who has every harness: their own memories, their files, and all verbs of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from agent_bridge import paths
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.memory.store import Store
from agent_bridge.projection import forget, requests, review, reviewing, setup
from agent_bridge.projection.engine import global_engine
from agent_bridge.projection.importing.items import Kind
from agent_bridge.projection.importing.run import Wishes, import_source
from agent_bridge.projection.importing.sources import recognise
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.reverse import bring_back
from agent_bridge.projects import Delivery
from integration.month import BLOCK, FIRST_TEXTS, Month, bytes_below

OWN_FILES = (
    ".claude/rules/agent-bridge.md",
    ".opencode/memory-bridge.md",
    ".gemini/memory-bridge.md",
    ".agents/rules/agent-bridge.md",
    ".amazonq/rules/agent-bridge.md",
)
_HOMES = (".gemini/antigravity", ".config/opencode", ".junie", ".kiro", ".codeium/windsurf", ".aws/amazonq")
_TOPICS = (
    "harbour",
    "quay",
    "crane",
    "ferry",
    "tide",
    "buoy",
    "anchor",
    "deck",
    "mast",
    "keel",
    "cargo",
    "chart",
)


class MonthOfEveryHarness(Month):
    """A month in which all harnesses with code of ours and some of the table are in use."""

    files = (
        *Month.files,
        "GEMINI.md",
        "AGENTS.override.md",
        ".junie/AGENTS.md",
        "../.claude/CLAUDE.md",
        "../.codex/AGENTS.md",
        "../.gemini/GEMINI.md",
    )

    def prepare(self) -> None:
        """Homes, notes and more instruction files."""
        self.learnt: set[str] = set()
        for name in _HOMES:
            (self.home / name).mkdir(parents=True, exist_ok=True)
        for name in self.files[3:]:
            if self.random.random() < 0.6:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.random.choice(FIRST_TEXTS))
        self.codex_folder = self.home / ".codex/memories/extensions/ad_hoc/notes"
        self.gemini_folder = self.home / ".gemini/tmp/repo/memory"
        for folder in (self.codex_folder, self.gemini_folder):
            folder.mkdir(parents=True)
        (self.home / ".gemini/projects.json").write_text(json.dumps({"projects": {str(self.root): "repo"}}))

    # --- what harnesses write by themselves

    def codex_notes(self) -> None:
        token = self.token()
        name = f"2026-01-02T03-04-{self.count % 60:02}-{token}.md"
        (self.codex_folder / name).write_text(f"cwd: {self.root}\n\nCodex noted {token} {self.topic()}.\n")
        self.learnt.add(token)

    def gemini_notes(self) -> None:
        token = self.token()
        with (self.gemini_folder / "MEMORY.md").open("a") as file:
            file.write(f"- Gemini noted {token} {self.topic()}.\n")
        self.private.add(token)
        self.learnt.add(token)

    def claude_writes_by_its_link(self) -> None:
        place = self.home / ".claude/projects" / slug(str(self.root)) / "memory"
        if place.is_dir():
            token = self.token()
            (place / f"link_{token}.md").write_text(
                f"---\nname: {token}\n---\n\nBy the link {token} {self.topic()}.\n"
            )
            self.texts.add(token)

    def edit_own_file(self) -> None:
        """An agent edits a file of ours, inside its block or below."""
        path = self.root / self.random.choice(OWN_FILES)
        data = path.read_bytes() if path.exists() else b""
        block = BLOCK.search(data)
        if block is None:
            return
        token = self.token()
        added = f"\nown file {token}\n".encode()
        at = self.random.choice((len(data), data.rfind(b"\n", 0, block.end())))
        path.write_bytes(data[:at] + added + data[at:])
        self.texts.add(token)

    # --- what a person does with us

    def add_for_all(self) -> None:
        token = self.token()
        store = Store(paths.global_store(), scope="global", state=paths.user_state())
        store.create()
        store.add(f"For all {token} {self.prose()}", private=self.random.random() < 0.3)
        self.texts.add(token)

    def review_one(self) -> None:
        waiting = review.load_candidates(self.project.state)
        if not waiting:
            return
        one = self.random.choice(waiting)
        word = self.random.choice(("accept", "merge", "reject"))
        self.did[-1] += f" {word}"
        now, store = datetime.now(UTC), self.store()
        try:
            if word == "accept":
                private = reviewing.shall_be_private(one, store)
                reviewing.accept(self.project.state, one, store, now=now, private=private)
            elif word == "reject":
                reviewing.reject(self.project.state, [one], now=now)
            elif facts := store.scan().facts:
                fact = self.random.choice(facts)
                text = reviewing.merged_text(fact, one, replace=self.random.random() < 0.3)
                reviewing.merge(self.project.state, one, store, fact, text, now=now)
                if fact.private:
                    self.private |= {token for token in self.texts if token in one.text}
        except AgentBridgeError as error:
            self.did[-1] += f" {type(error).__name__}"

    def ask_for_files(self) -> None:
        name = self.random.choice(("all", "claude", "opencode", "gemini", "antigravity", "amazon-q"))
        change = self.random.choice((requests.request, requests.withdraw))
        self.did[-1] += f" {change.__name__} {name}"
        self.project = change(self.project, requests.named(name), self.settings)
        self.new_engine()

    def blocks_or_hooks(self) -> None:
        delivery: Delivery = "hooks" if self.project.delivery == "blocks" else "blocks"
        self.did[-1] += f" {delivery}"
        self.project = setup.describe(self.root, delivery=delivery)
        self.passing(lambda: setup.init(self.project, self.settings))
        self.new_engine()

    def take_over(self) -> None:
        folder = self.home / "elsewhere"
        folder.mkdir(exist_ok=True)
        token = self.token()
        (folder / f"{token}.md").write_text(f"# {self.topic()}\n\nImported {token} {self.prose()}\n")
        report = import_source(recognise(folder, Kind.MARKDOWN), self.store(), Wishes(), threshold=0.5)
        if any(token in line.origin and line.outcome.value != "refused" for line in report.lines):
            self.texts.add(token)

    def forget_one(self) -> None:
        store = self.store()
        facts = store.scan().facts
        if not facts:
            return
        fact = self.random.choice(facts)
        held = (store.root / fact.path).read_bytes()
        place = forget.Place(store, self.project, paths.cache_dir() / "search" / "x.sqlite")
        try:
            done = forget.forget(place, fact, self.settings, now=datetime.now(UTC))
        except AgentBridgeError as error:
            self.did[-1] += f" {type(error).__name__}"
            return
        self.texts -= {text for text in self.texts if text.encode() in held}
        if done.still_in or done.said_by_others or done.troubles or len(fact.body) < 12:
            return
        first = fact.body.splitlines()[0]
        for name in (*self.files, *OWN_FILES):
            path = self.root / name
            block = BLOCK.search(path.read_bytes()) if path.exists() else None
            assert block is None or f"[{fact.id}]".encode() not in block[0], f"{name} has {first!r} yet"

    def bring_back(self) -> None:
        name = self.random.choice(("claude", "codex", "opencode", "gemini", "antigravity"))
        self.did[-1] += f" {name}"
        try:
            bring_back(self.project, requests.named(name), self.settings, now=datetime.now(UTC))
        except AgentBridgeError as error:
            self.did[-1] += f" {type(error).__name__}"

    # --- passes

    def sync(self) -> None:
        tried = len(self.did)
        super().sync()
        self.passing(global_engine(self.settings).reconcile)
        if len(self.did) == tried:  # nothing was refused: what harnesses wrote has been taken over
            self.texts |= self.learnt
            self.learnt = set()
            self.check_texts()

    def held(self) -> Iterator[bytes]:
        yield from super().held()
        yield from bytes_below(paths.global_store())
        yield from bytes_below(paths.user_state())
        for name in OWN_FILES:
            if (self.root / name).is_file():
                yield (self.root / name).read_bytes()

    def ledger(self, name: str) -> Ledger:
        in_home = name.startswith("../.")
        return Ledger(paths.user_state()) if in_home else super().ledger(name)

    def topic(self) -> str:
        return f"near the {self.random.choice(_TOPICS)} and the {self.random.choice(_TOPICS)}"
