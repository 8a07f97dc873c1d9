"""While Git works, and while a stash holds our block, nobody is in its way: a writer beside real commands."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_bridge import files, git
from agent_bridge.errors import ConflictError
from agent_bridge.harnesses.managed_block import block_text, is_ours, render_block, splice
from agent_bridge.projection import gitlaw

pytestmark = pytest.mark.usefixtures("sealed_home")

USER = b"# Rules\n\none\ntwo\nthree\n"


@dataclass(frozen=True)
class Fact:
    id: str
    title: str
    body: str


COMMITTED = Fact("a", "Committed", "Known to all.")
UNCOMMITTED = Fact("b", "New", "Just learnt.")
LATER = Fact("c", "Later", "Learnt while the stash was there.")


def run(where: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def with_block(*facts: Fact, user: bytes = USER) -> bytes:
    return splice(user, render_block((), facts).body).data


@dataclass
class Writer:
    """Does what the service does for one tracked file, as fast as it can, and remembers why it waited."""

    repo: Path
    facts: tuple[Fact, ...]
    limit: float = 900.0
    written_at: float | None = None
    waited: set[str] = field(default_factory=set)
    trouble: list[Exception] = field(default_factory=list)
    rounds: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()
        assert not self.trouble

    def until(self, reached: Callable[[], bool]) -> None:
        """Let the writer go its rounds until `reached` holds."""
        deadline = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < deadline, self.waited
            assert not self.trouble
            self._stop.wait(0.005)

    def rounds_more(self, count: int = 3) -> None:
        target = self.rounds + count
        self.until(lambda: self.rounds >= target)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.once()
                self.rounds += 1
        except Exception as error:  # noqa: BLE001 - told by __exit__
            self.trouble.append(error)

    def once(self) -> None:
        checkout = git.find_checkout(self.repo)
        assert checkout is not None
        busy = git.activity(checkout)
        if busy:
            self.waited.add(busy)
            return
        image = files.read_image(self.repo / "AGENTS.md")
        wait = gitlaw.restored_by_stash(
            checkout, "AGENTS.md", image.data, written_at=self.written_at, limit=self.limit
        )
        if wait:
            self.waited.add("stash")
            return
        wanted = splice(image.data, render_block((), self.facts).body).data
        if wanted != image.data:
            try:
                files.replace(image, wanted, keep_dir=self.repo.parent / "kept")
            except ConflictError:  # Git began after we had looked; the next round looks again
                self.waited.add("conflict")
                return
            self.written_at = time.time()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "repo"
    path.mkdir()
    run(path, "init", "-q", "-b", "main")
    (path / "AGENTS.md").write_bytes(with_block(COMMITTED))
    (path / "other").write_text("1")
    run(path, "add", "-A")
    run(path, "commit", "-qm", "first")
    return path


@pytest.fixture
def writer(repo: Path) -> Iterator[Writer]:
    """A running writer that has written a fact nobody has committed yet."""
    with Writer(repo, (COMMITTED, UNCOMMITTED)) as running:
        running.until(lambda: running.written_at is not None)
        yield running


def agents(repo: Path) -> bytes:
    return (repo / "AGENTS.md").read_bytes()


DIRTY = with_block(COMMITTED, UNCOMMITTED)


def test_without_the_law_pop_would_fail(repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(DIRTY)
    run(repo, "stash")
    (repo / "AGENTS.md").write_bytes(DIRTY)
    assert "would be overwritten" in run(repo, "stash", "pop", ok=False)


def test_stash_and_pop(repo: Path, writer: Writer) -> None:
    run(repo, "stash")
    writer.until(lambda: "stash" in writer.waited)
    assert agents(repo) == with_block(COMMITTED)
    writer.facts += (LATER,)
    writer.rounds_more()
    assert agents(repo) == with_block(COMMITTED)
    run(repo, "stash", "pop")
    writer.until(lambda: agents(repo) == with_block(COMMITTED, UNCOMMITTED, LATER))


def test_a_dropped_stash_ends_the_waiting(repo: Path, writer: Writer) -> None:
    run(repo, "stash")
    writer.until(lambda: "stash" in writer.waited)
    run(repo, "stash", "drop")
    writer.until(lambda: agents(repo) == DIRTY)


def test_a_stash_of_other_files_is_no_reason_to_wait(repo: Path, writer: Writer) -> None:
    (repo / "other").write_text("2")
    run(repo, "stash", "push", "other")
    writer.facts += (LATER,)
    writer.until(lambda: agents(repo) == with_block(COMMITTED, UNCOMMITTED, LATER))
    assert "stash" not in writer.waited


def test_an_old_stash_is_waited_for_no_longer_and_told(repo: Path) -> None:
    with Writer(repo, (COMMITTED, UNCOMMITTED), limit=0.0) as writer:
        writer.until(lambda: agents(repo) == DIRTY)
        run(repo, "stash")
        writer.until(lambda: agents(repo) == DIRTY)
    checkout = git.find_checkout(repo)
    assert checkout is not None
    told = gitlaw.stash_hint(checkout, "AGENTS.md", agents(repo))
    assert told is not None
    assert "git checkout -- AGENTS.md" in told
    run(repo, "checkout", "--", "AGENTS.md")
    run(repo, "stash", "pop")
    assert gitlaw.stash_hint(checkout, "AGENTS.md", agents(repo)) is None


def test_after_a_restart_the_stash_is_still_respected(repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(DIRTY)
    run(repo, "stash")
    with Writer(repo, (COMMITTED, UNCOMMITTED)) as writer:
        writer.rounds_more()
        assert writer.written_at is None
        run(repo, "stash", "pop")
    assert agents(repo) == DIRTY


def colleague_commits(repo: Path, name: str = "other") -> Path:
    clone = repo.parent / "colleague"
    run(repo.parent, "clone", "-q", str(repo), str(clone))
    (clone / name).write_text("theirs")
    run(clone, "add", "-A")
    run(clone, "commit", "-qm", "theirs")
    return clone


@pytest.mark.parametrize("how", [("--ff-only",), ("--rebase",), ("--no-rebase", "--no-edit")])
def test_pull_with_autostash(repo: Path, writer: Writer, how: tuple[str, ...]) -> None:
    clone = colleague_commits(repo)
    if how != ("--ff-only",):
        run(repo, "commit", "-q", "--allow-empty", "-m", "ours")
    run(repo, "pull", "-q", "--autostash", *how, str(clone), "main")
    assert (repo / "other").read_text() == "theirs"
    writer.rounds_more()
    assert agents(repo) == DIRTY
    assert run(repo, "stash", "list") == ""


def test_rebase_with_autostash_that_stops_on_the_way(repo: Path, writer: Writer) -> None:
    run(repo, "commit", "-q", "--allow-empty", "-m", "second")
    run(repo, "rebase", "-q", "--autostash", "--exec", "test -e go-on", "HEAD~1", ok=False)
    writer.until(lambda: "rebase" in writer.waited)
    writer.facts += (LATER,)
    writer.rounds_more()
    assert agents(repo) == with_block(COMMITTED)
    run(repo, "rebase", "--continue")
    writer.until(lambda: agents(repo) == with_block(COMMITTED, UNCOMMITTED, LATER))
    assert run(repo, "stash", "list") == ""


def test_checkout_of_a_branch_with_an_uncommitted_fact(repo: Path, writer: Writer) -> None:
    run(repo, "branch", "side")
    run(repo, "commit", "-q", "--allow-empty", "-m", "second")
    for branch in ("side", "main", "side"):
        run(repo, "checkout", "-q", branch)
    writer.rounds_more()
    assert agents(repo) == DIRTY


def test_a_merge_with_conflicts_is_left_alone_until_it_is_over(repo: Path) -> None:
    run(repo, "checkout", "-qb", "side")
    (repo / "AGENTS.md").write_bytes(with_block(COMMITTED, user=USER.replace(b"one", b"ONE")))
    (repo / "other").write_text("side")
    run(repo, "commit", "-qam", "side")
    run(repo, "checkout", "-q", "main")
    (repo / "other").write_text("main")
    run(repo, "commit", "-qam", "main")
    with Writer(repo, (COMMITTED,)) as writer:
        run(repo, "merge", "side", ok=False)
        writer.facts += (LATER,)
        writer.until(lambda: "merge" in writer.waited)
        before = agents(repo)
        writer.rounds_more()
        assert agents(repo) == before
        run(repo, "checkout", "--theirs", "other")
        run(repo, "commit", "-qam", "merged")
        writer.until(lambda: b"while the stash" in agents(repo))
    assert is_ours(agents(repo))
    assert b"ONE" in agents(repo)


def test_a_lock_holds_the_writer_back(repo: Path, writer: Writer) -> None:
    lock = repo / ".git" / "index.lock"
    lock.write_text("")
    writer.until(lambda: "index.lock" in writer.waited)
    writer.facts += (LATER,)
    writer.rounds_more()
    assert agents(repo) == DIRTY
    lock.unlink()
    writer.until(lambda: agents(repo) != DIRTY)


def test_what_a_colleague_committed_into_the_block_over_several_commits(repo: Path) -> None:
    for line in ("First.", "Second."):
        data = agents(repo).replace(
            b"<!-- agent-bridge:memory:hash", f"- {line}\n\n<!-- agent-bridge:memory:hash".encode()
        )
        (repo / "AGENTS.md").write_bytes(data)
        run(repo, "commit", "-qam", line)
    checkout = git.find_checkout(repo)
    assert checkout is not None
    assert block_text(agents(repo)) is not None
    committed = gitlaw.committed_versions(checkout, "AGENTS.md")
    # The store has forgotten the one fact since: it doesn't come back, and the colleague's lines are found.
    found = gitlaw.foreign_items(agents(repo), (), (), committed)
    assert found == ("- First.\n\n- Second.",)
