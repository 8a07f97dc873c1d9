"""init, plan, sync, share, unshare, eject, review: by the real program, in a real repository."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from .conftest import Program
from .terminal import at_terminal

AGENTS = "# House rules\n\nBe kind.\n"


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in root.rglob("*")
        if "objects" not in path.parts
    }


@pytest.fixture
def repository(program: Program, sealed_home: Path) -> Program:
    """A repository with a tracked AGENTS.md, and homes of Claude Code and Codex."""
    (program.cwd / "AGENTS.md").write_text(AGENTS)
    git(program.cwd, "add", ".")
    git(program.cwd, "commit", "-qm", "start")
    (sealed_home / ".claude").mkdir()
    (sealed_home / ".codex").mkdir()
    return program


@pytest.fixture
def set_up(repository: Program) -> Program:
    """The same, after `init`."""
    done = repository("init", "--yes")
    assert done.code == 0, done.err
    return repository


@pytest.mark.parametrize(
    "words", [["plan"], ["init", "--dry-run"], ["plan", "--json"], ["init"], ["init", "--json"]], ids=" ".join
)
def test_looking_changes_nothing(repository: Program, words: list[str]) -> None:
    before = tree(repository.cwd.parent)
    ran = repository(*words)
    assert ran.code == (2 if words[0] == "init" and "--dry-run" not in words else 0)
    assert tree(repository.cwd.parent) == before


READING = [
    ["list"],
    ["list", "--private", "--json"],
    ["show", "unseen"],
    ["search", "harbour"],
    ["status"],
    ["status", "--memory"],
    ["review"],
    ["plan"],
    ["init", "--dry-run"],
    ["eject", "--dry-run"],
    ["logs"],
    ["service", "status"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_in_a_project_that_is_set_up_changes_nothing(
    set_up: Program, sealed_home: Path, words: list[str]
) -> None:
    """A search may keep its cache, in the user's cache directory; Git's index counts too."""
    set_up("add", "The harbour is north")
    set_up("add", "Ada keeps bees", "--private")
    (set_up.cwd / ".memory" / "unseen.md").write_text("Nobody has looked at this one yet.")
    cache = sealed_home / ".cache"

    def all_but_the_cache() -> dict[str, str]:
        top = set_up.cwd.parent
        inside = str(cache.relative_to(top))
        return {path: found for path, found in tree(top).items() if not path.startswith(inside)}

    before = all_but_the_cache()
    cached = sorted(cache.rglob("*"))
    assert set_up(*words).code in (0, 3)
    assert all_but_the_cache() == before
    assert words[0] == "search" or sorted(cache.rglob("*")) == cached


def test_plan_shows_the_files(repository: Program) -> None:
    assert str(repository.cwd / ".memory") in repository("plan").out
    steps = repository("plan", "--json").json["data"]["steps"]
    assert {"what", "path", "text", "diff"} <= set(steps[0])


def test_sync_brings_a_fact_to_its_readers(set_up: Program) -> None:
    (set_up.cwd / ".memory" / "way.md").write_text("# Way\n\nThe harbour is north.\n")
    assert "harbour" not in (set_up.cwd / "AGENTS.md").read_text()
    synced = set_up("sync")
    assert synced.code == 0, synced.err
    assert f"wrote: {set_up.cwd / 'AGENTS.md'}" in synced.out
    assert (set_up.cwd / "AGENTS.md").read_text().count("The harbour is north.") == 1
    assert f"in line: {set_up.cwd / 'AGENTS.md'}" in set_up("sync").out
    targets = set_up("sync", "--to", "codex", "--json").json["data"]["reports"][0]["targets"]
    assert [target["path"] for target in targets] == [str(set_up.cwd / "AGENTS.md")]
    assert set_up("sync", "--to", "nobody").code == 2


def test_sync_asks_for_init_first(repository: Program) -> None:
    ran = repository("sync")
    assert ran.code == 1
    assert "agent-bridge init" in ran.err


def test_sync_waits_for_git(set_up: Program) -> None:
    (set_up.cwd / ".git" / "MERGE_HEAD").write_text(git(set_up.cwd, "rev-parse", "HEAD"))
    assert "merge" in set_up("add", "The harbour is north").err
    ran = set_up("sync")
    assert ran.code == 4
    assert "merge" in ran.err
    assert f"waits: {set_up.cwd / 'AGENTS.md'}" in ran.out
    assert (set_up.cwd / "AGENTS.md").read_text() == AGENTS


def test_sync_refuses_broken_markers(set_up: Program) -> None:
    set_up("add", "The harbour is north")
    set_up("sync")
    agents = set_up.cwd / "AGENTS.md"
    agents.write_text(agents.read_text().replace("<!-- agent-bridge:memory:end -->\n", ""))
    before = agents.read_text()
    ran = set_up("sync")
    assert ran.code == 4
    assert f"refused: {agents}" in ran.out
    assert str(agents) in ran.err
    assert agents.read_text() == before


def test_unshare_of_a_tracked_fact(set_up: Program) -> None:
    known = set_up.id_of("The harbour is north")
    set_up("sync")
    git(set_up.cwd, "add", "-A")
    git(set_up.cwd, "commit", "-qm", "facts")
    assert known in git(set_up.cwd, "ls-files")
    refused = set_up("unshare", known)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "harbour" in (set_up.cwd / "AGENTS.md").read_text()
    done = set_up("unshare", known, "--yes")
    assert done.code == 0, done.err
    assert "history keeps" in done.err
    assert "harbour" not in (set_up.cwd / "AGENTS.md").read_text()
    git(set_up.cwd, "add", "-A")
    assert known not in git(set_up.cwd, "ls-files")
    assert set_up("list", "--private").out.startswith(known)


def test_unshare_refuses_what_would_not_hold(set_up: Program) -> None:
    known = set_up.id_of("The harbour is north")
    set_up("sync")
    git(set_up.cwd, "add", "-A")
    git(set_up.cwd, "commit", "-qm", "facts")
    (set_up.cwd / ".git" / "MERGE_HEAD").write_text(git(set_up.cwd, "rev-parse", "HEAD"))
    assert set_up("unshare", known, "--yes").code == 4
    (set_up.cwd / ".git" / "MERGE_HEAD").unlink()
    set_up("eject", "--yes")
    refused = set_up("unshare", known, "--yes")
    assert refused.code == 4
    assert "agent-bridge init" in refused.err
    assert not set_up("show", known, "--json").json["data"]["private"]


def test_share_brings_it_back(set_up: Program) -> None:
    known = set_up.id_of("The harbour is north", "--private")
    set_up("sync")
    assert "harbour" not in (set_up.cwd / "AGENTS.md").read_text()
    assert set_up("share", known).code == 0
    assert "harbour" in (set_up.cwd / "AGENTS.md").read_text()
    git(set_up.cwd, "add", "-A")
    assert known in git(set_up.cwd, "ls-files")


def test_a_global_fact_is_not_shared(set_up: Program) -> None:
    known = set_up.id_of("For all", "--scope", "global")
    assert set_up("share", known).code == 2


def test_eject_asks_and_undoes(repository: Program, sealed_home: Path) -> None:
    before = tree(repository.cwd)
    repository("init", "--yes")
    repository("add", "The harbour is north")
    repository("sync")
    assert repository("eject").code == 2
    assert str(repository.cwd / "AGENTS.md") in repository("eject", "--dry-run").out
    assert "harbour" in (repository.cwd / "AGENTS.md").read_text()
    done = repository("eject", "--yes")
    assert done.code == 0, done.err
    after = {path: found for path, found in tree(repository.cwd).items() if not path.startswith(".memory")}
    assert after == before
    assert "harbour" in repository("list").out
    assert repository("eject", "--yes").code == 1
    assert repository("eject", "--yes", "--all").code == 0


def test_review_lists_what_was_written_inside_the_block(set_up: Program) -> None:
    assert set_up("review").out == ""
    set_up("add", "The harbour is north")
    set_up("sync")
    agents = set_up.cwd / "AGENTS.md"
    agents.write_text(
        agents.read_text().replace("The harbour is north", "The harbour is north\n\n- Closed on Sundays")
    )
    set_up("sync")
    found = set_up("review", "--json").json["data"]
    assert found["count"] == 1
    assert "Closed on Sundays" in found["candidates"][0]["text"]
    assert "Closed on Sundays" in set_up("review").out


def test_status_lists_the_project(set_up: Program) -> None:
    ran = set_up("status", "--json")
    assert ran.code == 3
    assert ran.json["data"]["projects"] == [{"root": str(set_up.cwd)}]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 4)])
def test_init_shows_the_plan_and_asks(repository: Program, answer: str, code: int) -> None:
    before = tree(repository.cwd.parent)
    ran = at_terminal(repository, ["init"], answer)
    assert ran.code == code, ran.err
    assert str(repository.cwd / ".memory") in ran.err
    assert f"Set up {repository.cwd}?" in ran.err
    assert (tree(repository.cwd.parent) == before) is (code != 0)


@pytest.mark.parametrize(("answers", "is_private"), [(("y", "y"), True), (("y", "n"), False)])
def test_init_asks_what_becomes_shared(
    repository: Program, sealed_home: Path, answers: tuple[str, ...], is_private: bool
) -> None:
    slug = "".join(letter if letter.isalnum() else "-" for letter in str(repository.cwd))
    native = sealed_home / ".claude" / "projects" / slug / "memory"
    native.mkdir(parents=True)
    (native / "harbour.md").write_text("---\nname: harbour\ntype: project\n---\nThe harbour is north.")
    ran = at_terminal(repository, ["init"], *answers)
    assert ran.code == 0, ran.err
    assert "These become shared" in ran.err
    (fact,) = repository("list", "--json").json["data"]["facts"]
    assert fact["private"] is is_private
    assert ("harbour" in (repository.cwd / "AGENTS.md").read_text()) is not is_private


def test_init_local_keeps_the_memory_out_of_git(repository: Program) -> None:
    assert repository("init", "--yes", "--local").code == 0
    repository("add", "The harbour is north")
    repository("sync")
    git(repository.cwd, "add", "-A")
    assert ".memory" not in git(repository.cwd, "ls-files")
    assert (repository.cwd / "AGENTS.md").read_text() == AGENTS


def test_eject_purge_removes_our_state(set_up: Program, sealed_home: Path) -> None:
    set_up("add", "The harbour is north")
    assert set_up("eject", "--yes", "--purge").code == 0
    state = sealed_home / ".local" / "state" / "agent-bridge"
    assert list((state / "projects").iterdir()) == []
    assert "No project is set up yet" in set_up("status").err
    assert "harbour" in set_up("list").out


def test_status_after_the_last_eject_says_how_to_begin(set_up: Program) -> None:
    assert "No project is set up yet" not in set_up("status").err
    assert set_up("eject", "--yes").code == 0
    assert "No project is set up yet" in set_up("status").err


def test_eject_of_nothing(repository: Program) -> None:
    ran = repository("eject", "--all", "--yes")
    assert (ran.code, ran.out) == (0, "No project is set up; nothing to undo.\n")


def test_a_candidate_is_shown_with_its_file(set_up: Program) -> None:
    set_up("add", "The harbour is north")
    place = set_up.cwd / "AGENTS.md"
    place.write_text(
        place.read_text().replace("### The harbour", "Somebody else's words.\n\n### The harbour")
    )
    set_up("sync")
    (found,) = set_up("review", "--json").json["data"]["candidates"]
    assert "Somebody else's words." in Path(found["file"]).read_text()
    assert found["file"] in set_up("review").out


def test_a_local_memory_becomes_shared_with_nobody(repository: Program) -> None:
    repository("init", "--yes", "--local")
    repository("add", "The harbour is north")
    assert repository("plan", "--json").json["data"]["becomes_shared"] == []


def test_a_command_tells_only_what_keeps_its_change_from_the_agents(set_up: Program) -> None:
    (set_up.cwd / ".memory" / "odd.md").write_bytes(b"\xff\xfeodd")
    assert "odd.md" in set_up("sync").err
    assert set_up("add", "The harbour is north").err == ""
    agents = set_up.cwd / "AGENTS.md"
    agents.write_text(agents.read_text().replace("<!-- agent-bridge:memory:end -->\n", ""))
    assert "marker" in set_up("add", "The airport is south").err


def test_a_project_whose_directory_is_gone_can_be_ejected(set_up: Program, sealed_home: Path) -> None:
    root = set_up.cwd
    root.rename(root.with_name("moved"))
    elsewhere = Program(sealed_home)
    assert elsewhere("eject", "--yes", "--project", str(root.with_name("other"))).code == 2
    ran = elsewhere("eject", "--yes", "--project", str(root))
    assert ran.code == 0, ran.err
    assert elsewhere("eject", "--all", "--yes").out == "No project is set up; nothing to undo.\n"
    assert not root.exists()


def test_other_variables_than_init_saw_are_told(set_up: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "CODEX_HOME" not in set_up("sync").err
    monkeypatch.setenv("CODEX_HOME", str(set_up.cwd.parent / "elsewhere"))
    done = set_up("sync")
    assert "CODEX_HOME" in done.err
    assert "`init` saw" in done.err
    assert not (set_up.cwd.parent / "elsewhere").exists()


def test_an_extra_file_is_asked_for_by_name_and_taken_back(set_up: Program) -> None:
    asked = set_up("sync", "--to", "codex", "--json").json["data"]
    assert asked["requested"] == ["codex"]
    assert set_up("sync", "--json").json["data"]["requested"] == ["codex"]
    assert set_up("sync", "--not-to", "codex", "--json").json["data"]["requested"] == []
    assert set_up("sync", "--to", "codex", "--not-to", "all").code == 2


def test_an_extra_file_is_named_when_it_comes_and_when_it_goes(
    repository: Program, sealed_home: Path
) -> None:
    (sealed_home / ".gemini").mkdir()
    assert repository("init", "--yes").code == 0
    assert repository("add", "The harbour is north").code == 0
    asked = repository("sync", "--to", "gemini")
    own = repository.cwd / ".gemini" / "memory-bridge.md"
    assert f"wrote: {own} (Gemini CLI)" in asked.out
    assert f"in line: {repository.cwd / 'GEMINI.md'} (Gemini CLI)" in asked.out
    taken = repository("sync", "--not-to", "gemini")
    assert f"removed: {own}" in taken.out
    assert not own.exists()
    assert "()" not in asked.out + taken.out


def test_files_that_are_not_made_yet_are_not_in_line(set_up: Program, sealed_home: Path) -> None:
    place = sealed_home / ".codex" / "AGENTS.md"
    assert str(place) not in set_up("sync").out
    targets = set_up("sync", "--json").json["data"]["reports"][1]["targets"]
    assert {one["path"]: one["state"] for one in targets}[str(place)] == "not made"
    assert set_up("add", "Be brief", "--scope", "global").code == 0
    assert f"in line: {place}" in set_up("sync").out


def test_init_says_each_thing_once(repository: Program) -> None:
    (repository.cwd / "AGENTS.md").write_text("# Rules\n")
    (repository.cwd / "CLAUDE.md").write_text("@AGENTS.md\n")
    ran = at_terminal(repository, ["init"], "y")
    assert ran.code == 0, ran.err
    assert ran.err.count("Claude Code gets AGENTS.md by an import") == 1
