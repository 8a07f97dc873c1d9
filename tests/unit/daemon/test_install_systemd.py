"""The unit's text: what stands in the shipped one, and what an installed one has instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.daemon.install import shipped
from agent_bridge.daemon.install_systemd import UNIT, Systemd, quoted, render

SHIPPED = shipped(UNIT).decode()


def test_every_directive_has_its_reason() -> None:
    lines = SHIPPED.splitlines()
    for number, line in enumerate(lines):
        if "=" in line and not line.startswith("#") and not line.startswith("Description="):
            above = lines[:number]
            while above and re.match(r"(StartLimit|Restrict|Lock|SystemCall)\w+=", above[-1]):
                above.pop()
            assert above[-1].startswith("#"), line


@pytest.mark.parametrize(
    "line",
    [
        "Type=notify",
        "ExecStart=%h/.local/bin/agent-bridge service run",
        "Restart=on-failure",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "UMask=0022",
        "WantedBy=default.target",
    ],
)
def test_what_the_shipped_unit_promises(line: str) -> None:
    assert SHIPPED.splitlines().count(line) == 1


def test_only_the_path_and_the_environment_are_changed() -> None:
    text = render(SHIPPED, Path("/opt/my tools/agent-bridge"), {"CODEX_HOME": "/c"})
    before, after = SHIPPED.splitlines(), text.splitlines()
    assert set(before) - set(after) == {"ExecStart=%h/.local/bin/agent-bridge service run"}
    assert [line for line in after if line not in before] == [
        'ExecStart="/opt/my tools/agent-bridge" service run',
        "# What was set when the service was installed and the manager doesn't know.",
        'Environment="CODEX_HOME=/c"',
    ]
    assert render(SHIPPED, Path("/p"), {}) == SHIPPED.replace("%h/.local/bin/agent-bridge", '"/p"')


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_a_quoted_word_is_one_line_and_says_the_same(word: str) -> None:
    text = quoted(word)
    assert "\n" not in text
    assert re.fullmatch(r'"(?:[^"\\%]|\\.|%%)*"', text, re.DOTALL)
    unescaped = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    assert unescaped.replace("%%", "%") == word


@pytest.mark.parametrize(
    ("known", "place"),
    [
        ({"HOME": "/h"}, "/h/.config/systemd/user"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/systemd/user"),
        ({"HOME": "/h", "AGENT_BRIDGE_CONFIG_DIR": "/ours"}, "/h/.config/systemd/user"),
    ],
)
def test_the_unit_lies_where_the_manager_looks(
    known: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/of/this/shell")
    monkeypatch.setattr("sys.platform", "linux")
    assert Systemd(known).file == Path(place, UNIT)
