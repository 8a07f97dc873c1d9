"""add, list, show, search, edit, rm: by the real program."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from pathlib import Path

import pytest

from .conftest import Program
from .terminal import at_terminal

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def tree(root: Path) -> dict[str, str]:
    """Every path below `root` with a hash of what it holds."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in root.rglob("*")
        if ".git" not in path.parts
    }


ORDERS = [
    ["add", "the text", "--tag", "infra"],
    ["add", "--tag", "infra", "the text"],
    ["add", "--tag=infra", "the text"],
    ["add", "-t", "infra", "the text"],
    ["add", "-tinfra", "--", "the text"],
    ["add", "--tag", "infra", "--", "the text"],
]


@pytest.mark.parametrize("words", ORDERS, ids=" ".join)
def test_options_stand_anywhere(remembering: Program, words: list[str]) -> None:
    assert remembering(*words).code == 0
    (fact,) = remembering("list", "--json").json["data"]["facts"]
    assert (fact["title"], fact["tags"]) == ("the text", ["infra"])


def test_json_stands_anywhere(remembering: Program) -> None:
    remembering("add", "the text")
    outputs = {
        remembering(*words).out for words in (["list", "--json"], ["list", "--type", "project", "--json"])
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (["--tag", "a", "--tag", "b"], ["a", "b"]),
        (["--tag", "b", "--tag", "a", "--tag", "b"], ["b", "a"]),
        (["--tag", "a, b: [c]"], ["a, b: [c]"]),
        (["--tag", "  ", "--tag", "a"], ["a"]),
        (["--tag", "--json"], ["--json"]),
        ([], []),
    ],
)
def test_tags(remembering: Program, words: list[str], tags: list[str]) -> None:
    assert remembering("add", "the text", *words).code == 0
    (fact,) = remembering("list", "--json").json["data"]["facts"]
    assert fact["tags"] == tags


@pytest.mark.parametrize("text", ["--tag", "-x", "--json", "status"])
def test_a_text_that_looks_like_an_option(remembering: Program, text: str) -> None:
    assert remembering("add", "--", text).code == 0
    assert [fact["title"] for fact in remembering("list", "--json").json["data"]["facts"]] == [text]


def test_add_prints_the_id(remembering: Program) -> None:
    added = remembering("add", "The harbour is north", "--tag", "map")
    (path,) = (remembering.cwd / ".memory" / "entries").iterdir()
    assert added.out == f"Added {path.stem}\n"
    assert "The harbour is north" in path.read_text()


@pytest.mark.parametrize(
    ("stdin", "body"),
    [
        ("one\ntwo\n", "one\ntwo"),
        ("\ufeffone\r\ntwo\r\n", "one\ntwo"),
        ("---\nid: x\n---\nforged", "---\nid: x\n---\nforged"),
    ],
)
def test_add_from_stdin(remembering: Program, stdin: str, body: str) -> None:
    assert remembering("add", "-", stdin=stdin).code == 0
    (fact,) = remembering("list", "--json").json["data"]["facts"]
    assert remembering("show", fact["id"], "--json").json["data"]["body"] == body


@pytest.mark.parametrize("stdin", ["", "  \n\t\n", b"\xff\xfe"])
def test_nothing_to_add_is_wrong_usage(remembering: Program, stdin: str | bytes) -> None:
    assert remembering("add", "-", stdin=stdin).code == 2
    assert remembering("list", "--json").json["data"]["facts"] == []


def test_a_duplicate_fails_and_names_the_fact(remembering: Program) -> None:
    known = remembering.id_of("The harbour is north")
    again = remembering("add", "The  harbour is north")
    assert again.code == 1
    assert known in again.err
    assert remembering("add", "The harbour is north", "--json").json["errors"][0]["code"] == "duplicate"


def test_a_similar_fact_is_added_with_a_warning(remembering: Program) -> None:
    known = remembering.id_of("use port 4999")
    added = remembering("add", "use port 5000")
    assert added.code == 0
    assert f"warning: Similar to {known} (0.50)" in added.err
    assert "4999" in added.err
    assert "5000" in added.err


