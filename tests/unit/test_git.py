"""Git questions, asked of real repositories."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from agent_bridge import git
from agent_bridge.git import program
from agent_bridge.git.program import clean_environment

pytestmark = pytest.mark.usefixtures("sealed_home")


def run(where: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout


def repository(path: Path) -> Path:
    path.mkdir(parents=True)
    run(path, "init", "-q", "-b", "main")
    (path / "AGENTS.md").write_text("hello\n")
    run(path, "add", "AGENTS.md")
    run(path, "commit", "-qm", "first")
    return path


def checkout(path: Path) -> git.Checkout:
    found = git.find_checkout(path)
    assert found is not None
    return found


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path.resolve() / "repo")


class TestFindCheckout:
    def test_top_sub_directory_file_and_missing_path_give_the_same(self, repo: Path) -> None:
        (repo / "sub").mkdir()
        expected = git.Checkout(repo, repo / ".git", repo / ".git", repo)
        for place in (repo, repo / "sub", repo / "AGENTS.md", repo / "not" / "there"):
            assert git.find_checkout(place) == expected
        assert expected.is_main

    def test_a_symlinked_path_gives_the_real_one(self, repo: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(repo)
        assert checkout(tmp_path / "link").root == repo

    @pytest.mark.parametrize("name", ["line\nbreak", "blank end ", "tab\t", "ümläut", "-dash", "quo'te\""])
    def test_odd_names(self, tmp_path: Path, name: str) -> None:
        odd = repository(tmp_path.resolve() / name)
        assert checkout(odd).root == odd
        assert git.tracked(checkout(odd), [odd / "AGENTS.md"]) == {odd / "AGENTS.md"}

    def test_a_name_that_is_no_text(self, tmp_path: Path) -> None:
        odd = repository(tmp_path.resolve() / os.fsdecode(b"a\xff"))
        assert checkout(odd).root == odd

    def test_none_outside_with_a_reason(self, tmp_path: Path) -> None:
        assert git.find_checkout(tmp_path) is None
        assert "no Git repository" in git.why_no_checkout(tmp_path)

    def test_none_in_a_bare_repository_and_inside_dot_git(self, repo: Path, tmp_path: Path) -> None:
        run(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
        assert git.find_checkout(tmp_path / "bare.git") is None
        assert "bare" in git.why_no_checkout(tmp_path / "bare.git")
        assert git.find_checkout(repo / ".git" / "info") is None
        assert "inside a `.git`" in git.why_no_checkout(repo / ".git" / "info")

    def test_a_git_file_that_leads_nowhere_is_told(self, tmp_path: Path) -> None:
        (tmp_path / ".git").write_text("gitdir: /nowhere\n")
        assert git.find_checkout(tmp_path) is None
        assert "leads to no Git repository" in git.why_no_checkout(tmp_path)

    def test_worktree_of_a_checkout_and_of_a_bare_repository(self, repo: Path, tmp_path: Path) -> None:
        base = tmp_path.resolve()
        run(repo, "worktree", "add", "-q", str(base / "tree"))
        tree = checkout(base / "tree")
        assert (tree.root, tree.common_dir, tree.main_root) == (base / "tree", repo / ".git", repo)
        assert tree.git_dir == repo / ".git" / "worktrees" / "tree"
        assert not tree.is_main
        assert git.exclude_file(tree) == repo / ".git" / "info" / "exclude"

        run(base, "clone", "-q", "--bare", str(repo), "bare.git")
        run(base / "bare.git", "worktree", "add", "-q", str(base / "other"), "main")
        other = checkout(base / "other")
        assert (other.common_dir, other.main_root) == (base / "bare.git", None)
        assert git.worktrees(other) == [base / "other"]

    def test_submodule_and_its_worktree(self, repo: Path, tmp_path: Path) -> None:
        outer = repository(tmp_path.resolve() / "outer")
        run(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo), "inner")
        inner = checkout(outer / "inner")
        assert inner.root == inner.main_root == outer / "inner"
        assert inner.git_dir == inner.common_dir == outer / ".git" / "modules" / "inner"
        run(outer / "inner", "worktree", "add", "-q", str(outer.parent / "side"))
        side = checkout(outer.parent / "side")
        assert side.main_root == outer / "inner"
        assert git.worktrees(side) == [outer / "inner", outer.parent / "side"]

    def test_separate_git_directory(self, tmp_path: Path) -> None:
        base = tmp_path.resolve()
        (base / "tree").mkdir()
        run(base / "tree", "init", "-q", f"--separate-git-dir={base / 'elsewhere'}")
        found = checkout(base / "tree")
        assert (found.root, found.common_dir, found.main_root) == (
            base / "tree",
            base / "elsewhere",
            base / "tree",
        )

    def test_variables_that_point_elsewhere_are_ignored(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = repository(tmp_path.resolve() / "other")
        for name, value in {
            "GIT_DIR": other / ".git",
            "GIT_WORK_TREE": other,
            "GIT_INDEX_FILE": other / "nowhere",
            "GIT_COMMON_DIR": other / ".git",
        }.items():
            monkeypatch.setenv(name, str(value))
        assert checkout(repo).root == repo
        assert git.tracked(checkout(repo), [repo / "AGENTS.md"]) == {repo / "AGENTS.md"}

    def test_without_git_none_and_the_reason(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        assert git.find_checkout(repo) is None
        assert git.why_no_checkout(repo) == (
            f"{repo} is a Git repository, but there is no `git` program to ask about it."
        )
        assert git.version() == ()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_repository_of_somebody_else_is_refused_with_the_remedy(self, repo: Path) -> None:
        for place in (repo, repo / ".git"):
            os.chown(place, 12345, 12345)
        with pytest.raises(git.GitRefusedError, match=r"safe\.directory"):
            git.find_checkout(repo)
        assert "another user" in git.why_no_checkout(repo)

    def test_a_broken_configuration_is_an_error_not_an_absence(self, repo: Path) -> None:
        with (repo / ".git" / "config").open("a") as config:
            config.write("[broken\n")
        with pytest.raises(git.GitError, match="bad config"):
            git.find_checkout(repo)


def test_a_git_that_hangs_is_an_error_after_the_time_limit(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "git"
    script.write_text("#!/bin/sh\nPATH=/usr/bin:/bin exec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program, "TIMEOUT_S", 0.2)
    with pytest.raises(git.GitError, match="didn't answer"):
        git.find_checkout(repo)


def test_environment_keeps_the_users_configuration_and_drops_the_rest() -> None:
    given = {
        "PATH": "/bin",
        "GIT_DIR": "/x",
        "GIT_CONFIG_GLOBAL": "/g",
        "GIT_CONFIG_COUNT": "1",
        "LC_ALL": "de",
    }
    cleaned = clean_environment(given)
    assert cleaned["PATH"] == "/bin"
    assert cleaned["GIT_CONFIG_GLOBAL"] == "/g"
    assert cleaned["LC_ALL"] == "C"
    assert cleaned["GIT_OPTIONAL_LOCKS"] == "0"
    assert not {"GIT_DIR", "GIT_CONFIG_COUNT"} & cleaned.keys()


def test_no_program_of_the_repository_is_run(repo: Path) -> None:
    witness = repo.parent / "witness"
    script = repo.parent / "script"
    script.write_text(f"#!/bin/sh\ntouch {witness}\n")
    script.chmod(0o755)
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    (repo / ".git" / "hooks" / "post-index-change").write_bytes(script.read_bytes())
    (repo / ".git" / "hooks" / "post-index-change").chmod(0o755)
    run(repo, "config", "core.fsmonitor", str(script))
    run(repo, "config", "filter.f.clean", str(script))
    (repo / ".gitattributes").write_text("* filter=f\n")
    here = checkout(repo)
    witness.unlink(missing_ok=True)
    git.tracked(here, [repo / "AGENTS.md"])
    git.ignored(here, [repo / "AGENTS.md"])
    git.addable(here, repo)
    git.list_instruction_files(here, ["AGENTS.md"])
    git.untrack(here, [repo / "AGENTS.md"])
    assert not witness.exists()


class TestWorktrees:
    def test_main_first_and_removed_ones_left_out(self, repo: Path, tmp_path: Path) -> None:
        base = tmp_path.resolve()
        for name in ("zwei", "eins", "line\nbreak", "gone"):
            run(repo, "worktree", "add", "-q", "--detach", str(base / name))
        (base / "gone" / ".git").unlink()
        found = git.worktrees(checkout(base / "zwei"))
        assert found[0] == repo
        assert set(found) == {repo, base / "zwei", base / "eins", base / "line\nbreak"}
        assert set(git.worktrees(checkout(repo))) == set(found)


class TestActivity:
    @pytest.mark.parametrize(
        ("name", "work"),
        [
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("MERGE_AUTOSTASH", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("BISECT_LOG", "bisect"),
            ("index.lock", "index.lock"),
        ],
    )
    def test_signs(self, repo: Path, name: str, work: str) -> None:
        here = checkout(repo)
        assert git.activity(here) is None
        (repo / ".git" / name).write_text("")
        assert git.activity(here) == work

    def test_real_merge_conflict_in_a_worktree_does_not_stop_the_main_checkout(
        self, repo: Path, tmp_path: Path
    ) -> None:
        tree = tmp_path.resolve() / "tree"
        run(repo, "worktree", "add", "-q", "-b", "side", str(tree))
        for place, text in ((repo, "ours\n"), (tree, "theirs\n")):
            (place / "AGENTS.md").write_text(text)
            run(place, "commit", "-qam", text)
        run(tree, "merge", "main", ok=False)
        assert git.activity(checkout(tree)) == "merge"
        assert git.activity(checkout(repo)) is None
        run(tree, "merge", "--abort")
        assert git.activity(checkout(tree)) is None

    def test_bisect_for_real(self, repo: Path) -> None:
        run(repo, "bisect", "start")
        assert git.activity(checkout(repo)) == "bisect"
        run(repo, "bisect", "reset")
        assert git.activity(checkout(repo)) is None

    def test_a_lock_left_behind_is_told_and_stays(self, repo: Path) -> None:
        lock = repo / ".git" / "index.lock"
        here = checkout(repo)
        assert git.stale_lock(here, now=time.time()) is None
        lock.write_text("")
        assert git.stale_lock(here, now=lock.stat().st_mtime + 599) is None
        told = git.stale_lock(here, now=lock.stat().st_mtime + 720)
        assert told is not None
        assert "12 minutes" in told
        assert lock.exists()


ODD = [
    "plain.md",
    "with blank.md",
    "!bang.md",
    "#hash.md",
    "[a].md",
    "end ",
    "ümläut.md",
    "st*r",
    "back\\slash",
]
ODD += ["line\nbreak.md", "-dash", ":(glob)x", os.fsdecode(b"byte\xff.md")]


class TestIndex:
    def test_tracked_and_ignored_by_exact_name(self, repo: Path) -> None:
        for name in ODD:
            (repo / name).write_text("x")
        (repo / "[a].md").rename(repo / "a.md")  # the pattern "[a].md" would match it
        (repo / ".gitignore").write_text("*.md\n")
        run(repo, "--literal-pathspecs", "add", "-f", "--", *(name for name in ODD if name != "[a].md"))
        here = checkout(repo)
        paths = [repo / name for name in ODD]
        assert git.tracked(here, paths) == set(paths) - {repo / "[a].md"}
        assert git.tracked(here, [repo / "st", repo.parent / "elsewhere", repo / "no" / "such"]) == set()
        assert git.ignored(here, paths) == {repo / "[a].md"}
        assert git.ignored(here, [repo / "new.md", repo / "new.txt", repo.parent]) == {repo / "new.md"}
        assert git.tracked_below(here, repo) == git.tracked(here, [*paths, repo / "AGENTS.md"])

    def test_relative_paths_and_directory_links(self, repo: Path) -> None:
        (repo / "real").mkdir()
        (repo / "real" / "x.md").write_text("x")
        (repo / "link").symlink_to("real")
        run(repo, "add", "-A")
        here = checkout(repo)
        asked = [Path("real/x.md"), repo / "link" / "x.md", repo / "link"]
        assert git.tracked(here, asked) == set(asked)
        assert git.ignored(here, asked) == set()

    def test_more_paths_than_a_command_line_holds(self, repo: Path) -> None:
        paths = [repo / f"{'x' * 200}-{n}" for n in range(12000)]
        assert git.tracked(checkout(repo), [*paths, repo / "AGENTS.md"]) == {repo / "AGENTS.md"}

    def test_addable_sees_in_tree_rules_and_the_local_file(self, repo: Path) -> None:
        here = checkout(repo)
        (repo / ".memory").mkdir()
        for name in ("a.md", "b.md", "c.txt"):
            (repo / ".memory" / name).write_text("x")
        git.exclude_file(here).write_text("/.memory/*.md\n")
        assert git.addable(here, repo / ".memory") == {repo / ".memory" / "c.txt"}
        (repo / ".gitignore").write_text("!b.md\n")
        assert git.addable(here, repo / ".memory") == {repo / ".memory" / "c.txt", repo / ".memory" / "b.md"}

    def test_untrack_leaves_the_file(self, repo: Path) -> None:
        here = checkout(repo)
        before = git.index_stamp(here)
        git.untrack(here, [repo / "AGENTS.md", repo / "never tracked"])
        assert git.tracked(here, [repo / "AGENTS.md"]) == set()
        assert (repo / "AGENTS.md").read_text() == "hello\n"
        assert git.index_stamp(here) != before

    def test_questions_leave_the_index_alone(self, repo: Path) -> None:
        here = checkout(repo)
        os.utime(repo / "AGENTS.md", (1, 1))  # stat data are stale: a refresh would write
        before = (git.index_stamp(here), (repo / ".git" / "index").read_bytes())
        git.tracked(here, [repo / "AGENTS.md"])
        git.addable(here, repo)
        git.list_instruction_files(here, ["AGENTS.md"])
        assert (git.index_stamp(here), (repo / ".git" / "index").read_bytes()) == before

    def test_instruction_files_anywhere_but_ignored(self, repo: Path) -> None:
        for place in ("sub/deep", "node_modules/x", "plain"):
            (repo / place).mkdir(parents=True)
            (repo / place / "AGENTS.md").write_text("x")
        (repo / "plain" / "NOT-AGENTS.md").write_text("x")
        (repo / ".gitignore").write_text("node_modules/\n")
        found = git.list_instruction_files(checkout(repo), ["AGENTS.md", "CLAUDE.md"])
        assert found == [repo / "AGENTS.md", repo / "plain/AGENTS.md", repo / "sub/deep/AGENTS.md"]
        assert git.list_instruction_files(checkout(repo), []) == []

    def test_attribute(self, repo: Path) -> None:
        (repo / ".gitattributes").write_text("AGENTS.md merge=union\n")
        paths = [repo / "AGENTS.md", repo / "other\nname"]
        assert git.attribute(checkout(repo), "merge", paths) == {
            paths[0]: "union",
            paths[1]: "unspecified",
        }


class TestRevisions:
    def test_show(self, repo: Path) -> None:
        here = checkout(repo)
        (repo / "AGENTS.md").write_bytes(b"changed")
        assert git.show(here, "HEAD", "AGENTS.md") == b"hello\n"
        assert git.show(here, "HEAD", "nothing") is None
        assert git.show(here, "nonsense", "AGENTS.md") is None
        with pytest.raises(ValueError, match="not a revision"):
            git.show(here, "--help", "AGENTS.md")

    def test_before_the_first_commit(self, tmp_path: Path) -> None:
        run(tmp_path, "init", "-q")
        here = checkout(tmp_path)
        assert git.revisions(here) == ()
        assert git.history(here, "AGENTS.md") == ()
        assert git.show(here, "HEAD", "AGENTS.md") is None
        assert git.stashes(here) == []

    def test_head_parents_and_what_is_merged_in(self, repo: Path) -> None:
        run(repo, "branch", "side")
        (repo / "AGENTS.md").write_text("ours\n")
        run(repo, "commit", "-qam", "ours")
        run(repo, "checkout", "-q", "side")
        (repo / "AGENTS.md").write_text("theirs\n")
        run(repo, "commit", "-qam", "theirs")
        run(repo, "merge", "main", ok=False)
        texts = [git.show(checkout(repo), rev, "AGENTS.md") for rev in git.revisions(checkout(repo))]
        assert texts == [b"theirs\n", b"hello\n", b"ours\n"]
        assert len(git.history(checkout(repo), "AGENTS.md")) == 2


class TestStashes:
    def test_a_stash_and_what_it_holds(self, repo: Path) -> None:
        here = checkout(repo)
        assert git.stashes(here) == []
        (repo / "AGENTS.md").write_text("rendered\n")
        (repo / "b").write_text("b")
        run(repo, "add", "b")
        run(repo, "stash")
        (stash,) = git.stashes(here)
        assert abs(stash.made_at - time.time()) < 60
        assert stash.name == "stash@{0}"
        assert git.stash_holds(here, stash, "AGENTS.md") == b"rendered\n"
        assert git.stash_holds(here, stash, "nothing") is None
        run(repo, "stash", "pop")
        assert git.stashes(here) == []

    def test_a_file_that_the_stash_leaves_as_it_was(self, repo: Path) -> None:
        (repo / "b").write_text("b")
        run(repo, "add", "b")
        run(repo, "stash")
        (stash,) = git.stashes(checkout(repo))
        assert git.stash_holds(checkout(repo), stash, "AGENTS.md") is None
        assert git.stash_holds(checkout(repo), stash, "b") == b"b"

    def test_packed_references_and_two_stashes(self, repo: Path) -> None:
        for text in ("one\n", "two\n"):
            (repo / "AGENTS.md").write_text(text)
            run(repo, "stash")
        run(repo, "pack-refs", "--all")
        held = [git.stash_holds(checkout(repo), s, "AGENTS.md") for s in git.stashes(checkout(repo))]
        assert held == [b"two\n", b"one\n"]

    def test_autostash_of_a_stopped_rebase(self, repo: Path) -> None:
        (repo / "AGENTS.md").write_text("rendered\n")
        run(repo, "rebase", "--autostash", "--root", "--exec", "test -e go-on", ok=False)
        (stash,) = git.stashes(checkout(repo))
        assert stash.name == "rebase-merge/autostash"
        assert git.stash_holds(checkout(repo), stash, "AGENTS.md") == b"rendered\n"
        assert git.activity(checkout(repo)) == "rebase"
        run(repo, "rebase", "--continue")
        assert (repo / "AGENTS.md").read_text() == "rendered\n"
        assert git.stashes(checkout(repo)) == []


class TestConfig:
    def test_set_get_unset_leaves_the_file_as_it_was(self, repo: Path) -> None:
        here = checkout(repo)
        before = (repo / ".git" / "config").read_bytes()
        assert git.config_get(here, "merge.agent-bridge.driver") is None
        value = "p='/a b/x'; \"$p\" %O\\; # no comment"
        git.config_set(here, "merge.agent-bridge.driver", value)
        assert git.config_get(here, "merge.agent-bridge.driver") == value
        git.config_set(here, "merge.agent-bridge.driver", "other")
        assert git.config_get(here, "merge.agent-bridge.driver") == "other"
        git.config_unset(here, "merge.agent-bridge.driver")
        git.config_unset(here, "merge.agent-bridge.driver")
        assert (repo / ".git" / "config").read_bytes() == before

    def test_a_worktree_and_its_main_checkout_share_it(self, repo: Path, tmp_path: Path) -> None:
        run(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
        git.config_set(checkout(tmp_path / "tree"), "a.b", "c")
        assert git.config_get(checkout(repo), "a.b") == "c"


def test_version_is_numbers() -> None:
    assert git.version() >= (2, 20)
