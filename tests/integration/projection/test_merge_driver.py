"""The merge driver under real Git: merge, rebase, cherry-pick, stash; and without its program."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent_bridge import git
from agent_bridge.harnesses.managed_block import find_block, is_ours, items, render_block, splice
from agent_bridge.projection import gitlaw, merge_driver
from agent_bridge.projection.merge_driver import Merge, attribute_lines, driver_command, merge, merge_file

pytestmark = pytest.mark.usefixtures("sealed_home")

SERVICE = Path(merge_driver.__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fact:
    id: str
    title: str
    body: str


BASE = Fact("base", "Base", "Known to both.")
OURS = Fact("ours", "Ours", "Learnt on main.")
THEIRS = Fact("theirs", "Theirs", "Learnt on side.")
USER = b"# Rules\n\none\ntwo\nthree\nfour\nfive\nsix\n"


def run(where: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def block(*facts: Fact) -> str:
    return render_block((), facts).body


def with_block(user: bytes, *facts: Fact) -> bytes:
    return splice(user, block(*facts)).data


def outside(data: bytes) -> bytes:
    span = find_block(data)
    assert span is not None
    return data[: span.start] + data[span.end :]


def titles(data: bytes) -> list[str]:
    span = find_block(data)
    assert span is not None
    return [item.title for item in items(span.body)]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An `agent-bridge` that knows the one verb, at a path that the shell would take apart."""
    path = tmp_path / 'it\'s a % "place" $HOME' / "agent-bridge"
    path.parent.mkdir()
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SERVICE)!r})\n"
        "from agent_bridge.projection.merge_driver import main\n"
        "assert sys.argv[1] == 'merge-driver'\nsys.exit(main(sys.argv[2:]))\n"
    )
    path.chmod(0o755)
    return path


def checkout(repo: Path) -> git.Checkout:
    found = git.find_checkout(repo)
    assert found is not None
    return found


def install(repo: Path, program: Path, *names: str) -> None:
    here = checkout(repo)
    for key, value in merge_driver.settings(program, git.version()):
        git.config_set(here, key, value)
    attributes = git.attributes_file(here)
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("\n".join(attribute_lines(names or ("AGENTS.md",))) + "\n", "utf-8")