def test_a_secret_is_told(remembering: Program) -> None:
    added = remembering("add", f"token {SECRET}")
    assert added.code == 0
    assert "warning: The text seems to hold a secret" in added.err


def test_without_a_memory_add_refuses_and_says_what_to_do(program: Program) -> None:
    before = tree(program.cwd)
    added = program("add", "something")
    assert added.code == 4
    assert "agent-bridge init" in added.err
    assert tree(program.cwd) == before


def test_before_init_nothing_of_scope_global_is_addable_in_a_home_that_git_holds(
    program: Program, sealed_home: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(sealed_home)], check=True)
    assert program("add", "The key lies under the mat.", "--scope", "global", "--private").code == 0
    listed = subprocess.run(
        ["git", "-C", str(sealed_home), "ls-files", "-o", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert [name for name in listed if name.endswith("/agent-bridge/memory/.gitignore")]
    assert not [name for name in listed if name.endswith(".md")]


def test_what_is_private_is_not_addable_in_a_store_that_was_left(program: Program) -> None:
    assert program("init", "--yes").code == 0
    assert program("add", "The kettle is on the stove.").code == 0
    assert program("eject", "--yes").code == 0
    shared = _addable(program.cwd)
    assert len(shared) == 1
    assert program("add", "The key lies under the mat.", "--private").code == 0
    assert not [name for name in _addable(program.cwd) if "mat" in name]


def _addable(root: Path) -> list[str]:
    """The facts that `git add -A` would take."""
    words = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", ".memory/entries"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


def test_scope_global_is_made_by_the_first_fact(program: Program, sealed_home: Path) -> None:
    assert program("add", "for all", "--scope", "global").code == 0
    assert not (program.cwd / ".memory").exists()
    (fact,) = program("list", "--json").json["data"]["facts"]
    assert (fact["scope"], fact["title"]) == ("global", "for all")
    assert program("list", "--scope", "project").out == ""


READING = [
    ["list"],
    ["search", "word"],
    ["status"],
    ["status", "--memory"],
    ["list", "--json"],
    ["show", "nothing"],
    ["--version"],
    ["--help"],
    ["review"],
    ["plan"],
    ["logs"],
    ["service", "status"],
    ["service", "logs"],
    ["--show-completion", "bash"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_reading_creates_nothing(program: Program, sealed_home: Path, words: list[str]) -> None:
    before = tree(program.cwd.parent)
    program(*words)
    assert tree(program.cwd.parent) == before


@pytest.mark.parametrize("words", [["list"], ["status", "--memory"], ["show", "20"]], ids=" ".join)
def test_reading_a_small_memory_changes_nothing(remembering: Program, words: list[str]) -> None:
    (remembering.cwd / ".memory" / "fact.md").write_text("A fact.")
    before = tree(remembering.cwd.parent)
    remembering(*words)
    assert tree(remembering.cwd.parent) == before


def test_from_a_sub_directory_and_from_elsewhere(remembering: Program) -> None:
    remembering("add", "The harbour is north")
    below = remembering.cwd / "src" / "deep"
    below.mkdir(parents=True)
    assert "harbour" in Program(below)("list").out
    assert "harbour" in Program(remembering.cwd.parent)("list", "--project", str(below)).out
    assert Program(below)("add", "From below").code == 0
    assert "From below" in remembering("list").out
    assert remembering("list", "--project", str(below / "missing")).code == 2


def test_list_filters(remembering: Program) -> None:
    remembering("add", "one", "--tag", "a", "--tag", "b")
    remembering("add", "two", "--tag", "a", "--type", "feedback")
    remembering("add", "three", "--private")
    for words, titles in {
        (): {"one", "two", "three"},
        ("--tag", "a"): {"one", "two"},
        ("--tag", "a", "--tag", "b"): {"one"},
        ("--type", "feedback"): {"two"},
        ("--private",): {"three"},
    }.items():
        assert {
            fact["title"] for fact in remembering("list", "--json", *words).json["data"]["facts"]
        } == titles


def test_list_and_search_lines(remembering: Program) -> None:
    first = remembering.id_of("The harbour is north", "--tag", "map", "--tag", "sea")
    second = remembering.id_of("Harbour fees are due in May")
    assert remembering("search", "HARBOUR", "north").out == f"{first} | map, sea | The harbour is north\n"
    assert set(remembering("list").out.splitlines()) == {
        f"{first} | map, sea | The harbour is north",
        f"{second} | untagged | Harbour fees are due in May",
    }
    nothing = remembering("search", "airport")
    assert (nothing.code, nothing.out) == (0, "")


def test_search_finds_an_edited_file(remembering: Program) -> None:
    remembering("add", "The harbour is north")
    (path,) = (remembering.cwd / ".memory" / "entries").iterdir()
    assert remembering("search", "harbour").out
    path.write_text(path.read_text().replace("harbour", "airport"))
    assert remembering("search", "harbour").out == ""
    assert "airport" in remembering("search", "airport").out


def test_show(remembering: Program) -> None:
    known = remembering.id_of("# Harbour\n\nIt is north.", "--tag", "map")
    shown = remembering("show", known[:20])
    assert shown.out.startswith(f"[{known}] project, #map, from cli, ")
    assert shown.out.endswith("\n\n# Harbour\n\nIt is north.\n")
    assert remembering("show", "nothing").code == 1


def test_status_memory_shows_everything(remembering: Program) -> None:
    (remembering.cwd / ".memory" / "conventions.md").write_text("# conventions\n\nTabs.\n")
    one = remembering.id_of("The harbour is north", "--tag", "map")
    two = remembering.id_of("# Title\n\nSeveral\nlines.")
    dump = remembering("status", "--memory").out
    assert "Tabs." in dump
    assert f"- [{one}] The harbour is north (map)" in dump
    assert f"- [{two}] Title\n\n  # Title\n\n  Several\n  lines." in dump
    (whole,) = remembering("status", "--memory", "--json").json["data"]["memory"]
    assert whole["documents"] == [{"name": "conventions.md", "text": "# conventions\n\nTabs."}]
    assert {fact["id"]: fact["body"] for fact in whole["facts"]} == {
        one: "The harbour is north",
        two: "# Title\n\nSeveral\nlines.",
    }


@pytest.mark.parametrize("words", [["list"], ["search", "evil"], ["show", "evil"], ["status", "--memory"]])
def test_escapes_in_a_fact_do_nothing(remembering: Program, words: list[str]) -> None:
    text = "evil \x1b]0;title\x07\x1b[2J \x9b31m \u202egnp.exe \x7f\nsecond\rline"
    (remembering.cwd / ".memory" / "evil.md").write_text(text)
    out = remembering(*words).out
    assert "evil" in out
    assert not set(out) & {"\x1b", "\x07", "\x9b", "\u202e", "\x7f", "\r"}


def test_edit_by_text(remembering: Program) -> None:
    known = remembering.id_of("The harbour is north", "--tag", "map")
    assert remembering("edit", known, "--text", "The harbour is south").code == 0
    assert remembering("show", known, "--json").json["data"]["body"] == "The harbour is south"
    assert remembering("edit", known, "--text", "-", stdin="From stdin\n").code == 0
    shown = remembering("show", known, "--json").json["data"]
    assert (shown["body"], shown["tags"]) == ("From stdin", ["map"])
    assert remembering("edit", known, "--text", " ").code == 2


EDITORS = {
    "appends": ("echo more >>", 0, "one\nmore"),
    "leaves it": ("true", 0, "one"),
    "fails": ("false", 1, "one"),
    "empties it": ("truncate -s 0", 2, "one"),
    "isn't there": ("no-such-editor --wait", 1, "one"),
}


@pytest.mark.parametrize("name", EDITORS)
def test_edit_in_an_editor(remembering: Program, tmp_path: Path, name: str) -> None:
    command, code, body = EDITORS[name]
    script = tmp_path / "my editor"
    script.write_text(f'#!/bin/sh\n{command} "$2"\n' if "no-such" not in command else "")
    script.chmod(0o755)
    known = remembering.id_of("one")
    editor = command if "no-such" in command else f"'{script}' --wait"
    edited = remembering("edit", known, env={"VISUAL": editor, "TMPDIR": str(tmp_path)})
    assert edited.code == code, edited.err
    assert remembering("show", known, "--json").json["data"]["body"] == body
    assert list(tmp_path.glob("agent-bridge-edit-*")) == []


def test_edit_meets_a_change_by_somebody_else(remembering: Program, tmp_path: Path) -> None:
    known = remembering.id_of("one")
    (path,) = (remembering.cwd / ".memory" / "entries").iterdir()
    script = tmp_path / "editor"
    script.write_text(f'#!/bin/sh\necho mine >> "$1"\necho theirs >> "{path}"\n')
    script.chmod(0o755)
    edited = remembering("edit", known, env={"EDITOR": str(script), "TMPDIR": str(tmp_path)})
    assert edited.code == 4
    assert remembering("show", known, "--json").json["data"]["body"] == "one\ntheirs"
    (copy,) = tmp_path.glob("agent-bridge-edit-*/*.md")
    assert copy.read_text() == "one\nmine\n"
    assert str(copy) in edited.err


def test_rm_asks_and_keeps_a_copy(remembering: Program) -> None:
    known = remembering.id_of("The harbour is north")
    (path,) = (remembering.cwd / ".memory" / "entries").iterdir()
    data = path.read_bytes()
    refused = remembering("rm", known)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert f"Would remove {known}" in remembering("rm", known, "--dry-run").out
    assert path.exists()
    removed = remembering("forget", "--yes", known, "--json").json["data"]
    assert not path.exists()
    assert Path(removed["kept"]).read_bytes() == data
    assert stat.S_IMODE(Path(removed["kept"]).stat().st_mode) == 0o600
    assert remembering("rm", known, "--yes").code == 1


def test_rm_keeps_no_copy_of_a_secret(remembering: Program, sealed_home: Path) -> None:
    known = remembering.id_of(f"token {SECRET}")
    assert remembering("rm", known, "--yes", "--json").json["data"]["kept"] is None
    found = subprocess.run(["grep", "-rl", SECRET, str(sealed_home)], capture_output=True, check=False)
    assert found.stdout == b""


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 4), ("", 4), ("sure", 4)])
def test_rm_at_a_terminal(remembering: Program, answer: str, code: int) -> None:
    known = remembering.id_of("The harbour is north")
    ran = at_terminal(remembering, ["rm", known], answer)
    assert f"Forget {known}" in ran.err
    assert ran.code == code
    assert bool(remembering("list").out) is (code != 0)


def test_the_threshold_of_similarity_is_a_setting(remembering: Program) -> None:
    remembering("add", "use port 4999")
    strict = remembering("add", "use port 5000", "--json", env={"AGENT_BRIDGE_SIMILARITY": "0.9"})
    assert strict.json["data"]["similar"] == []
    assert remembering("add", "x", env={"AGENT_BRIDGE_SIMILARITY": "much"}).code == 2


def test_add_says_that_no_agent_sees_it(remembering: Program) -> None:
    told = "set up, so no agent sees the change: `agent-bridge init`.\n"
    assert remembering("add", "The harbour is north").err == f"This project isn't {told}"
    assert remembering("add", "--scope", "global", "The harbour is north").err == f"No project is {told}"


def test_no_command_prints_a_credential(remembering: Program) -> None:
    place = remembering.cwd / ".memory/leak.md"
    place.write_text(f"# Key {SECRET}\n\nUse {SECRET} for releases.\n")
    printed = []
    for words in (["list"], ["search", "releases"], ["show", "leak"], ["status", "--memory"]):
        for form in ([], ["--json"]):
            done = remembering(*words, *form)
            assert done.code == 0, done.err
            printed.append(done.out)
    assert all("leak" in text or "releases" in text for text in printed)
    assert not any(SECRET[:20] in text for text in printed)
