"""Harnesses of other distributions, really installed: code and a `.dist-info` in a directory on the path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import readme
from agent_bridge.config import load_settings
from agent_bridge.harnesses import all_harnesses, entry_points, guarded
from agent_bridge.harnesses.base import Harness, Scope
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.projection import requests, setup
from agent_bridge.projection.engine import Engine

ROW = """
from agent_bridge.harnesses.row import OwnFile, Row

ROW = Row(
    name="thing",
    title="Thing",
    source="https://thing.example/docs",
    as_of="2026-11-29",
    homes=(".thing",),
    reads=(),
    own=OwnFile(".thing/rules/agent-bridge.md", header="---\\nalways: true\\n---\\n\\n"),
)
"""
HARNESS = """
from agent_bridge.harnesses.base import Carrier, Harness, Mode, Scope


class Thing(Harness):
    name = "thing"
    title = "Thing"

    def detect(self, env):
        return True

    def projection_mode(self, scope):
        return Mode.RENDER

    def carriers(self, site, scope):
        {body}
"""
CARRIER = (
    "return (Carrier(site.checkout / {name!r}, 'block', scope, ('thing',), create=True, local=True),) "
    "if scope is Scope.PROJECT else ()"
)

Install = Callable[..., Path]


@pytest.fixture
def install(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution with one module and its entry points; it is on this process's path then."""
    modules: list[str] = []
    monkeypatch.setattr(entry_points, "PATIENCE_S", 60.0)  # a busy machine is not what is looked at here

    def build(code: str, points: dict[str, str], module: str = "thing_for_agents") -> Path:
        place = short_tmp / "site" / module
        info = place / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[agent_bridge.harnesses]", *lines, ""]))
        (place / f"{module}.py").write_text(code)
        modules.append(module)
        monkeypatch.syspath_prepend(str(place))
        return place

    ends = threading.Event()
    monkeypatch.setattr(sys, "thing_ends", ends, raising=False)
    yield build
    ends.set()
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def root(sealed_home: Path) -> Path:
    root = sealed_home / "work"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def the_rest(harnesses: tuple[Harness, ...]) -> list[str]:
    """The names of those that aren't our own."""
    first = [harness.name for harness in harnesses].index("devin") + 1
    return [harness.name for harness in harnesses[first:]]


def test_without_any_there_are_only_ours() -> None:
    assert the_rest(all_harnesses()) == []


def test_a_row_of_another_distribution_works_like_ours(
    install: Install, root: Path, sealed_home: Path
) -> None:
    install(ROW, {"thing": "thing_for_agents:ROW"})
    (sealed_home / ".thing").mkdir()
    settings = load_settings()
    project = setup.describe(root)
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add("Staging is reset every Monday.")
    report = engine.reconcile()

    assert the_rest(all_harnesses()) == ["thing"]
    text = (root / ".thing/rules/agent-bridge.md").read_text()
    assert text.startswith("---\nalways: true\n---\n\n<!-- agent-bridge:memory:start")
    assert "Staging is reset every Monday." in text
    assert not [notice for notice in report.notices if notice.code == "harness-broken"]
    setup.eject(project, settings)
    assert not (root / ".thing").exists()


def test_the_readmes_example_works(install: Install, sealed_home: Path) -> None:
    section = readme.TEXT.partition("<!-- entry point -->")[2].partition("<!-- /entry point -->")[0]
    points = tomllib.loads(section.partition("```toml\n")[2].partition("```")[0])
    code = section.partition("```python\n")[2].partition("```")[0]
    install(code, points["project"]["entry-points"][entry_points.GROUP])

    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]

    assert not thing.detect(os.environ)
    (sealed_home / ".thing").mkdir()
    assert thing.detect(os.environ)
    assert len(code.splitlines()) <= 18


@pytest.mark.parametrize(
    "tail",
    ["MORE = [ROW]", "MORE = (ROW,)", "def MORE():\n    return [ROW]\n", "def MORE():\n    return ROW\n"],
)
def test_several_or_a_factory(install: Install, tail: str) -> None:
    install(f"{ROW}\n{tail}", {"thing": "thing_for_agents:MORE"})

    assert the_rest(all_harnesses()) == ["thing"]


@pytest.mark.parametrize("value", ["Thing", "Thing()"])
def test_a_harness_as_class_or_instance(install: Install, value: str, root: Path) -> None:
    code = HARNESS.format(body=CARRIER.format(name="THING.md")) + f"\nIT = {value}\n"
    install(code, {"thing": "thing_for_agents:IT"})
    settings = load_settings()
    project = setup.describe(root)
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()

    assert "Staging is reset every Monday." in (root / "THING.md").read_text()