@pytest.fixture
def repo(tmp_path: Path, program: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    run(path, "init", "-q", "-b", "main")
    run(path, "config", "core.autocrlf", "false")
    commit(path, with_block(USER, BASE), "base")
    install(path, program)
    return path


def commit(repo: Path, data: bytes, message: str, name: str = "AGENTS.md") -> None:
    (repo / name).write_bytes(data)
    run(repo, "add", "-f", name)
    run(repo, "commit", "-qm", message)


def two_branches(repo: Path, ours: bytes, theirs: bytes, name: str = "AGENTS.md") -> None:
    """`side` has `theirs`, `main` has `ours` and is checked out."""
    run(repo, "checkout", "-qb", "side")
    commit(repo, theirs, "theirs", name)
    run(repo, "checkout", "-q", "main")
    commit(repo, ours, "ours", name)


OUR_FILE = with_block(USER.replace(b"one", b"ONE"), BASE, OURS)
THEIR_FILE = with_block(USER.replace(b"six", b"SIX"), BASE, THEIRS)
BOTH_EDITS = USER.replace(b"one", b"ONE").replace(b"six", b"SIX")


class TestWithTheProgram:
    def test_without_the_driver_the_same_merge_conflicts(self, repo: Path) -> None:
        git.attributes_file(checkout(repo)).unlink()
        two_branches(repo, OUR_FILE, THEIR_FILE)
        assert "CONFLICT" in run(repo, "merge", "side", ok=False)

    def test_two_branches_that_each_added_facts(self, repo: Path) -> None:
        for branch, data, fact in (("side", THEIR_FILE, "b"), ("main", OUR_FILE, "a")):
            run(repo, "checkout", "-q", *(["-b"] if branch == "side" else []), branch)
            (repo / ".memory" / "entries").mkdir(parents=True, exist_ok=True)
            commit(repo, b"fact\n", fact, f".memory/entries/20260101-0001-x-{fact}.md")
            commit(repo, data, branch)
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, OURS)
        assert len(list((repo / ".memory" / "entries").iterdir())) == 2
        assert run(repo, "status", "--porcelain") == ""

    @pytest.mark.parametrize(
        ("ours", "theirs", "left"),
        [
            pytest.param((), (BASE, THEIRS), (), id="ours deleted the last fact"),
            pytest.param((BASE, OURS), (), (BASE, OURS), id="theirs deleted the last fact"),
            pytest.param((), (), (), id="both did"),
        ],
    )
    def test_a_side_that_took_its_block_away(
        self, repo: Path, ours: tuple[Fact, ...], theirs: tuple[Fact, ...], left: tuple[Fact, ...]
    ) -> None:
        def version(text: bytes, facts: tuple[Fact, ...]) -> bytes:
            return with_block(text, *facts) if facts else text

        two_branches(
            repo, version(USER.replace(b"one", b"ONE"), ours), version(USER.replace(b"six", b"SIX"), theirs)
        )
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == version(BOTH_EDITS, left)

    def test_what_somebody_wrote_into_a_block_that_we_took_away(self, repo: Path) -> None:
        theirs = with_block(USER, BASE).replace(b"### ", b"Call Ann first.\n\n### ", 1)
        two_branches(repo, USER, theirs)
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == theirs

    def test_rebase(self, repo: Path) -> None:
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "rebase", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, THEIRS)

    def test_cherry_pick(self, repo: Path) -> None:
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "cherry-pick", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, OURS)

    def test_revert(self, repo: Path) -> None:
        commit(repo, OUR_FILE, "ours")
        commit(repo, with_block(BOTH_EDITS, BASE, OURS, THEIRS), "next")
        run(repo, "revert", "--no-edit", "HEAD~1")
        assert outside((repo / "AGENTS.md").read_bytes()) == outside(THEIR_FILE)

    @pytest.mark.parametrize("command", [("stash", "pop"), ("stash", "apply")])
    def test_stash_upon_a_newer_head(self, repo: Path, command: tuple[str, str]) -> None:
        (repo / "AGENTS.md").write_bytes(OUR_FILE)
        run(repo, "stash")
        commit(repo, THEIR_FILE, "theirs")
        run(repo, *command)
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, THEIRS)

    @pytest.mark.parametrize("how", [("--rebase",), ("--no-rebase", "--no-edit")])
    def test_pull_with_autostash(self, repo: Path, tmp_path: Path, how: tuple[str, ...]) -> None:
        run(tmp_path, "clone", "-q", str(repo), "colleague")
        commit(tmp_path / "colleague", THEIR_FILE, "theirs")
        commit(repo, b"x", "own commit", "other")
        (repo / "AGENTS.md").write_bytes(OUR_FILE)
        run(repo, "pull", "-q", "--autostash", *how, str(tmp_path / "colleague"), "main")
        assert outside((repo / "AGENTS.md").read_bytes()) == outside(with_block(BOTH_EDITS, BASE))
        assert git.stashes(checkout(repo)) == []
        assert is_ours((repo / "AGENTS.md").read_bytes())

    def test_a_conflict_of_the_users_own_text_has_normal_markers_and_leaves_the_block_alone(
        self, repo: Path
    ) -> None:
        two_branches(
            repo,
            with_block(USER.replace(b"six", b"6"), BASE, OURS),
            with_block(USER.replace(b"six", b"VI"), BASE, THEIRS),
        )
        assert "CONFLICT (content)" in run(repo, "merge", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        assert data.startswith(USER.replace(b"six\n", b""))
        assert b"6\n=======\nVI\n>>>>>>> " in data
        assert data.count(b"<<<<<<< ") == 1
        assert titles(data) == ["Base", "Ours"]
        assert is_ours(data)
        assert gitlaw.conflict_across(data) is None
        assert run(repo, "ls-files", "-u").count("AGENTS.md") == 3

    def test_conflicts_close_above_and_below_do_not_swallow_the_block(self, repo: Path) -> None:
        def around(above: bytes, below: bytes, *facts: Fact) -> bytes:
            return with_block(above + b"\n", *facts) + below + b"\n"

        commit(repo, around(b"a", b"b", BASE), "closer")
        two_branches(repo, around(b"a1", b"b1", OURS), around(b"a2", b"b2", THEIRS))
        run(repo, "merge", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        assert data.count(b"<<<<<<< ") == 2
        assert gitlaw.conflict_across(data) is None
        assert titles(data) == ["Ours"]

    @pytest.mark.parametrize("style", ["diff3", "merge"])
    def test_the_conflict_style_of_the_user(self, repo: Path, style: str) -> None:
        run(repo, "config", "merge.conflictStyle", style)
        two_branches(repo, with_block(b"ours\n", BASE, OURS), with_block(b"theirs\n", BASE, THEIRS))
        run(repo, "merge", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        assert (b"||||||| " in data) is (style == "diff3")
        assert is_ours(data)

    def test_crlf_files(self, repo: Path) -> None:
        crlf = {name: data.replace(b"\n", b"\r\n") for name, data in (("o", OUR_FILE), ("t", THEIR_FILE))}
        commit(repo, with_block(USER, BASE).replace(b"\n", b"\r\n"), "crlf")
        two_branches(repo, crlf["o"], crlf["t"])
        run(repo, "merge", "-q", "side")
        merged = with_block(BOTH_EDITS, BASE, OURS).replace(b"\n", b"\r\n")
        assert (repo / "AGENTS.md").read_bytes() == merged

    def test_autocrlf(self, repo: Path) -> None:
        run(repo, "config", "core.autocrlf", "true")
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "merge", "-q", "side")
        merged = with_block(BOTH_EDITS, BASE, OURS).replace(b"\n", b"\r\n")
        assert (repo / "AGENTS.md").read_bytes() == merged

    def test_both_sides_got_their_first_block(self, repo: Path) -> None:
        commit(repo, USER, "no block yet")
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, OURS)

    def test_only_one_side_has_a_block(self, repo: Path) -> None:
        commit(repo, USER, "no block yet")
        two_branches(repo, USER.replace(b"one", b"ONE"), THEIR_FILE)
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, THEIRS)

    def test_a_colleagues_line_in_the_other_sides_block_is_carried_over_and_found(self, repo: Path) -> None:
        by_hand = THEIR_FILE.replace(
            b"<!-- agent-bridge:memory:hash", b"- By hand.\n\n<!-- agent-bridge:memory:hash"
        )
        two_branches(repo, OUR_FILE, by_hand)
        run(repo, "merge", "-q", "side")
        data = (repo / "AGENTS.md").read_bytes()
        assert outside(data) == outside(with_block(BOTH_EDITS, BASE, OURS))
        assert not is_ours(data)
        committed = gitlaw.committed_versions(checkout(repo), "AGENTS.md")
        found = gitlaw.foreign_items(data, (), (BASE, OURS, THEIRS), committed)
        assert found == ("- By hand.",)

    def test_broken_markers_are_merged_as_git_would(self, repo: Path) -> None:
        dangling = b"<!-- agent-bridge:memory:start -->\n" + USER
        commit(repo, dangling, "dangling")
        two_branches(repo, dangling.replace(b"one", b"ONE"), dangling.replace(b"six", b"SIX"))
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == b"<!-- agent-bridge:memory:start -->\n" + BOTH_EDITS

    def test_a_criss_cross_history(self, repo: Path) -> None:
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "branch", "main-1")
        run(repo, "merge", "-q", "side")
        run(repo, "checkout", "-q", "side")
        run(repo, "merge", "-q", "main-1")
        commit(repo, with_block(BOTH_EDITS.replace(b"three", b"3"), BASE, THEIRS), "more on side")
        run(repo, "checkout", "-q", "main")
        commit(repo, with_block(BOTH_EDITS.replace(b"four", b"4"), BASE, OURS), "more on main")
        run(repo, "merge", "-q", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        assert is_ours(data)
        assert titles(data) == ["Base", "Ours"]

    def test_from_a_sub_directory_and_in_a_worktree(self, repo: Path, tmp_path: Path) -> None:
        two_branches(repo, OUR_FILE, THEIR_FILE)
        run(repo, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "third", "main")
        (tmp_path / "tree" / "sub").mkdir()
        run(tmp_path / "tree" / "sub", "merge", "-q", "side")
        assert (tmp_path / "tree" / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE, OURS)
        assert sorted(p.name for p in (tmp_path / "tree").iterdir()) == [".git", "AGENTS.md", "sub"]

    @pytest.mark.parametrize(
        "name", ["with blank.md", "[a].md", 'quo"te.md', "back\\slash.md", "ümläut #!.md"]
    )
    def test_odd_names(self, repo: Path, program: Path, name: str) -> None:
        install(repo, program, name)
        assert git.attribute(checkout(repo), "merge", [repo / name, repo / "a.md"]) == {
            repo / name: "agent-bridge",
            repo / "a.md": "unspecified",
        }
        commit(repo, with_block(USER, BASE), "odd", name)
        two_branches(repo, OUR_FILE, THEIR_FILE, name)
        run(repo, "merge", "-q", "side")
        assert (repo / name).read_bytes() == with_block(BOTH_EDITS, BASE, OURS)


BROKEN = {
    "missing": None,
    "not executable": "",
    "an interpreter that is gone": "#!/nowhere/python\n",
    "a broken installation": "#!/bin/sh\nexit 1\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "an older version without the verb": "#!/bin/sh\nexit 2\n",
}


class TestWithoutTheProgram:
    @pytest.mark.parametrize("state", BROKEN)
    def test_gits_own_merge_with_normal_markers(self, repo: Path, program: Path, state: str) -> None:
        script = BROKEN[state]
        program.unlink()
        if script is not None:
            program.write_text(script)
            program.chmod(0o755 if script else 0o644)
        two_branches(
            repo,
            with_block(USER.replace(b"one", b"1"), BASE),
            with_block(USER.replace(b"one", b"I"), BASE),
        )
        assert "CONFLICT (content)" in run(repo, "merge", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        labels = (b"HEAD", b"side") if git.version() >= (2, 44) else (b"ours", b"theirs")
        conflict = b"<<<<<<< %b\n1\n=======\nI\n>>>>>>> %b\n" % labels
        assert data == with_block(USER.replace(b"one\n", conflict), BASE)
        run(repo, "merge", "--abort")

    def test_a_clean_merge_stays_clean(self, repo: Path, program: Path) -> None:
        program.unlink()
        two_branches(
            repo,
            with_block(USER.replace(b"one", b"ONE"), BASE),
            with_block(USER.replace(b"six", b"SIX"), BASE),
        )
        run(repo, "merge", "-q", "side")
        assert (repo / "AGENTS.md").read_bytes() == with_block(BOTH_EDITS, BASE)

    def test_a_conflict_in_the_block_can_be_judged_and_rendered_away(self, repo: Path, program: Path) -> None:
        program.unlink()
        two_branches(repo, with_block(USER, BASE, OURS), with_block(USER, BASE, THEIRS))
        run(repo, "merge", "side", ok=False)
        data = (repo / "AGENTS.md").read_bytes()
        assert b"<<<<<<< " in data
        committed = gitlaw.committed_versions(checkout(repo), "AGENTS.md")
        assert gitlaw.foreign_items(data, (), (BASE,), committed) == ()
        assert splice(data, block(BASE)).data == with_block(USER, BASE)


class TestMain:
    def test_anything_odd_leaves_the_file_to_git(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name, data in (("o", USER), ("a", USER), ("b", b"\0" + USER)):
            Path(name).write_bytes(data)
        words = ["o", "a", "b", "7", "AGENTS.md"]
        for argv in ([], words[:4], [*words[:3], "seven", "x"], words, ["gone", *words[1:]]):
            assert merge_driver.main(argv) == merge_driver.NOT_MERGED
        assert Path("a").read_bytes() == USER
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "o"]

    def test_binary_files_around_a_block(self) -> None:
        binary = b"\0\1\2\n"
        versions = [with_block(binary + side, BASE) for side in (b"a\n", b"b\n", b"c\n")]
        assert merge(*versions, Merge()) is None  # type: ignore[call-arg,arg-type]

    def test_labels_and_marker_size(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for name, text in (("o", b"base\n"), ("a", b"ours\n"), ("b", b"theirs\n")):
            Path(name).write_bytes(with_block(text, BASE))
        argv = ["o", "a", "b", "9", "AGENTS.md", "base label", "HEAD", "feature"]
        assert merge_driver.main(argv) == merge_driver.CONFLICTS
        assert b"<<<<<<<<< HEAD\nours\n=========\ntheirs\n>>>>>>>>> feature\n" in Path("a").read_bytes()

    def test_labels_are_asked_for_where_git_knows_them(self) -> None:
        program = Path("/x/agent-bridge")
        assert "%S %X %Y" in driver_command(program, (2, 44))
        assert "%X" not in driver_command(program, (2, 43, 9))

    @pytest.mark.parametrize(
        ("line", "may"), [("", True), ("AGENTS.md merge=union", False), ("AGENTS.md -merge", False)]
    )
    def test_a_way_to_merge_that_the_project_has_chosen_stays(
        self, tmp_path: Path, line: str, may: bool
    ) -> None:
        run(tmp_path, "init", "-q")
        (tmp_path / ".gitattributes").write_text(line + "\n")
        path = tmp_path / "AGENTS.md"
        assert merge_driver.may_drive(git.attribute(checkout(tmp_path), "merge", [path])[path]) is may
        git.attributes_file(checkout(tmp_path)).write_text("\n".join(attribute_lines(["AGENTS.md"])))
        assert merge_driver.may_drive(git.attribute(checkout(tmp_path), "merge", [path])[path])


LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"# x", b"c\r"]), max_size=6).map(
    lambda lines: b"".join(line + b"\n" for line in lines)
)


