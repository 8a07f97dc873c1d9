"""What a user gets who installs the package, and what no file of the project may name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"agent-bridge.service": "systemd", "dev.agent-bridge.plist": "launchd"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip builds it from this checkout, unpacked."""
    top = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(top),
        str(ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if built.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"pip can't build a wheel here: {built.stderr.strip()[-300:]}")
    assert built.returncode == 0, built.stderr
    (wheel,) = top.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(top / "unpacked")
    return top / "unpacked"


@pytest.mark.parametrize("name", UNITS)
def test_the_wheel_brings_unit_and_plist(unpacked: Path, name: str) -> None:
    script = (
        "import sys; from agent_bridge.daemon import install; "
        "assert install.__file__.startswith(sys.argv[2]), install.__file__; "
        "sys.stdout.buffer.write(install.shipped(sys.argv[1]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, name, str(unpacked)],
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        cwd=unpacked,
        capture_output=True,
        check=True,
    )
    assert found.stdout == (ROOT / UNITS[name] / name).read_bytes()
    assert (unpacked / "agent_bridge/daemon/units" / name).read_bytes() == found.stdout


def test_the_wheel_brings_the_plugin_for_opencode(unpacked: Path) -> None:
    script = (
        "import sys; from agent_bridge.projection import opencode_plugin as plugin; "
        "assert plugin.__file__.startswith(sys.argv[1]), plugin.__file__; "
        "sys.stdout.buffer.write(plugin.shipped().encode())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(unpacked)],
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        cwd=unpacked,
        capture_output=True,
        check=True,
    )
    source = ROOT / "service/agent_bridge/harnesses/opencode_plugin/agent-bridge.js"
    assert found.stdout == source.read_bytes()


def test_the_wheel_brings_what_clients_are_told_and_the_skill(unpacked: Path) -> None:
    script = (
        "import sys; from agent_bridge.mcp import made; "
        "assert made.__file__.startswith(sys.argv[1]), made.__file__; "
        "files = made.made(); "
        "assert all(path.read_bytes() == content for path, content in files.items()); "
        "print(*files, sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(unpacked)],
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        cwd=unpacked,
        capture_output=True,
        text=True,
        check=True,
    )
    names = {str(Path(line).relative_to(unpacked)) for line in found.stdout.splitlines()}
    assert {"agent_bridge/mcp/catalogue.json", "agent_bridge/harnesses/skill/SKILL.md"} < names
    (points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "agent-bridge-mcp = agent_bridge.mcp.shim.main:main" in points.read_text()


def test_the_wheel_holds_the_package_and_nothing_else(unpacked: Path) -> None:
    assert {path.name.partition("-")[0] for path in unpacked.iterdir()} == {"agent_bridge"}
    wanted = {path.relative_to(ROOT / "service") for path in (ROOT / "service/agent_bridge").rglob("*.py")}
    assert wanted <= {path.relative_to(unpacked) for path in unpacked.rglob("*.py")}
    (names,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert names.read_text().count("= agent_bridge.cli.entry:main") == 3
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))


def test_no_file_names_a_package_registrys_host() -> None:
    hosts = _pip_hosts() | _npm_hosts()
    assert hosts
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    files = [ROOT / os.fsdecode(name) for name in listed if name]
    assert len(files) > 100
    found = {
        str(path): host
        for path in files
        if path.is_file()
        for host in hosts
        if host.encode() in path.read_bytes().lower()
    }
    assert found == {}


def _pip_hosts() -> set[str]:
    """The hosts that pip knows by itself, and those that it is told to use here."""
    script = (
        "import json; from pip._internal.models.index import PyPI; "
        "print(json.dumps([PyPI.url, 'https://' + PyPI.file_storage_domain]))"
    )
    known = json.loads(_printed(sys.executable, "-c", script))
    told = _printed(sys.executable, "-m", "pip", "config", "list").replace("'", " ").split()
    return _hosts([*known, *told])


def _npm_hosts() -> set[str]:
    """The same of npm; none where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        return set()
    asked = (npm, "config", "get", "registry")
    untold = {name: value for name, value in os.environ.items() if not name.lower().startswith("npm_config_")}
    nothing = ("--userconfig=/no/such/file", "--globalconfig=/no/other/file")
    return _hosts([_printed(*asked).strip(), _printed(*asked, *nothing, env=untold).strip()])


def _hosts(addresses: list[str]) -> set[str]:
    found = {urlsplit(address).hostname for address in addresses if "://" in address}
    return {host for host in found if host and host != "localhost" and not host[-1].isdigit()}


def _printed(*command: str, env: dict[str, str] | None = None) -> str:
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=True).stdout
