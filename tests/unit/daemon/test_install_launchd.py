"""The plist, shipped and installed, against what launchd.plist(5) says: launchd itself ignores or refuses in
silence. And what an install does with launchctl's answers, from a program that keeps to launchctl(1)."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.daemon.install import ManagerError, shipped
from agent_bridge.daemon.install_launchd import LABEL, Launchd, render
from agent_bridge.daemon.status_server import StatusServer

NAME = f"{LABEL}.plist"
SHIPPED = shipped(NAME)
INSTALLED = render(
    Path("/opt/my tools & more/agent-bridge"),
    Path("/Users/someone"),
    Path("/Users/someone/Library/Logs/agent-bridge/agent-bridge.log"),
    {"CODEX_HOME": "/Users/someone/<codex>", "AGENT_BRIDGE_QUIET_MS": "30"},
)
# launchd.plist(5): the keys that we use, and the types that a wrong one of makes the bootstrap fail.
Type = type | list[type] | dict[Any, type] | None
TYPES: dict[str, Type] = {
    "Label": str,
    "ProgramArguments": [str],
    "RunAtLoad": bool,
    "KeepAlive": {"SuccessfulExit": bool},
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "Umask": int,
    "WorkingDirectory": str,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "EnvironmentVariables": {str: str},
}
both = pytest.mark.parametrize("data", [SHIPPED, INSTALLED], ids=["shipped", "installed"])


@both
def test_keys_and_types_are_launchds(data: bytes) -> None:
    agent = plistlib.loads(data)
    assert [fault for key, value in agent.items() for fault in _faults(key, value, TYPES.get(key))] == []
    assert agent["ProcessType"] in ("Background", "Standard", "Adaptive", "Interactive")
    assert agent["Label"] == LABEL == Path(NAME).stem


@both
def test_no_key_stands_twice(data: bytes) -> None:
    for dictionary in ET.fromstring(data).iter("dict"):  # noqa: S314 - our own file
        keys = [key.text for key in dictionary.findall("key")]
        assert len(keys) == len(set(keys))


@both
def test_how_it_is_kept_alive(data: bytes) -> None:
    agent = plistlib.loads(data)
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert agent["Umask"] == 0o022
    assert agent["ThrottleInterval"] >= 10  # less is ignored


def test_what_the_shipped_one_runs() -> None:
    agent = plistlib.loads(SHIPPED)
    command = 'exec "$HOME/.local/bin/agent-bridge" service run'
    assert agent["ProgramArguments"] == ["/bin/sh", "-c", command]
    # Paths that work for every user can't be written, so none are.
    assert {"StandardOutPath", "StandardErrorPath", "WorkingDirectory", "EnvironmentVariables"}.isdisjoint(
        agent
    )


def test_every_key_of_the_shipped_one_has_its_reason() -> None:
    text = SHIPPED.decode()
    for key in plistlib.loads(SHIPPED):
        before = text[: text.index(f"<key>{key}</key>")].rstrip()
        assert before.endswith("-->"), key


def test_the_installed_one_has_everything_written_out() -> None:
    agent = plistlib.loads(INSTALLED)
    assert agent["ProgramArguments"] == ["/opt/my tools & more/agent-bridge", "service", "run"]
    paths = [agent["ProgramArguments"][0], agent["WorkingDirectory"], agent["StandardOutPath"]]
    assert agent["StandardErrorPath"] == agent["StandardOutPath"]
    for path in paths:
        assert path.startswith("/")
        assert "~" not in path
        assert "$" not in path
    assert agent["EnvironmentVariables"]["CODEX_HOME"] == "/Users/someone/<codex>"
    assert "EnvironmentVariables" not in plistlib.loads(render(Path("/p"), Path("/h"), Path("/l"), {}))


@both
def test_another_reader_reads_the_same(data: bytes, tmp_path: Path) -> None:
    if shutil.which("plistutil") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("plistutil is missing (libplist-utils)")
        pytest.skip("plistutil is not installed (libplist-utils)")
    (tmp_path / "a.plist").write_bytes(data)
    for source, form, target in (("a.plist", "bin", "b.plist"), ("b.plist", "xml", "c.plist")):
        command = ["plistutil", "-i", source, "-f", form, "-o", target]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "b.plist").read_bytes().startswith(b"bplist00")
    assert plistlib.loads((tmp_path / "c.plist").read_bytes()) == plistlib.loads(data)


class Launchctl:
    """A `launchctl` first in PATH: writes its words down and answers as told, else by what is loaded."""

    def __init__(self, place: Path) -> None:
        self.place = place
        program = place / "launchctl"
        program.write_text(
            f"#!{sys.executable} -IS\n{Path(__file__).with_name('fake_launchctl.py').read_text()}"
        )
        program.chmod(0o755)

    def answer(self, verb: str, *codes: int) -> None:
        """Have the next calls of `verb` end with these exit codes and change nothing."""
        (self.place / f"{verb}.codes").write_text("".join(f"{code}\n" for code in codes))

    def called(self) -> list[str]:
        """The calls so far, without the questions (`print`)."""
        return [line for line in self.asked() if not line.startswith("print ")]

    def asked(self) -> list[str]:
        log = self.place / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def launchctl(short_tmp: Path, sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Launchctl:
    place = short_tmp / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    # On a Mac it follows from HOME; launchd hands down no XDG_RUNTIME_DIR.
    monkeypatch.setenv("AGENT_BRIDGE_RUNTIME_DIR", str(short_tmp / "run/own"))
    return Launchctl(place)


@pytest.fixture
def agent(launchctl: Launchctl) -> Iterator[Launchd]:
    """launchd, with a status socket that answers for what it starts."""
    server = StatusServer(lambda: {"pid": 4711})
    server.start()
    yield Launchd(rest=0.001)
    server.stop()


UID = os.getuid()
TARGET = f"gui/{UID}/{LABEL}"


def _bootstrap(agent: Launchd) -> str:
    return f"bootstrap gui/{UID} {agent.file}"


def test_install_unloads_enables_loads(agent: Launchd, launchctl: Launchctl) -> None:
    done = agent.install(Path("/opt/agent-bridge"), {})
    assert launchctl.called() == [f"bootout {TARGET}", f"enable {TARGET}", _bootstrap(agent)]
    assert (done.file, done.pid) == (agent.file, 4711)
    assert agent.file.stat().st_mode & 0o777 == 0o644  # launchd refuses what others may write
    written = plistlib.loads(agent.file.read_bytes())
    assert Path(written["StandardErrorPath"]).parent.is_dir()  # launchd makes the file, not its folder


def test_a_second_install_waits_until_the_first_is_unloaded(agent: Launchd, launchctl: Launchctl) -> None:
    agent.install(Path("/opt/agent-bridge"), {})
    (launchctl.place / "lingers").write_text("3")  # so many questions long after bootout
    agent.install(Path("/opt/other"), {})
    calls = launchctl.asked()
    again = calls[calls.index(_bootstrap(agent)) + 2 :]
    assert again[:2] == [f"print gui/{UID}", f"bootout {TARGET}"]
    assert again[2:6] == [f"print {TARGET}"] * 4
    assert again[6:] == [f"enable {TARGET}", _bootstrap(agent), f"print {TARGET}"]


@pytest.mark.parametrize("codes", [(5,), (37,), (5, 37, 5)])
def test_bootstrap_is_tried_again_where_that_helps(
    agent: Launchd, launchctl: Launchctl, codes: tuple[int, ...]
) -> None:
    launchctl.answer("bootstrap", *codes)
    agent.install(Path("/opt/agent-bridge"), {})
    assert launchctl.called().count(_bootstrap(agent)) == len(codes) + 1


@pytest.mark.parametrize(("codes", "tries"), [((5,) * 9, 6), ((119,), 1), ((125,), 1), ((78,), 1)])
def test_what_doesnt_help_is_told(
    agent: Launchd, launchctl: Launchctl, codes: tuple[int, ...], tries: int
) -> None:
    launchctl.answer("bootstrap", *codes)
    with pytest.raises(ManagerError, match="didn't take") as refused:
        agent.install(Path("/opt/agent-bridge"), {})
    assert launchctl.called().count(_bootstrap(agent)) == tries
    assert f"Bootstrap failed: {codes[0]}" in refused.value.detail
    assert "agent-bridge up" in refused.value.remedy


@pytest.mark.parametrize("code", [3, 113])
def test_nothing_to_unload_is_fine(agent: Launchd, launchctl: Launchctl, code: int) -> None:
    launchctl.answer("bootout", code)
    agent.install(Path("/opt/agent-bridge"), {})
    assert agent.is_installed()


def test_with_nobody_at_the_screen_the_file_is_enough(agent: Launchd, launchctl: Launchctl) -> None:
    launchctl.answer("print", 125)
    done = agent.install(Path("/opt/agent-bridge"), {})
    assert launchctl.asked() == [f"print gui/{UID}"]
    assert done.pid is None
    assert "next login" in done.remarks[-1]
    assert agent.is_installed()


def test_the_other_verbs(agent: Launchd, launchctl: Launchctl) -> None:
    agent.install(Path("/opt/agent-bridge"), {})
    already = len(launchctl.called())
    agent.restart()
    agent.stop()
    agent.start()
    assert launchctl.called()[already:] == [
        f"kickstart -k {TARGET}",
        f"kill SIGTERM {TARGET}",
        f"kickstart {TARGET}",
    ]
    assert agent.uninstall() is True
    assert not agent.file.exists()
    assert launchctl.called()[-1] == f"bootout {TARGET}"
    assert agent.uninstall() is False


def test_start_loads_what_isnt_loaded(agent: Launchd, launchctl: Launchctl) -> None:
    agent.start()
    assert launchctl.called() == [f"enable {TARGET}", _bootstrap(agent)]


def _faults(key: str, value: object, wanted: Type) -> list[str]:
    if wanted is None:
        return [f"{key}: not a key of launchd that we know"]
    if isinstance(wanted, list):
        items = value if isinstance(value, list) and value else [None]
        return [fault for item in items for fault in _faults(f"{key}[]", item, wanted[0])]
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return [f"{key}: not a dictionary"]
        return [
            fault
            for name, item in value.items()
            for fault in _faults(f"{key}.{name}", item, wanted.get(name, wanted.get(str)))
        ]
    return [] if type(value) is wanted else [f"{key}: {type(value).__name__} for {wanted.__name__}"]


def test_the_table_finds_what_launchd_would_not_say() -> None:
    wrong = {"KeepALive": True, "RunAtLoad": "true", "ProgramArguments": [1], "KeepAlive": {"X": True}}
    faults = [fault for key, value in wrong.items() for fault in _faults(key, value, TYPES.get(key))]
    assert [fault.partition(":")[0] for fault in faults] == [
        "KeepALive",
        "RunAtLoad",
        "ProgramArguments[]",
        "KeepAlive.X",
    ]
