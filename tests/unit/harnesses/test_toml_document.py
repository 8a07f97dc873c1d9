"""A TOML file of a stranger's costs little, and what is wrong with it is told as such."""

from __future__ import annotations

import time
import tomllib

import pytest

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import codex_config
from agent_bridge.harnesses.config_edit import toml_add_element, toml_get
from agent_bridge.harnesses.toml_document import MOST_PARTS, load_toml

_DEEP = ".".join(["a"] * (MOST_PARTS + 1))


@pytest.mark.parametrize(
    "text",
    [
        f"b = 1\n{_DEEP} = 1\n",
        f"b = 1\n[{_DEEP}]\n",
        f"b = 1\n[[{_DEEP}]]\n",
        f"b = 1\nc = {{ {_DEEP} = 1 }}\n",
        "b = 1\n" + '"a.b" . ' * MOST_PARTS + "'c' = 1\n",
        "b = 1\nc = " + "9" * 5000 + "\n",
    ],
)
def test_what_would_take_all_memory_or_crash_is_no_valid_file(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=r"\(at line 2, column \d+\)"):
        load_toml(text)
    with pytest.raises(RefusedError, match="line 2"):
        toml_get(text.encode(), ("b",))
    with pytest.raises(RefusedError, match="line 2"):
        toml_add_element(text.encode(), ("hooks", "SessionStart"), {"matcher": "x"})
    values, problem = codex_config.parse(text.encode())
    assert values == {}
    assert "line 2" in problem


def test_what_people_write_is_read() -> None:
    within = ".".join(["a"] * MOST_PARTS)
    told = "One is. Two are, e.g. this. " * 100
    text = f'{within} = 1\nb = """\n{told}\n"""\nc = "{"x.y " * 100}"\nd = {"9" * 300}\n'
    assert load_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize("piece", ["a.", "a", "'", '"', ". ", '"\\', "a .\t", "'a'.", "_"])
def test_looking_takes_no_longer_than_the_text_is(piece: str) -> None:
    started = time.process_time()
    with pytest.raises(tomllib.TOMLDecodeError):
        load_toml(piece * 100_000)
    assert time.process_time() - started < 10.0
