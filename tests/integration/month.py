"""A user's repository in which people, editors, Git, Claude and agent-bridge take turns at random.

After every pass of ours the same things must hold: no byte of the user's outside a block has changed, each
text that somebody saved is still somewhere, and nothing private is in a file that Git tracks or would add.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_bridge.config import load_settings
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import managed_block
from agent_bridge.memory.store import Store
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project, load_projects

BLOCK = re.compile(
    rb"<!-- agent-bridge:memory:start \(managed, do not edit\) -->.*?<!-- agent-bridge:memory:end -->", re.S
)
_LINE_END = re.compile(rb"\r\n|\n|\r")
_PLACE = b"\0block\0"
FIRST_TEXTS = (
    b"# Rules\n\nUse tabs.\n",
    b"# Rules\r\n\r\nUse tabs.\r\n",
    b"\xef\xbb\xbf# Rules\n\nNo final newline",
    b"Mixed\r\nends\nin\rthis file\n\n\n",
    b"A fence\n```\nnever closed\n",
    b"latin \xe9 and nul-free\n",
    b"",
)
_ADDED = (
    b"user line %d\n",
    b"user line %d\r\n",
    b"\nuser paragraph %d\n\n",
    b"- user item %d",
    b"```\nuser %d\n```\n",
)


class Month:
    """One user's repository, and what the user may expect of it."""

    files: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", "../tree/AGENTS.md")
    """Instruction files, from the repository's root; the first two are there from the beginning."""

    def __init__(self, home: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.home = home
        self.root = home / "repo"
        self.settings = load_settings()
        self.did: list[str] = []
        self.texts: set[str] = set()
        self.private: set[str] = set()
        self.count = 0
        (home / ".claude").mkdir()
        (home / ".codex").mkdir()
        self.codex = home / ".codex/config.toml"
        self.codex.write_text("# mine 0\nmodel = 'x'\n\n[features]\nmemories = true # mine 1\n")
        self.lines = {"# mine 0", "# mine 1"}
        self.keys: set[str] = set()
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        for name in self.files[:2]:
            (self.root / name).write_bytes(self.random.choice(FIRST_TEXTS))
        (self.root / "src.txt").write_text("code\n")
        self.prepare()
        self.commit()
        if seed % 2:
            self.git("worktree", "add", "-q", "-b", "tree", "../tree")
        self.project: Project = setup.describe(self.root)
        setup.init(self.project, self.settings)
        self.engine = Engine(self.project, self.settings)

    def prepare(self) -> None:
        """What else is there before the project is set up."""

    # --- what a user does

    def token(self) -> str:
        self.count += 1
        return f"tok{self.count:03d}{self.random.choice(['x', 'y', 'z'])}end"

    def add(self) -> None:
        token = self.token()
        private = self.random.random() < 0.3
        if private:
            self.private.add(token)
        self.store().add(f"Fact {token} {self.prose()}", private=private)
        self.texts.add(token)

    def add_by_hand(self) -> None:
        token = self.token()
        private = self.random.random() < 0.3
        head = (
            "---\nprivate: true\n---\n\n"
            if private
            else self.random.choice(("", "---\ntype: project\n---\n\n"))
        )
        if private:
            self.private.add(token)
        name = self.random.choice(
            (f"{token}.md", f"entries/{token}.md", f"note [{token}] %41.md", f"decisions/{token}.md")
        )
        place = self.root / ".memory" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{head}Hand {token} {self.prose()}\n")
        self.texts.add(token)

    def claude_writes(self) -> None:
        token = self.token()
        (self.root / ".memory").mkdir(exist_ok=True)
        place = self.root / ".memory" / f"claude_{token}.md"
        place.write_text(
            f"---\nname: {token}\ndescription: about {token}\n"
            f"metadata:\n  node_type: memory\n  type: project\n---\n\nClaude {token}.\n"
        )
        with (self.root / ".memory/MEMORY.md").open("a") as index:
            index.write(f"- [{token}]({place.name}) — hook {token}\n")
        self.texts.add(token)

    def edit_fact(self) -> None:
        path = self.some_fact()
        if path is None:
            return
        token = self.token()
        data = path.read_bytes()
        way = self.random.choice(("append", "truncate", "rename"))
        new = data + f"\nedited {token}\n".encode()
        if path.name.startswith(".") or not data:
            return
        if way == "append":
            with path.open("ab") as file:
                file.write(f"\nedited {token}\n".encode())
        elif way == "truncate":
            path.write_bytes(new)
        else:
            aside = path.with_name(f".{path.name}.swp")
            aside.write_bytes(new)
            aside.replace(path)
        if any(one.encode() in data for one in self.private):
            self.private.add(token)
        self.texts.add(token)

    def remove_fact(self) -> None:
        path = self.some_fact()
        if path is not None:
            data = path.read_bytes()
            self.texts -= {text for text in self.texts if text.encode() in data}
            path.unlink()

    def user_edits(self) -> None:
        path = self.root / self.random.choice(self.files)
        if not path.exists():
            return
        data = path.read_bytes()
        self.count += 1
        added = self.random.choice(_ADDED) % self.count
        block = BLOCK.search(data)
        place = self.random.choice(("top", "bottom", "above", "below"))
        at = {"top": 0, "bottom": len(data)}.get(place, len(data))
        if block and place == "above":
            at = data.rfind(b"\n", 0, block.start()) + 1
        if block and place == "below":
            end = re.compile(rb"\r\n|\n|\r").match(data, block.end())
            at = end.end() if end else len(data)
        if block and at == len(data) and not data.endswith((b"\n", b"\r")):
            added = b"\n" + added
        if block and place == "top" and not added.endswith(b"\n"):
            added += b"\n"
        if block and place == "above" and not added.endswith(b"\n"):
            added += b"\n"
        path.write_bytes(data[:at] + added + data[at:])

    def edit_inside(self) -> None:
        path = self.root / self.random.choice(self.files)
        data = path.read_bytes() if path.exists() else b""
        block = BLOCK.search(data)
        if block is None:
            return
        token = self.token()
        lines = data[block.start() : block.end()].split(b"\n")
        at = self.random.randint(1, len(lines) - 1)
        lines.insert(at, f"inside {token}".encode())
        path.write_bytes(data[: block.start()] + b"\n".join(lines) + data[block.end() :])
        self.texts.add(token)

    def spoil_markers(self) -> None:
        path = self.root / self.random.choice(self.files)
        data = path.read_bytes() if path.exists() else b""
        block = BLOCK.search(data)
        if block is None:
            return
        whole = block[0]
        change = self.random.choice(("drop end", "drop block", "double", "move"))
        if change == "drop end":
            new = data.replace(b"<!-- agent-bridge:memory:end -->", b"", 1)
        elif change == "drop block":
            new = data.replace(whole, b"", 1)
        elif change == "double":
            new = data + b"\n" + whole + b"\n"
        else:
            new = whole + b"\n" + data.replace(whole, b"", 1)
        path.write_bytes(new)

    def user_mends(self) -> None:
        for name in self.files:
            path = self.root / name
            if path.exists():
                data = path.read_bytes()
                if not is_sound(data):
                    rest = re.sub(rb"<!-- agent-bridge:memory:.*? -->", b"", BLOCK.sub(b"", data))
                    self.texts -= {text for text in self.texts if f"inside {text}".encode() in data}
                    path.write_bytes(rest)

    def git_work(self) -> None:
        word = self.random.choice(
            ("commit", "branch", "checkout", "stash", "pop", "merge", "rebase", "discard")
        )
        self.did[-1] += f" {word}"
        branches = self.git("branch", "--format=%(refname:short)").decode().split()
        other = self.random.choice(branches)
        if word == "commit":
            self.commit()
        elif word == "branch" and len(branches) < 4:
            self.git("checkout", "-q", "-b", f"b{self.count}", ok=False)
        elif word == "checkout":
            self.git("checkout", "-q", other, ok=False)
        elif word == "stash":
            self.git("stash", "-q", ok=False)
        elif word == "pop":
            self.git("stash", "pop", "-q", ok=False)
            if self.git("ls-files", "-u"):
                self.git("checkout", "-q", "--theirs", ".", ok=False)
                self.git("add", "-u")
        elif word == "merge":
            self.git("merge", "-q", "-m", "merge", other, ok=False)
            self.git("merge", "--abort", ok=False)
        elif word == "rebase":
            self.git("rebase", "-q", "--autostash", other, ok=False)
            self.git("rebase", "--abort", ok=False)
        elif word == "discard":
            for name in self.files[:2]:
                data = (self.root / name).read_bytes() if (self.root / name).exists() else b""
                self.texts -= {text for text in self.texts if f"inside {text}".encode() in data}
            self.git("checkout", "-q", "--", *self.files[:2], ok=False)

    def edit_settings(self) -> None:
        self.count += 1
        if self.random.random() < 0.5:
            line = f"# mine {self.count}"
            at = self.random.choice((0, self.codex.read_text().count("\n")))
            lines = self.codex.read_text().split("\n")
            lines.insert(at, line)
            self.codex.write_text("\n".join(lines))
            self.lines.add(line)
            return
        place = self.root / ".claude/settings.local.json"
        place.parent.mkdir(exist_ok=True)
        found = json.loads(place.read_bytes()) if place.exists() else {}
        key = f"mine{self.count}"
        place.write_text(json.dumps(found | {key: [self.count]}, indent=self.random.choice((None, 2, 4))))
        self.keys.add(key)

    def share_or_not(self) -> None:
        facts = self.store().scan()
        if facts.private and self.random.random() < 0.5:
            fact = self.random.choice(facts.private)
            self.private -= {token for token in self.private if token in fact.body}
            try:
                self.store().share(fact.path)
            except AgentBridgeError:
                self.private |= {token for token in self.texts if token in fact.body}

    def new_engine(self) -> None:
        self.engine = Engine(self.project, self.settings)

    def init_again(self) -> None:
        self.passing(lambda: setup.init(self.project, self.settings))

    def sync(self) -> None:
        self.passing(self.engine.reconcile)

    def eject_and_return(self) -> None:
        self.user_mends()
        self.passing(lambda: setup.eject(self.project, self.settings))
        for name in self.files:
            data = (self.root / name).read_bytes() if (self.root / name).exists() else b""
            assert managed_block.find_block(data) is None, f"{name} still has a block: {data!r}"
        self.check_private()
        self.passing(lambda: setup.init(self.project, self.settings))
        self.new_engine()

    def end(self) -> None:
        """`eject`: the user's bytes are what they were without our blocks, and the facts stay."""
        self.user_mends()
        for _ in range(2):
            self.sync()
        facts = {fact.path: fact.body for fact in self.store().scan().facts}
        expected = {name: self.without_block(name) for name in self.files if (self.root / name).exists()}
        self.passing(lambda: setup.eject(self.project, self.settings))
        assert load_projects() == []
        for name, data in expected.items():
            path = self.root / name
            now = path.read_bytes() if path.exists() else b""
            assert now == data, f"{name} isn't as its user had it: {now!r}, not {data!r}"
        for name in self.files:
            data = (self.root / name).read_bytes() if (self.root / name).exists() else b""
            assert managed_block.find_block(data) is None, f"{name} still has a block: {data!r}"
        assert facts == {fact.path: fact.body for fact in self.store().scan().facts}
        text = self.codex.read_text()
        assert tomllib.loads(text)["features"] == {"memories": True}, text
        place = self.root / ".claude/settings.local.json"
        found = json.loads(place.read_bytes()) if place.exists() else {}
        assert found.keys() == self.keys, found

    def without_block(self, name: str) -> bytes:
        """A file's bytes without the block, its line end and the line ends that were added before it."""
        path = self.root / name
        data = path.read_bytes()
        found = BLOCK.search(data)
        if found is None:
            return data
        entry = self.ledger(name).get(Path(os.path.realpath(path))) or self.ledger(name).get(path)
        assert entry is not None, f"{name} is in no ledger"
        ours = len(_LINE_END.findall((entry.separator or "").encode()))
        before, after = data[: found.start()], re.sub(rb"\A(?:\r\n|\n|\r)", b"", data[found.end() :])
        ends = _LINE_END.findall(re.search(rb"[\r\n]*\Z", before)[0])  # type: ignore[index]
        if ours >= len(ends) and ends and (after or ours == 1):
            ours = len(ends) - 1  # two texts of the user's don't become one line
        rest = before[: len(before) - sum(map(len, ends[len(ends) - ours :] if ours else ()))] + after
        return b"" if entry.created and not rest.strip() else rest

    def ledger(self, name: str) -> Ledger:
        """The ledger in which a file's block stands."""
        return self.engine.ledger

    # --- what must hold

    def passing(self, work: Callable[[], object]) -> None:
        """One pass of ours, and what it may not have done."""
        before = {name: self.outside(name) for name in self.files}
        try:
            work()
        except AgentBridgeError as error:
            self.did.append(f"  {type(error).__name__}: {error.title}")
        for name in self.files:
            self.check_outside(name, before[name])
        self.check_texts()
        self.check_private()
        self.check_settings()

    def check_settings(self) -> None:
        """The user's lines and keys stand, and what we write can be read."""
        text = self.codex.read_text()
        tomllib.loads(text)
        assert {line for line in self.lines if line not in text} == set()
        place = self.root / ".claude/settings.local.json"
        assert self.keys <= (json.loads(place.read_bytes()).keys() if place.exists() else set())

    def outside(self, name: str) -> bytes:
        """What is the user's in a file: all but the blocks."""
        path = self.root / name
        return BLOCK.sub(_PLACE, path.read_bytes() if path.exists() else b"")

    def check_outside(self, name: str, before: bytes) -> None:
        now = self.outside(name)
        if now.count(_PLACE) == before.count(_PLACE):
            assert now == before, f"{name} changed"
        else:  # a block came or went, with line ends before it
            assert _squeezed(now) == _squeezed(before), f"{name} changed"

    def check_texts(self) -> None:
        """Each text that somebody saved is in a file of the store, in Git, or waits for review."""
        held = b"\n".join(self.held())
        missing = {text for text in self.texts if text.encode() not in held}
        if missing:
            objects = self.git("cat-file", "--batch", "--batch-all-objects", "--unordered")
            missing = {text for text in missing if text.encode() not in objects}
        assert not missing, f"lost: {missing}"

    def held(self) -> Iterator[bytes]:
        """Every byte in which a text may be found again, Git's objects aside."""
        yield from bytes_below(self.root / ".memory")
        yield from bytes_below(self.project.state)
        yield from ((self.root / name).read_bytes() for name in self.files if (self.root / name).exists())

    def check_private(self) -> None:
        if not self.private or (self.root / ".git/index.lock").exists():
            return
        index = self.home / "index"
        index.write_bytes((self.root / ".git/index").read_bytes())
        environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
        self.git("add", "-A", env=environment, ok=False)
        names = self.git("ls-files", "-s", "-z", env=environment)
        objects = b"\n".join(record.split()[1] for record in names.split(b"\0") if record)
        held = names + self.git("cat-file", "--batch", given=objects + b"\n")
        leaked = {token for token in self.private if token.encode() in held}
        assert not leaked, f"private in Git: {leaked}\n{names.decode()}"

    # --- details

    def store(self) -> Store:
        return Store(self.root / ".memory", state=self.project.state)

    def some_fact(self) -> Path | None:
        found = [
            path
            for path in sorted((self.root / ".memory").rglob("*.md"))
            if path.name != "MEMORY.md" and path.is_file()
        ]
        return self.random.choice(found) if found else None

    def prose(self) -> str:
        return self.random.choice(
            (
                "plain words.",
                "```\nfence never closed",
                "<!-- agent-bridge:memory:end -->\nmore",
                "@CLAUDE.md and @AGENTS.md",
                "<!-- open comment",
                "# Heading\n\n- item\n\n---\n\ntext",
                "\u202eright to left\u202c",
                "long " * 700,
            )
        )

    def commit(self) -> None:
        self.git("add", "-A", "--", ".", ":!.claude", ok=False)
        self.git("commit", "-q", "-m", "more", "--allow-empty", ok=False)

    def git(
        self, *words: str, ok: bool = True, given: bytes = b"", env: dict[str, str] | None = None
    ) -> bytes:
        done = subprocess.run(
            ["git", *words], cwd=self.root, env=env, input=given, capture_output=True, check=False, timeout=60
        )
        assert not ok or done.returncode == 0, f"git {words}: {done.stderr.decode()}"
        return done.stdout


def is_sound(data: bytes) -> bool:
    """Whether a person would leave the file as it is."""
    try:
        managed_block.find_block(data)
    except AgentBridgeError:
        return False
    return len(BLOCK.findall(data)) < 2


def _squeezed(data: bytes) -> bytes:
    """The bytes without blocks and line ends: where a block comes or goes, only those may."""
    return re.sub(rb"[\r\n]+", b"", data.replace(_PLACE, b""))


def bytes_below(top: Path) -> Iterator[bytes]:
    for base, _, names in os.walk(top):
        for name in names:
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                yield path.read_bytes()
