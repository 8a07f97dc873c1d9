"""What harnesses run at session start: right in all places, and harmless whatever is wrong."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from agent_bridge import paths, projects
from agent_bridge.config import load_settings
from agent_bridge.harnesses import hook_command
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine

from .conftest import Program

FACT = "They leave on Tuesdays, from the harbour branch."
DEADLINE_S = 1.0
CODE = ("hook", "session-start", "--harness", "claude-code")
DIRECT = (sys.executable, "-m", "agent_bridge.cli.entry", *CODE)


@pytest.fixture
def hooked(project: Path, sealed_home: Path) -> Path:
    """A project in HOOK mode that remembers one shared and one private fact."""
    for name in (".claude", ".codex"):
        (sealed_home / name).mkdir()
    set_up(project, FACT)
    return project


def set_up(root: Path, *facts: str) -> None:
    """What `init --hooks` and `add` do."""
    settings = load_settings()
    described = setup.describe(root, delivery="hooks")
    setup.init(described, settings)
    engine = Engine(described, settings)
    for fact in facts:
        engine.store.add(fact)
        engine.store.add(f"Private: {fact[::-1]}", private=True)
    engine.reconcile()


def installed(root: Path) -> str:
    """The command as it stands in Claude's settings."""
    settings = json.loads((root / ".claude/settings.local.json").read_bytes())
    ((hook,),) = [one["hooks"] for one in settings["hooks"]["SessionStart"]]
    return str(hook["command"])


