"""What is printed: harmless text, tables into a pipe and at a terminal, the envelope."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.cli.printing import harmless, harmless_line, put, show, tell
from agent_bridge.cli.result import Result, Table, failure, info, warning
from agent_bridge.errors import DuplicateError, RefusedError

TABLE = Table(("id", "type", "tags"), (("a1", "project", "x, y"), ("b2", "user", "untagged")), piped=(0, 2))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ntext\t!", "plain\ntext\t!"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil", "\\u202eevil"),
        ("un\u200bseen\U000e0041\u00ad\ufeff", "un\\u200bseen\\U000e0041\\xad\\ufeff"),
        ("👩\u200d🔧", "👩\u200d🔧"),
        ("é 港 👍", "é 港 👍"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    left = {character for character in harmless(text) if unicodedata.category(character) == "Cc"}
    assert left <= {"\n", "\t"}
    assert not [character for character in harmless_line(text) if unicodedata.category(character) == "Cc"]


def test_a_table_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show(Result("list", view=(TABLE,)), as_json=False)
    assert capsys.readouterr().out == "a1 | x, y\nb2 | untagged\n"


def test_a_table_at_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    show(Result("list", view=(TABLE,)), as_json=False)
    header, _, *rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert header == ["id", "type", "tags"]
    assert rows == [["a1", "project", "x,", "y"], ["b2", "user", "untagged"]]


def test_a_table_that_a_terminal_is_too_narrow_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    rows = (("i" * 36, "a word", "and another text of some length", "more\nof it"),)
    show(Result("list", view=(Table(("id", "one", "two", "three"), rows, piped=(0,)),)), as_json=False)
    assert capsys.readouterr().out == f"{'i' * 36}\n  a word  and another text of some length  more of it\n"


def test_markup_of_the_terminal_library_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(Result("list", view=(Table(("id",), (("[red]x[/red] :smile:",),), piped=(0,)),)), as_json=False)
    assert "[red]x[/red] :smile:" in capsys.readouterr().out


def test_an_empty_table_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(Result("list", view=(Table(("id",), (), piped=(0,)),)), as_json=False)
    assert capsys.readouterr().out == ""


def test_remarks_and_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    error = RefusedError("It can't be", path="/a/b", detail="line 3", remedy="Mend it.")
    result = failure("x", error)._replace(view=("answer",), messages=(info("note"), warning("look")))
    show(result, as_json=False)
    printed = capsys.readouterr()
    assert printed.out == "answer\n"
    assert printed.err == "note\nwarning: look\nagent-bridge: It can't be: /a/b\n  line 3\n  Mend it.\n"


def test_the_envelope_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    result = failure("add", DuplicateError("an-id"), data={"x": ["\x1b", "é", "\udcff"]})
    show(result._replace(messages=(warning("look"),)), as_json=True)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.isascii()
    assert json.loads(printed.out) == {
        "schema": 1,
        "command": "add",
        "data": {"x": ["\x1b", "é", "\udcff"]},
        "messages": [{"level": "warning", "text": "look"}],
        "errors": [
            {
                "code": "duplicate",
                "title": "This is already remembered as an-id.",
                "remedy": "Edit that fact instead.",
            }
        ],
    }


def test_an_error_with_a_path_reads_as_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    show(failure("share", RefusedError("That is no.", path="/x", remedy="Leave it.")), as_json=False)
    assert capsys.readouterr().err == "agent-bridge: That is no: /x\n  Leave it.\n"


def test_an_error_on_one_line() -> None:
    error = RefusedError("A marker is doubled.", path="/x", detail="line\n6", remedy="Repair it.")
    assert error.sentence() == "A marker is doubled: /x (line 6). Repair it."


def test_a_narrow_terminal_gets_escapes_while_a_command_still_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, say in (("stdout", put), ("stderr", tell)):
        narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, name, narrow)
        say("é \ud800")
        assert narrow.buffer.getvalue() == b"\\xe9 \\ud800\n"