BROKEN: dict[str, tuple[str, str, str]] = {
    "no such module": ("", "no_such_module:ROW", "ModuleNotFoundError"),
    "no such name": ("", "thing_for_agents:ROW", "AttributeError"),
    "fails while it is imported": ("raise RuntimeError('no luck')", "thing_for_agents:ROW", "no luck"),
    "exits": ("raise SystemExit(3)", "thing_for_agents:ROW", "SystemExit"),
    "bad syntax": ("def", "thing_for_agents:ROW", "SyntaxError"),
    "something else": ("ROW = 7", "thing_for_agents:ROW", "a int, not"),
    "the class of a row": (
        "from agent_bridge.harnesses.row import Row as ROW",
        "thing_for_agents:ROW",
        "TypeError",
    ),
    "half a harness": (
        "from agent_bridge.harnesses.base import Harness\nclass ROW(Harness):\n    name = 'thing'\n",
        "thing_for_agents:ROW",
        "TypeError",
    ),
    "a harness without a title": (
        HARNESS.format(body="return ()").replace("title", "tittle"),
        "thing_for_agents:Thing",
        "a Thing, not",
    ),
    "a row that isn't right": (
        ROW.replace('".thing"', '"../.."'),
        "thing_for_agents:ROW",
        "its row isn't right",
    ),
    "a taken name": (ROW.replace('name="thing"', 'name="codex"'), "thing_for_agents:ROW", "is taken"),
    "never comes back": (
        "import sys\nsys.thing_ends.wait(60)",
        "thing_for_agents:ROW",
        "wasn't loaded within",
    ),
}


@pytest.mark.parametrize(("code", "value", "word"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_is_told_and_breaks_nothing(
    code: str, value: str, word: str, install: Install, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "PATIENCE_S", 0.3)
    install(code, {"thing": value})
    install(ROW.replace('"thing"', '"other"'), {"other": "other_for_agents:ROW"}, module="other_for_agents")
    settings = load_settings()
    project = setup.describe(root)
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add("Staging is reset every Monday.")
    report = engine.reconcile()

    assert "Staging is reset every Monday." in (root / "AGENTS.md").read_text()
    told = [notice.text for notice in report.notices if notice.code == "harness-broken"]
    assert len(told) == 1
    assert word in told[0]
    assert "thing of thing_for_agents" in told[0]
    assert [name for name in the_rest(all_harnesses()) if not name.startswith("entry-point:")] == ["other"]


def test_two_of_one_name(install: Install) -> None:
    install(ROW, {"thing": "thing_for_agents:ROW"})
    install(ROW, {"another": "other_for_agents:ROW"}, module="other_for_agents")

    names = the_rest(all_harnesses())

    assert names.count("thing") == 1
    assert len(names) == 2


WRONG: dict[str, str] = {
    "raises": "raise RuntimeError('no luck')",
    "returns nothing": "return None",
    "returns something else": "return ('AGENTS.md',)",
    "a text for a path": "return (Carrier('THING.md', 'block', scope, ('thing',), create=True, local=True),)",
    "outside of the project": CARRIER.format(name="../THING.md"),
    "an absolute path": CARRIER.format(name="/tmp/THING.md"),
    "Git's own": CARRIER.format(name=".git/config"),
    "the memory": CARRIER.format(name=".memory/THING.md"),
    "the project itself": CARRIER.format(name=""),
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_a_wrong_answer_counts_as_none_and_is_told(body: str, install: Install, root: Path) -> None:
    install(HARNESS.format(body=body), {"thing": "thing_for_agents:Thing"})
    settings = load_settings()
    project = setup.describe(root)
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()
    report = engine.reconcile()

    assert "Staging is reset every Monday." in (root / "AGENTS.md").read_text()
    assert "Staging" not in (root / ".git/config").read_text()
    told = [notice.text for notice in report.notices if notice.code == "harness-broken"]
    assert len(told) == 1
    assert "failed at carriers" in told[0]
    assert not list(root.parent.glob("THING.md"))


def test_every_answer_that_raises_is_a_harmless_one(install: Install, root: Path) -> None:
    methods = [
        name
        for name in dir(Harness)
        if not name.startswith("_") and callable(getattr(Harness, name)) and name != "mro"
    ]
    body = "\n".join(
        f"    def {name}(self, *words):\n        raise RuntimeError('{name}')\n" for name in methods
    )
    code = "from agent_bridge.harnesses.base import Harness\nclass Thing(Harness):\n"
    install(f"{code}    name = title = 'thing'\n{body}", {"thing": "thing_for_agents:Thing"})
    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]
    project = setup.describe(root)
    site = observe_site(project, root, harnesses=(thing,))
    file = site.file("AGENTS.md")
    words: dict[str, tuple[object, ...]] = {
        "detect": ({},),
        "projection_mode": (Scope.PROJECT,),
        "config_wanted": (site, {}),
        "names_below": (site, {}),
        "files_wanted": (site, {}),
        "follows": (site, file),
        "carriers": (site, Scope.PROJECT),
        "native_memory": ({},),
        "hook_edits": (site, "x"),
        "mcp_edits": (site, ("x",)),
        "reads": (site, root),
    }
    for name in methods:
        getattr(thing, name)(*words.get(name, (site,)))  # none raises

    told = {notice.text.partition("failed at ")[2].partition(":")[0] for notice in thing.notices(site)}

    assert told == set(methods)


def test_one_that_recovers_is_no_longer_told(install: Install, root: Path) -> None:
    body = "import os\n        if 'THING' in os.environ: raise RuntimeError('no luck')\n        return ()"
    install(HARNESS.format(body=body), {"thing": "thing_for_agents:Thing"})
    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]
    site = observe_site(setup.describe(root), root)
    os.environ["THING"] = "1"
    try:
        thing.carriers(site, Scope.PROJECT)
        assert len(thing.notices(site)) == 1
    finally:
        del os.environ["THING"]
    thing.carriers(site, Scope.PROJECT)

    assert thing.notices(site) == ()


def test_a_slow_one_is_asked_three_times(
    install: Install, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "SLOW_S", 0.05)
    body = "import time\n        CALLS.append(1)\n        time.sleep(0.1)\n        return ()"
    code = "CALLS = []\n" + HARNESS.format(body=body)
    install(code, {"thing": "thing_for_agents:Thing"})
    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]
    site = observe_site(setup.describe(root), root)
    for _ in range(5):
        thing.carriers(site, Scope.PROJECT)

    assert len(sys.modules["thing_for_agents"].CALLS) == guarded.SLOW_TIMES
    assert "isn't asked any more" in thing.notices(site)[0].text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import sys; sys.exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import threading; threading.Event().wait()", "no answer"),
    ],
)
def test_one_that_ends_the_program_or_never_answers_ends_nothing(
    body: str, why: str, install: Install, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "PATIENCE_S", 0.2)
    install(HARNESS.format(body=body), {"thing": "thing_for_agents:Thing"})
    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]
    site = observe_site(setup.describe(root), root)

    assert thing.carriers(site, Scope.PROJECT) == ()
    assert why in thing.notices(site)[0].text