def run(
    command: str | tuple[str, ...],
    cwd: Path,
    *,
    stdin: bytes | int | IO[Any] = b"",
    stdout: int | IO[Any] = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run it; its output. It must end with 0 and without a word to the user within a second.

    A machine that is busy with something else gets three tries; what hangs fails in each of them.
    """
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    for tries in range(3):
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command] if isinstance(command, str) else command,
                cwd=cwd,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=os.environ | {"SHELL": "/bin/sh"} | dict(env or {}),
                timeout=DEADLINE_S,
                check=False,
                **given,
            )
        except subprocess.TimeoutExpired:
            if tries == 2:
                raise
            continue
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return (done.stdout or b"").decode()
    raise AssertionError


def asked(cwd: Path | str, **more: object) -> bytes:
    return json.dumps({"session_id": "x", "cwd": str(cwd), "source": "startup", **more}).encode()


def told(output: str) -> str:
    """The text for the model; fails when the output has another shape."""
    document = json.loads(output)
    assert document.keys() == {"hookSpecificOutput"}
    inside = document["hookSpecificOutput"]
    assert inside.keys() == {"hookEventName", "additionalContext"}
    assert inside["hookEventName"] == "SessionStart"
    return str(inside["additionalContext"])


def trouble() -> str:
    """What was written down, "" where nothing was."""
    place = paths.state_dir() / "hook-trouble.json"
    return str(json.loads(place.read_bytes())["why"]) if place.exists() else ""


def test_the_installed_command_tells_shared_and_private_facts(hooked: Path) -> None:
    text = told(run(installed(hooked), hooked, stdin=asked(hooked)))
    assert text.startswith("## Project memory\n")
    assert text.count(FACT) == 1
    assert text.count(FACT[::-1]) == 1
    assert "agent-bridge:memory" not in text
    assert trouble() == ""


@pytest.mark.parametrize("name", ["claude-code", "claude", "codex"])
def test_every_harness_is_answered(hooked: Path, name: str) -> None:
    assert FACT in told(run((*DIRECT[:-1], name), hooked, stdin=asked(hooked)))


def test_from_below_through_a_link_and_from_a_worktree(hooked: Path, short_tmp: Path) -> None:
    below = hooked / "a b" / "ü"
    below.mkdir(parents=True)
    (short_tmp / "link").symlink_to(hooked)
    side = short_tmp / "side"
    for words in (["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", str(side)]):
        subprocess.run(["git", "-C", str(hooked), *words], check=True)
    (side / "deep").mkdir()
    for place in (below, short_tmp / "link", short_tmp / "link" / "a b", side, side / "deep"):
        assert FACT in told(run(DIRECT, Path("/"), stdin=asked(place))), place
        assert FACT in told(run(DIRECT, place)), "the directory that it was started in counts too"


def test_other_directories_are_told_nothing(hooked: Path, short_tmp: Path) -> None:
    nested = hooked / "vendor" / "other"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    module = hooked / "module"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../.git/modules/module\n")
    for place in (nested, module, short_tmp, Path("/"), short_tmp / "gone"):
        assert run(DIRECT, Path("/"), stdin=asked(place)) == ""
    assert trouble() == ""


def test_a_resumed_session_has_it_already(hooked: Path) -> None:
    assert run(DIRECT, hooked, stdin=asked(hooked, source="resume")) == ""
    assert FACT in told(run(DIRECT, hooked, stdin=asked(hooked, source="compact")))


def test_a_project_with_blocks_is_told_nothing(hooked: Path, program: Program) -> None:
    command = installed(hooked)
    assert program("init", "--yes", "--blocks").code == 0
    assert run(command, hooked, stdin=asked(hooked)) == ""
    assert trouble() == ""


def test_a_project_outside_of_git(hooked: Path, sealed_home: Path) -> None:
    plain = sealed_home / "plain"
    (plain / "below").mkdir(parents=True)
    set_up(plain, "Only here.")
    assert "Only here." in told(run(DIRECT, Path("/"), stdin=asked(plain / "below")))


def test_an_empty_memory_says_nothing(project: Path, sealed_home: Path) -> None:
    (sealed_home / ".claude").mkdir()
    set_up(project)
    assert run(DIRECT, project, stdin=asked(project)) == ""
    assert trouble() == ""


# --- hostile input --------------------------------------------------------------------------------------

JUNK = {
    "empty": b"",
    "not JSON": b"hello",
    "half": b'{"cwd": "/',
    "a list": b"[1]",
    "deep": b"[" * 60000,
    "no text": b'{"cwd": 7, "source": []}',
    "relative": b'{"cwd": "../.."}',
    "NUL": b'{"cwd": "/a\\u0000b"}',
    "surrogate": b'{"cwd": "/\\ud800"}',
    "long": json.dumps({"cwd": "/" + "a" * 50000}).encode(),
    "huge": b'{"x": "' + b"a" * 10_000_000 + b'"}',
    "binary": bytes(range(256)) * 16,
}


@pytest.mark.parametrize("data", JUNK.values(), ids=JUNK)
def test_junk_on_standard_input(hooked: Path, data: bytes) -> None:
    output = run(installed(hooked), hooked, stdin=data)
    assert data == JUNK["surrogate"] or FACT in told(output)


def test_standard_input_that_says_nothing_and_stays_open(hooked: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as ours, os.fdopen(writing, "wb"):
        assert FACT in told(run(installed(hooked), hooked, stdin=ours))


def test_standard_input_that_never_ends(hooked: Path) -> None:
    with open("/dev/zero", "rb") as endless:  # noqa: PTH123 - a device
        assert FACT in told(run(installed(hooked), hooked, stdin=endless))


def test_standard_input_that_is_a_terminal_or_closed(hooked: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        assert FACT in told(run(installed(hooked), hooked, stdin=theirs))
    finally:
        os.close(ours)
        os.close(theirs)
    assert FACT in told(run(f"{installed(hooked)} <&-", hooked))


def test_a_working_directory_that_is_gone(hooked: Path, short_tmp: Path) -> None:
    gone = short_tmp / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec 2>/dev/null; {installed(hooked)}"  # the shell complains itself
    assert run(script, Path("/")) == ""
    gone.mkdir()
    assert FACT in told(run(script, Path("/"), stdin=asked(hooked)))


# --- broken state ---------------------------------------------------------------------------------------


def replace_by(place: Path, what: str) -> None:
    place.unlink()
    if what == "directory":
        place.mkdir()
    elif what == "fifo":
        os.mkfifo(place)
    elif what == "huge":
        with place.open("wb") as file:
            file.truncate(1 << 30)
    elif what == "link in a circle":
        place.symlink_to(place)
    elif what != "nothing":
        place.write_bytes(what.encode("latin-1"))


@pytest.mark.parametrize(
    "what",
    [
        "directory",
        "fifo",
        "huge",
        "link in a circle",
        "",
        "{}",
        "[]",
        "\xff",
        '{"projects": [1]}',
        "[" * 90000,
    ],
)
def test_a_broken_list_of_projects(hooked: Path, program: Program, what: str) -> None:
    command = installed(hooked)
    kept = paths.projects_file().read_bytes()
    replace_by(paths.projects_file(), what)
    assert run(command, hooked, stdin=asked(hooked)) == ""
    assert "projects.json" in trouble()
    if what != "fifo":  # nobody keeps a list of projects there, and only the hook must not wait for one
        status = program("status")
        assert "The hook that brings claude-code the memory failed" in status.out + status.err

    place = paths.projects_file()
    place.rmdir() if place.is_dir() else place.unlink()
    place.write_bytes(kept)
    assert FACT in told(run(command, hooked, stdin=asked(hooked)))
    assert trouble() == "", "what works again is no trouble"


def test_no_project_at_all(hooked: Path) -> None:
    paths.projects_file().unlink()
    assert run(installed(hooked), hooked, stdin=asked(hooked)) == ""
    assert trouble() == ""


@pytest.mark.parametrize("name", ["../../../secret", "", "0123", 7, None, "0" * 16 + "/"])
def test_a_project_with_a_strange_id(hooked: Path, name: object) -> None:
    document = json.loads(paths.projects_file().read_bytes())
    document["projects"][0]["id"] = name
    paths.projects_file().write_text(json.dumps(document))
    assert run(installed(hooked), hooked, stdin=asked(hooked)) == ""
    assert "id" in trouble()


@pytest.mark.parametrize("what", ["nothing", "directory", "fifo", "huge", "link in a circle", "\xff\xfe"])
def test_a_broken_context(hooked: Path, what: str) -> None:
    (project,) = projects.load_projects()
    replace_by(project.state / "hook" / "claude-code.md", what)
    assert run(installed(hooked), hooked, stdin=asked(hooked)) == ""
    assert trouble() != ""
    assert FACT in told(run((*DIRECT[:-1], "codex"), hooked, stdin=asked(hooked)))


def test_a_context_behind_a_link_is_not_read(hooked: Path, short_tmp: Path) -> None:
    (project,) = projects.load_projects()
    (short_tmp / "secret").write_text("SECRET")
    place = project.state / "hook" / "claude-code.md"
    place.unlink()
    place.symlink_to(short_tmp / "secret")
    assert run(installed(hooked), hooked, stdin=asked(hooked)) == ""


def test_a_harness_name_that_is_a_path(hooked: Path) -> None:
    assert run((*DIRECT[:-1], "../hook/codex"), hooked, stdin=asked(hooked)) == ""
    assert "no harness" in trouble()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_state_that_may_not_be_read(hooked: Path) -> None:
    paths.state_dir().chmod(0)
    try:
        assert run(installed(hooked), hooked, stdin=asked(hooked)) == ""
    finally:
        paths.state_dir().chmod(0o700)


def test_the_files_are_private(hooked: Path) -> None:
    (project,) = projects.load_projects()
    for place in (project.state / "hook").iterdir():
        assert place.stat().st_mode & 0o777 == 0o600
    assert (project.state / "hook").stat().st_mode & 0o777 == 0o700


# --- nobody to tell -------------------------------------------------------------------------------------


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "| true", "<&- >&-"])
def test_standard_output_that_takes_nothing(hooked: Path, redirection: str) -> None:
    assert run(f"{installed(hooked)} {redirection}", hooked, stdin=asked(hooked)) == ""


def test_a_pipe_that_nobody_empties(hooked: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as full:
        fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, b"x" * 4096)
        fcntl.fcntl(writing, fcntl.F_SETFL, 0)
        run(installed(hooked), hooked, stdin=asked(hooked), stdout=full)
    assert "longer than" in trouble()


# --- the interpreter ------------------------------------------------------------------------------------

BROKEN_PYTHON = {
    "PYTHONHOME": "/nonexistent",
    "PYTHONPATH": "/nonexistent",
    "PYTHONHASHSEED": "x",
    "PYTHONIOENCODING": "nonsense",
    "PYTHONUTF8": "7",
    "PYTHONVERBOSE": "1",
    "PYTHONINSPECT": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONSTARTUP": "/nonexistent",
}


@pytest.mark.parametrize("name", BROKEN_PYTHON)
def test_variables_that_break_python(hooked: Path, name: str) -> None:
    output = run(installed(hooked), hooked, stdin=asked(hooked), env={name: BROKEN_PYTHON[name]})
    assert FACT in told(output)


@pytest.mark.parametrize("name", ["HOME", "AGENT_BRIDGE_STATE_DIR", "XDG_STATE_HOME", "LANG"])
def test_other_variables_that_make_no_sense(hooked: Path, name: str) -> None:
    run(installed(hooked), hooked, stdin=asked(hooked), env={name: "relative/ü"})


def test_a_repository_cannot_bring_the_program_along(hooked: Path) -> None:
    for name in (
        "json.py",
        "agent_bridge/__init__.py",
        "sitecustomize.py",
        "select.py",
        "agent_bridge/cli.py",
    ):
        place = hooked / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("open('/proc/self/cwd/PWNED', 'w')\nraise SystemExit(9)\n")
    env = {"PYTHONPATH": str(hooked)}
    assert FACT in told(run(installed(hooked), hooked, stdin=asked(hooked), env=env))
    assert not (hooked / "PWNED").exists()


def test_the_program_is_gone(hooked: Path) -> None:
    gone = hook_command.session_start("/nonexistent/a'b c/python", "claude-code")
    assert run(gone, hooked, stdin=asked(hooked)) == ""
    broken = hook_command.session_start("/bin/false", "claude-code")
    assert run(broken, hooked, stdin=asked(hooked)) == ""


def test_a_program_in_a_directory_with_a_strange_name(hooked: Path, short_tmp: Path) -> None:
    place = short_tmp / 'it\'s ü $HOME `x` "y"'
    place.mkdir()
    program = place / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    command = hook_command.session_start(str(program), "claude-code")
    assert FACT in told(run(command, hooked, stdin=asked(hooked)))
    assert hook_command.program_of(command) == str(program)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
def test_shells_of_users(hooked: Path, shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} isn't installed")
    assert FACT in told(run((found, "-lc", installed(hooked)), hooked, stdin=asked(hooked)))


def test_wrong_words_are_told_to_who_types_them(hooked: Path, program: Program) -> None:
    assert program("hook").code == 2
    assert program("hook", "session-end").code == 2


def test_it_imports_next_to_nothing(hooked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent_bridge.cli.entry", *CODE],
        cwd=hooked,
        input=asked(hooked),
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert FACT in told(done.stdout.decode())
    loaded = {line.rsplit(b"|", 1)[-1].strip() for line in done.stderr.splitlines()}
    ours = {name for name in loaded if name.startswith(b"agent_bridge")}
    assert ours <= {
        b"agent_bridge",
        b"agent_bridge.cli",
        b"agent_bridge.cli.entry",
        b"agent_bridge.cli.hook",
        b"agent_bridge.paths",
        b"agent_bridge.errors",
    }
    assert not loaded & {b"typer", b"pydantic", b"structlog", b"asyncio", b"subprocess", b"tomllib"}
