"""Elements of ours in arrays of somebody's settings: recorded, put back once, taken out alone."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from agent_bridge.harnesses.base import Json, KeyEdit
from agent_bridge.projection import apply, housekeeping, undo
from agent_bridge.projection.ledger import Entry, KeyRecord, Kind, Ledger

KEY = ("hooks", "SessionStart")
ONE = {"hooks": [{"type": "command", "command": "one"}]}
TWO = {"hooks": [{"type": "command", "command": "two"}]}
USERS = {
    "json": '{\n  "hooks": {\n    "SessionStart": [\n      {"matcher": "x"} // mine\n    ]\n  }\n}\n',
    "toml": "model = 'm' # mine\n\n[[hooks.SessionStart]]\nmatcher = 'x' # mine\n\n[tui]\n",
}
FORMATS = pytest.mark.parametrize("form", ["json", "toml"])
Form = Literal["json", "toml"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state")


def element(path: Path, form: Form, value: Json, key: tuple[str, ...] = KEY) -> KeyEdit:
    return KeyEdit(path, form, key, value, why="a test", element=True)


def place(tmp_path: Path, form: Form, text: str | None) -> Path:
    path = tmp_path / "home" / f"settings.{form}"
    if text is not None:
        path.parent.mkdir()
        path.write_text(text)
    return path


def hooks(path: Path) -> list[object]:
    """What the array of hooks holds."""
    data = path.read_text()
    lines = [line.partition(" //")[0] for line in data.splitlines()]
    document = tomllib.loads(data) if path.suffix == ".toml" else json.loads("\n".join(lines))
    found = document["hooks"]["SessionStart"]
    assert isinstance(found, list)
    return found


def undo_all(ledger: Ledger) -> list[str]:
    return [undo.undo(ledger, entry).outcome for entry in reversed(ledger.entries())]


@FORMATS
@pytest.mark.parametrize("first", ["theirs", "empty", "missing"])
def test_elements_are_added_beside_the_users_and_undone_to_the_byte(
    ledger: Ledger, tmp_path: Path, form: Form, first: str
) -> None:
    text = {"theirs": USERS[form], "empty": "", "missing": None}[first]
    path = place(tmp_path, form, text)
    edits = [element(path, form, ONE), element(path, form, TWO)]
    assert apply.edit_keys(ledger, path, edits)
    assert hooks(path)[-2:] == [ONE, TWO]
    assert len(hooks(path)) == (3 if first == "theirs" else 2)
    assert not apply.edit_keys(ledger, path, edits)
    assert not apply.edit_keys(Ledger(tmp_path / "state"), path, list(reversed(edits)))
    undo_all(ledger)
    assert (path.read_text() if path.exists() else None) == text
    assert path.parent.exists() == (first != "missing")
    assert ledger.entries() == ()


@FORMATS
def test_only_ours_go_where_the_user_went_on_writing(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, None)
    apply.edit_keys(ledger, path, [element(path, form, ONE), element(path, form, TWO)])
    theirs = element(path, form, {"matcher": "theirs"})
    path.write_bytes(apply.edited(path.read_bytes(), theirs))
    assert undo_all(ledger) == ["restored"]
    assert hooks(path) == [{"matcher": "theirs"}]


@FORMATS
def test_a_made_array_and_file_go_though_the_user_took_one_of_ours(
    ledger: Ledger, tmp_path: Path, form: Form
) -> None:
    path = place(tmp_path, form, None)
    apply.edit_keys(ledger, path, [element(path, form, ONE), element(path, form, TWO)])
    path.write_bytes(apply.remove_element(form, path.read_bytes(), KEY, ONE, made=False))
    assert hooks(path) == [TWO]
    assert undo_all(ledger) == ["removed"]
    assert not path.parent.exists()


@FORMATS
def test_an_equal_element_of_the_users_is_not_ours(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, USERS[form])
    assert not apply.edit_keys(ledger, path, [element(path, form, {"matcher": "x"})])
    assert ledger.entries() == ()
    assert path.read_text() == USERS[form]


@FORMATS
def test_two_kinds_of_edits_of_one_file(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, USERS[form])
    other = KeyEdit(path, form, ("hooks", "off"), False, why="a test")
    stop = element(path, form, ONE, ("hooks", "Stop"))
    apply.edit_keys(ledger, path, [element(path, form, ONE), other, stop])
    assert hooks(path)[1:] == [ONE]
    path.write_text(path.read_text() + "\n")  # so that it is undone piece by piece
    undo_all(ledger)
    assert path.read_text() == USERS[form] + "\n"


@FORMATS
def test_one_of_two_elements_can_be_taken_back(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, None)
    edits = [element(path, form, ONE), element(path, form, TWO)]
    apply.edit_keys(ledger, path, edits)
    undo.undo_keys(ledger, path, edits[:1])
    assert hooks(path) == [TWO]
    path.write_text(path.read_text() + "\n")
    assert undo_all(ledger) == ["removed"]  # the array was made for the one that went first
    assert not path.exists()


@FORMATS
def test_an_element_that_went_missing_is_put_back_once(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, USERS[form])
    apply.edit_keys(ledger, path, [element(path, form, ONE), element(path, form, TWO)])
    assert housekeeping.check_keys(ledger) == []
    path.write_text(USERS[form])
    assert [notice.code for notice in housekeeping.check_keys(ledger)] == ["key-restored"] * 2
    assert hooks(path)[1:] == [ONE, TWO]
    path.write_text(USERS[form])
    assert [notice.code for notice in housekeeping.check_keys(ledger)] == ["key-respected"] * 2
    assert path.read_text() == USERS[form]


@FORMATS
def test_an_array_that_went_missing_is_made_again_and_goes_with_us(
    ledger: Ledger, tmp_path: Path, form: Form
) -> None:
    path = place(tmp_path, form, USERS[form])
    apply.edit_keys(ledger, path, [element(path, form, ONE)])
    rest = '{\n  "a": 1\n}\n' if form == "json" else "a = 1\n"
    path.write_text(rest)
    housekeeping.check_keys(ledger)
    assert hooks(path) == [ONE]
    undo_all(ledger)
    assert path.read_text() == rest


@FORMATS
def test_what_is_no_array_any_more_is_its_users_word(ledger: Ledger, tmp_path: Path, form: Form) -> None:
    path = place(tmp_path, form, None)
    apply.edit_keys(ledger, path, [element(path, form, ONE)])
    text = '{"hooks": {"SessionStart": "off"}}' if form == "json" else "hooks.SessionStart = 1979-05-27\n"
    path.write_text(text)
    assert [notice.code for notice in housekeeping.check_keys(ledger)] == ["key-respected"]
    assert undo_all(ledger) == ["untouched"]
    assert path.read_text() == text


def test_an_old_ledger_is_read(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    record = {"key": ["a", "b"], "former": "1", "ours": "2"}
    entry = {"path": "/p/settings.json", "kind": "keys", "format": "json", "keys": [record]}
    (state / "ledger.json").write_text(json.dumps({"schema": 1, "entries": [entry]}))
    (found,) = Ledger(state).entries()
    assert found.keys == (KeyRecord(("a", "b"), "1", "2"),)
    ours = KeyRecord(("c",), None, '"x"', element=True)
    Ledger(state).put(replace(found, kind=Kind.KEYS, keys=(*found.keys, ours)))
    assert Ledger(state).entries()[0].keys[1] == ours


@pytest.mark.parametrize("theirs", ["", '{\n  "mine": 1\n}\n', '{"hooks": {}, "mine": 1}'])
def test_an_object_that_was_made_around_it_goes_though_a_program_laid_the_file_out_anew(
    tmp_path: Path, ledger: Ledger, theirs: str
) -> None:
    path = place(tmp_path, "json", theirs or None)
    nested = KeyEdit(path, "json", ("a", "b", "c"), value=1, why="a test")
    apply.edit_keys(ledger, path, [element(path, "json", ONE), nested])
    path.write_text(json.dumps({**json.loads(path.read_text()), "new": [1]}, indent=4))

    undo.undo_keys(ledger, path, [element(path, "json", ONE)])
    assert ("hooks" in json.loads(path.read_text())) == ("hooks" in theirs)
    assert json.loads(path.read_text())["a"] == {"b": {"c": 1}}
    undo_all(ledger)

    assert json.loads(path.read_text()) == {**json.loads(theirs or "{}"), "new": [1]}


class _KilledError(Exception):
    """Stands for kill -9: nothing that would come after happens."""


class _Ledger(Ledger):
    """A ledger whose process is killed right after it was written so many times."""

    writes = 99

    def put(self, entry: Entry) -> None:
        super().put(entry)
        self.writes -= 1
        if not self.writes:
            raise _KilledError


@FORMATS
@pytest.mark.parametrize("writes", [1, 2])
def test_a_kill_while_some_of_ours_are_taken_back_leaves_none_behind(
    tmp_path: Path, form: Form, writes: int
) -> None:
    ledger = _Ledger(tmp_path / "state")
    path = place(tmp_path, form, USERS[form])
    apply.edit_keys(ledger, path, [element(path, form, ONE), element(path, form, TWO)])
    ledger.writes = writes
    with pytest.raises(_KilledError):
        undo.undo_keys(ledger, path, [element(path, form, TWO)])
    again = Ledger(tmp_path / "state")
    assert housekeeping.check_keys(again) == [] or writes == 2
    assert (TWO in hooks(path)) == (writes == 1)
    undo_all(again)
    assert path.read_text() == USERS[form]