class TestProperty:
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(above=st.tuples(LINES, LINES, LINES), below=st.tuples(LINES, LINES, LINES), ended=st.booleans())
    def test_outside_the_block_it_is_what_git_makes_of_the_texts_without_it(
        self, above: tuple[bytes, ...], below: tuple[bytes, ...], ended: bool
    ) -> None:
        facts = ((OURS,), (BASE,), (THEIRS,))
        placed = [
            splice(top, block(*told)).data + rest for top, told, rest in zip(above, facts, below, strict=True)
        ]
        if not ended:
            placed = [data.removesuffix(b"\n") for data in placed]
        spans = [find_block(data) for data in placed]
        assert all(spans)
        merged = merge(placed[0], placed[1], placed[2], Merge())
        assert merged is not None
        span = find_block(merged.data)
        assert span is not None
        assert is_ours(merged.data)
        assert titles(merged.data) == ["Ours"]
        line = b"<!-- a line in the place of the block -->"
        without = [
            data[: found.start] + line + (data[found.end :] or b"\n")
            for data, found in zip(placed, spans, strict=True)
            if found is not None
        ]
        expected = merge_file(without[0], without[1], without[2], Merge())
        assert expected is not None
        last = expected.data.rpartition(line)[0]
        assume(expected.data.count(line) == 1)  # else Git joined two conflicts across it
        assume(last.count(b"<<<<<<< ") == last.count(b">>>>>>> "))
        assert merged.conflicts == expected.conflicts
        found = merged.data[: span.start] + line + merged.data[span.end :]
        assert found == expected.data.removesuffix(b"\n" if found.endswith(line) else b"")

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(above=st.tuples(LINES, LINES, LINES), below=st.tuples(LINES, LINES, LINES))
    def test_no_line_of_a_side_is_lost_and_the_block_is_whole(
        self, above: tuple[bytes, ...], below: tuple[bytes, ...]
    ) -> None:
        marked = [
            (top.replace(b"a", b"a" + side), rest.replace(b"a", b"a" + side))
            for top, rest, side in zip(above, below, (b"1", b"0", b"2"), strict=True)
        ]
        facts = ((OURS,), (BASE,), (THEIRS,))
        placed = [
            splice(top, block(*told)).data + rest for (top, rest), told in zip(marked, facts, strict=True)
        ]
        merged = merge(placed[0], placed[1], placed[2], Merge())
        assert merged is not None
        assert is_ours(merged.data)
        assert gitlaw.conflict_across(merged.data) is None
        for data, side in ((placed[0], b"a1"), (placed[2], b"a2")):
            assert (side in data) is (side in merged.data)