def test_what_one_prints_is_no_part_of_our_answer(
    install: Install, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(HARNESS.format(body="print('hello'); return ()"), {"thing": "thing_for_agents:Thing"})
    (thing,) = [harness for harness in all_harnesses() if harness.name == "thing"]
    site = observe_site(setup.describe(root), root)
    thing.carriers(site, Scope.PROJECT)
    print("ours")

    printed = capsys.readouterr()
    assert printed.out == "ours\n"
    assert "hello" in printed.err


def test_the_program_finds_it_by_pythonpath(install: Install, root: Path, sealed_home: Path) -> None:
    place = install(ROW, {"thing": "thing_for_agents:ROW"})
    (sealed_home / ".thing").mkdir()
    program = shutil.which("agent-bridge", path=str(Path(sys.executable).parent))
    assert program is not None
    environment = {**os.environ, "PYTHONPATH": str(place)}

    def run(*words: str) -> dict[str, object]:
        done = subprocess.run(
            [program, *words, "--json"], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)["data"]  # type: ignore[no-any-return]

    run("init", "--yes")
    run("add", "Staging is reset every Monday.")
    run("sync")
    assert "Staging is reset every Monday." in (root / ".thing/rules/agent-bridge.md").read_text()
    run("eject", "--yes")
    assert not (root / ".thing").exists()


def test_what_is_asked_for_as_all_is_neither_a_row_nor_somebody_elses(install: Install) -> None:
    install(ROW, {"thing": "thing_for_agents:ROW", "broken": "thing_for_agents:NOTHING"})

    names = [harness.name for harness in requests.named("all")]

    assert "codex" in names
    assert {"thing", "cursor"}.isdisjoint(names)
    assert not [name for name in names if "broken" in name]
    assert [harness.name for harness in requests.named("thing")] == ["thing"]
    assert [harness.name for harness in requests.named("cursor")] == ["cursor"]


def test_the_list_shows_them_and_what_is_wrong(install: Install, root: Path) -> None:
    place = install(ROW, {"thing": "thing_for_agents:ROW", "broken": "thing_for_agents:NOTHING"})
    done = subprocess.run(
        [sys.executable, "-m", "agent_bridge.cli.entry", "harnesses", "--json"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    (thing,) = [one for one in document["data"]["harnesses"] if one["name"] == "thing"]

    assert (thing["source"], thing["way"]) == (
        "https://thing.example/docs",
        ".thing/rules/agent-bridge.md",
    )
    assert [message["text"] for message in document["messages"] if "broken of" in message["text"]]
    assert not [one for one in document["data"]["harnesses"] if "broken" in one["name"]]


@pytest.mark.parametrize("words", [("--version",), ("status",)])
def test_what_answers_fast_loads_no_harness(words: tuple[str, ...], install: Install, root: Path) -> None:
    place = install(f"open({str(root / 'loaded')!r}, 'w').close()\n{ROW}", {"thing": "thing_for_agents:ROW"})
    environment = {**os.environ, "PYTHONPATH": str(place)}
    code = (
        "import sys\nfrom agent_bridge.cli.entry import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert not [name for name in sys.modules if name.startswith('agent_bridge.harnesses')], 'loaded'\n"
        "print('none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1:] == ["none"], done.stderr
    assert not (root / "loaded").exists()
