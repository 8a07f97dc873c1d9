"""What every command has in common: exit codes, JSON, help, pipes, crashes, speed of start."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from agent_bridge import __version__
from agent_bridge.cli import app

from .conftest import Program

WRONG = [
    [],
    ["frobnicate"],
    ["--frobnicate"],
    ["add"],
    ["add", "one", "two"],
    ["add", "--tag"],
    ["add", "x", "--tga", "y"],
    ["search"],
    ["search", " "],
    ["list", "extra"],
    ["list", "--scope", "everywhere"],
    ["search", "x", "--limit", "many"],
    ["status", "--frobnicate"],
    ["status", "extra"],
    ["show"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage(remembering: Program, words: list[str]) -> None:
    ran = remembering(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("agent-bridge: ")


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_as_json(remembering: Program, words: list[str]) -> None:
    ran = remembering("--json") if not words else remembering(words[0], "--json", *words[1:])
    assert ran.code == 2
    assert ran.json["errors"][0]["code"] == "usage"


def test_version(program: Program) -> None:
    assert program("--version").out == f"agent-bridge {__version__}\n"
    assert program("--version", "--json").json["data"] == {"version": __version__}


@pytest.mark.parametrize("group", [[], ["agents"], ["registry"], ["review"]], ids=str)
def test_the_list_of_commands_cuts_no_sentence(
    group: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert app.run([*group, "--help"]) == 0
    _, _, commands = capsys.readouterr().out.partition("\nCommands")
    assert len(commands.splitlines()) > 1
    assert "..." not in commands


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["send", "harbour", "--no matter"], True),
        (["reply", "m1", "-n"], True),
        (["add", "-x"], True),
        (["send", "harbour", "--expires-im"], False),
        (["agents", "-n"], False),
    ],
)
def test_a_text_that_begins_with_a_dash_is_told_how(
    words: list[str], hint: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(words) == 2
    assert ("stands behind `--`" in capsys.readouterr().err) == hint


def test_help_names_every_command(program: Program) -> None:
    shown = program("--help")
    assert shown.code == 0
    for name in ("add", "search", "list", "show", "edit", "rm", "share", "unshare", "init", "plan", "sync"):
        assert re.search(rf"\b{name}\b", shown.out)
    assert "--json" in program("list", "-h").out


def test_status_without_the_service(program: Program) -> None:
    ran = program("status")
    assert ran.code == 3
    assert "isn't running" in ran.out
    as_json = program("status", "--json")
    assert as_json.code == 3
    assert as_json.json["data"] == {"state": "not running", "projects": []}


@pytest.mark.parametrize("words", [["status"], ["--version"], ["status", "--json"]], ids=" ".join)
def test_fast_commands_import_little(program: Program, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent_bridge.cli.entry", *words],
        cwd=program.cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    slow = {
        "typer",
        "rich",
        "pydantic",
        "asyncio",
        "dataclasses",
        "subprocess",
        "yaml",
        "inspect",
        "sqlite3",
        "sqlalchemy",
        "fastapi",
        "httpx",
        "agent_bridge.git",
        "agent_bridge.config",
        "agent_bridge.channel",
        "agent_bridge.client",
        "agent_bridge.registry",
    }
    assert loaded & slow == set()


def test_the_merge_driver_imports_little(program: Program) -> None:
    told = "import sys; from agent_bridge.projection import merge_driver; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=program.cwd, capture_output=True, text=True, check=True
    )
    rooms = [name.split(".")[:3] for name in done.stdout.split() if name.startswith("agent_bridge.")]
    assert ["agent_bridge", "harnesses", "managed_block"] in rooms
    assert ["agent_bridge", "harnesses", "codex"] not in rooms
    assert ["agent_bridge", "memory", "store"] not in rooms


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words", [["list"], ["--version"], ["list", "--help"], ["list", "--json"]], ids=" ".join
)
def test_a_full_disk_is_told_without_a_traceback(remembering: Program, words: list[str]) -> None:
    remembering("add", "The harbour is north")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*remembering.command, *words],
            cwd=remembering.cwd,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"agent-bridge: The answer can't be written: No space left on device.\n"


def test_json_before_the_command(remembering: Program) -> None:
    assert remembering("--json", "list").json["command"] == "list"
    known = remembering("--json", "add", "--", "--json").json["data"]["fact"]["id"]
    assert remembering("show", known, "--json").json["data"]["body"] == "--json"


def test_a_choice_that_there_is_not_is_told_plainly(remembering: Program) -> None:
    told = remembering("list", "--scope", "everywhere").err.splitlines()[0]
    assert (
        told == "agent-bridge: Invalid value for '--scope': 'everywhere' is not one of 'project', 'global'."
    )


def test_nothing_found_is_said(remembering: Program) -> None:
    assert remembering("search", "nowhere").err == "No fact fits.\n"
    assert remembering("list", "--tag", "none").err == "No fact fits.\n"


def test_a_reader_that_goes_away(remembering: Program) -> None:
    for number in range(30):
        (remembering.cwd / ".memory" / f"fact{number}.md").write_text(f"{number} " + "long " * 2000)
    process = subprocess.Popen(
        [*remembering.command, "status", "--memory"],
        cwd=remembering.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 128 + signal.SIGPIPE
    process.stderr.close()


def test_control_c(remembering: Program) -> None:
    process = subprocess.Popen(
        [*remembering.command, "add", "-"],
        cwd=remembering.cwd,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A test run in a shell's background starts with SIGINT ignored, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # It reads stdin only after everything is imported: what it has taken from the pipe tells when.
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"x" * 200_000)
    process.stdin.flush()
    # A signal that comes between two reads is seen after the second one, so one may not be enough.
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    assert process.returncode == 130
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_an_error_of_the_system_is_told_plainly(remembering: Program, tmp_path: Path) -> None:
    elsewhere = {"TMPDIR": str(tmp_path)}
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = subprocess.run(
        ["sh", "-c", f'rmdir {gone} && exec "$@"', "sh", *remembering.command, "list"],
        cwd=gone,
        env={**os.environ, **elsewhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (
        2,
        "agent-bridge: The current directory doesn't exist any more.\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_an_unforeseen_error_is_one_line_and_a_file(
    program: Program, sealed_home: Path, tmp_path: Path
) -> None:
    broken = {
        "AGENT_BRIDGE_DEBUG": "",
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    (tmp_path / "sitecustomize.py").write_text(
        "import agent_bridge.projects as projects\ndef broken(*_):\n    raise ZeroDivisionError('boom')\n"
        "projects.find_project = broken\n"
    )
    ran = program("list", env=broken)
    assert ran.code == 1
    assert ran.err.splitlines()[0] == "agent-bridge: Something unexpected went wrong: ZeroDivisionError: boom"
    (written,) = tmp_path.glob("agent-bridge-crash-*.txt")
    assert str(written) in ran.err
    assert "Traceback" in written.read_text()
    as_json = program("list", "--json", env=broken)
    assert as_json.json["errors"][0]["title"].endswith("ZeroDivisionError: boom")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(program: Program, shell: str) -> None:
    ran = program("--show-completion", shell, env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert ran.code == 0
    assert "_COMPLETE" in ran.out


def test_completion_of_ids(remembering: Program) -> None:
    known = remembering.id_of("The harbour is north")
    ran = remembering(
        env={
            "_AGENT_BRIDGE_COMPLETE": "complete_bash",
            "COMP_WORDS": f"agent-bridge show {known[:4]}",
            "COMP_CWORD": "2",
        }
    )
    assert ran.out.split() == [known]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash isn't installed")
def test_bash_completes(remembering: Program, tmp_path: Path) -> None:
    """The printed script in a real shell, which asks the program as installed."""
    known = remembering.id_of("The harbour is north")
    shell = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = tmp_path / "completion.bash"
    script.write_text(remembering("--show-completion", "bash", env=shell).out)
    program = Path(sysconfig.get_path("scripts")) / "agent-bridge"
    asked = (
        'source "$1"; program=$2; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        "set -- $(complete -p agent-bridge); "
        'while [ "$1" != -F ]; do shift; done; "$2" "$program"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    for words, offered in {
        ("un",): {"unshare"},
        ("service", "st"): {"start", "stop", "status"},
        ("show", known[:4]): {known},
        ("list", "--pri"): {"--private"},
    }.items():
        done = subprocess.run(
            ["bash", "-c", asked, "bash", str(script), str(program), "agent-bridge", *words],
            cwd=remembering.cwd,
            capture_output=True,
            text=True,
            check=True,
        )
        assert set(done.stdout.split()) == offered


def test_a_terminal_without_utf8(remembering: Program) -> None:
    remembering("add", "Der Hafen läßt 港 warten")
    ran = remembering("list", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert ran.code == 0
    assert "\\u6e2f" in ran.out
