"""What `explain` says is read is what the real clients put into the prompt: files, order, sizes, cuts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.product import Product

Layout = Mapping[str, str | None]
"""Names below the project (`~/`: below the home, `^/`: beside the project) with their texts. `-> X` makes a
symlink to X, None a directory; `{name}` becomes a text that only this file has, `{root}` the project."""

_BOTH = '{{"pluginConfigs": {{"cc-plugin-agents-md@builtin": {{"options": {{"instructionFiles": "{}"}}}}}}}}'
_FALLBACK = 'project_doc_fallback_filenames = ["TEAM.md", "CLAUDE.md"]\n'
_EXCLUDES = '{"claudeMdExcludes": ["**/CLAUDE.md"]}'

LAYOUTS: Mapping[str, Layout] = {
    "nothing": {},
    "agents": {"AGENTS.md": "{name}"},
    "claude": {"CLAUDE.md": "{name}"},
    "both": {"AGENTS.md": "{name}", "CLAUDE.md": "{name}"},
    "both-by-setting": {
        "AGENTS.md": "{name}",
        "CLAUDE.md": "{name}",
        "sub/AGENTS.md": "{name}",
        "~/.claude/settings.json": _BOTH.format("claude-md-and-agents-md"),
    },
    "claude-only-by-setting": {
        "AGENTS.md": "{name}",
        "~/.claude/settings.json": _BOTH.format("claude-md"),
    },
    "import": {
        "AGENTS.md": "{name}",
        "CLAUDE.md": "{name}\n\n@AGENTS.md\n@docs/more.md",
        "docs/more.md": "{name}",
    },
    "import-from-below": {
        "CLAUDE.md": "{name}\n@sub/x.md",
        "sub/x.md": "{name}\n@y.md",
        "sub/y.md": "{name}",
    },
    "import-of-the-user": {
        "~/.claude/CLAUDE.md": "{name}\n@~/mine.md",
        "~/mine.md": "{name}",
        "AGENTS.md": "{name}",
    },
    "symlink": {"AGENTS.md": "{name}", "CLAUDE.md": "-> AGENTS.md"},
    "dangling": {"AGENTS.md": "{name}", "CLAUDE.md": "-> nowhere.md"},
    "in-folder": {"AGENTS.md": "{name}", ".claude/CLAUDE.md": "{name}"},
    "local": {"AGENTS.md": "{name}", "CLAUDE.local.md": "{name}"},
    "empty-claude": {"AGENTS.md": "{name}", "CLAUDE.md": "<!-- {name} -->\n"},
    "rules": {
        "AGENTS.md": "{name}",
        ".claude/rules/team.md": "---\ntags: [a]\n---\n{name}",
        ".claude/rules/deep/more.md": "{name}\n\n<!-- a comment -->\n",
        ".claude/rules/python.md": "---\npaths: ['*.py']\n---\n{name}",
        "~/.claude/rules/mine.md": "{name}",
        "sub/.claude/rules/below.md": "{name}",
    },
    "linked-rule": {"docs/rule.md": "{name}", ".claude/rules/rule.md": "-> ../../docs/rule.md"},
    "parents": {"^/CLAUDE.md": "{name}", "^/.claude/CLAUDE.md": "{name}", "AGENTS.md": "{name}"},
    "parents-agents": {"^/AGENTS.md": "{name}", "AGENTS.md": "{name}"},
    "user": {"~/.claude/CLAUDE.md": "{name}", "~/.codex/AGENTS.md": "\n {name} \n", "AGENTS.md": "{name}"},
    "nested-agents": {"AGENTS.md": "{name}\n", "sub/AGENTS.md": "{name}\n"},
    "nested-claude": {"AGENTS.md": "{name}", "sub/CLAUDE.md": "{name}"},
    "excluded": {"AGENTS.md": "{name}", "CLAUDE.md": "{name}", ".claude/settings.local.json": _EXCLUDES},
    "excluded-in-the-root": {
        "AGENTS.md": "{name}",
        "CLAUDE.md": "{name}",
        ".claude/settings.json": _EXCLUDES,
    },
    "override": {"AGENTS.md": "{name}", "AGENTS.override.md": "{name}", "sub/AGENTS.override.md": "{name}"},
    "empty-override": {"AGENTS.md": "{name}", "AGENTS.override.md": "", "sub/AGENTS.md": "{name}"},
    "users-override": {"~/.codex/AGENTS.md": "{name}", "~/.codex/AGENTS.override.md": "{name}"},
    "users-empty-override": {"~/.codex/AGENTS.md": "{name}", "~/.codex/AGENTS.override.md": ""},
    "fallback": {"TEAM.md": "{name}", "sub/CLAUDE.md": "{name}", "~/.codex/config.toml": _FALLBACK},
    "oversize": {
        "AGENTS.md": "{name}\n" + "ü" * 20_000,
        "sub/AGENTS.md": "{name}",
        "~/.codex/AGENTS.md": "{name}\n" + "g" * 40_000,
    },
    "cut-below": {
        "AGENTS.md": "{name}\n" + "a" * 300,
        "sub/AGENTS.md": "{name}\n" + "b" * 300,
        "~/.codex/config.toml": "project_doc_max_bytes = 450\n",
    },
    "untrusted": {
        "AGENTS.md": "{name}",
        "~/.codex/AGENTS.md": "{name}",
        "~/.codex/config.toml": '[projects."{root}"]\ntrust_level = "untrusted"\n',
    },
    "markers": {
        "AGENTS.md": "{name}",
        "sub/AGENTS.md": "{name}",
        "sub/.top": "",
        "~/.codex/config.toml": 'project_root_markers = [".top"]\n',
    },
    "memory": {
        ".claude/settings.local.json": '{"autoMemoryDirectory": "{root}/notes"}',
        "notes/MEMORY.md": "\n".join(f"- line {number}" for number in range(260)),
        "CLAUDE.md": "{name}",
    },
    "memory-off": {
        "~/.claude/settings.json": '{"autoMemoryEnabled": false}',
        ".claude/settings.local.json": '{"autoMemoryDirectory": "{root}/notes"}',
        "notes/MEMORY.md": "{name}",
    },
}

FOR_CODEX = frozenset(
    ("users-override", "users-empty-override", "fallback", "oversize", "cut-below", "untrusted", "markers")
)
FOR_CLAUDE = frozenset(
    name
    for name in LAYOUTS
    if name.startswith(("both-", "claude-only", "import-", "excluded", "memory", "rules"))
) | {"linked-rule", "local", "in-folder", "empty-claude"}
"""Layouts that speak of things which the other client doesn't know."""

IN_ROOT = frozenset(
    ("nothing", "agents", "claude", "both", "claude-only-by-setting", "import-of-the-user", "dangling")
) | {"in-folder", "local", "empty-claude", "user", "users-override", "users-empty-override", "memory-off"}
"""Layouts in which a session started below the root reads by no other rule than one in the root."""


def _cases(others: frozenset[str]) -> list[tuple[str, str]]:
    """Each layout with the directories, below the root, in which a session is started."""
    mine = [name for name in LAYOUTS if name not in others]
    return [(name, start) for name in mine for start in ("", "sub") if not (start and name in IN_ROOT)]


def _marker(name: str) -> str:
    return f"These words stand in the file {name} alone."


def _lay_out(layout: Layout, root: Path, home: Path) -> None:
    (root / "sub").mkdir(exist_ok=True)
    for folder in (".claude", ".codex"):
        (home / folder).mkdir(exist_ok=True)
    for name, text in layout.items():
        path = {"~": home, "^": root.parent}.get(name[0], root) / name.removeprefix("~/").removeprefix("^/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text.replace("{name}", _marker(name)).replace("{root}", str(root)), "utf-8")


def _tree(*tops: Path) -> Mapping[str, str]:
    """Every path below some directories with what it holds."""
    found = {}
    for top in tops:
        for base, folders, names in os.walk(top):
            for path in (Path(base, name) for name in (*folders, *names)):
                if path.is_symlink():
                    found[str(path)] = os.readlink(path)  # noqa: PTH115 - as it is spelled
                elif path.is_file():
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
                else:
                    found[str(path)] = "directory"
    return found


def _explained(product: Product, name: str, start: Path) -> Mapping[str, Any]:
    [told] = product.run("explain", name, cwd=start)["data"]["harnesses"]
    assert told["name"] == name
    answer: Mapping[str, Any] = told
    return answer


@pytest.fixture
def repository(git_repo: Path) -> Path:
    """The repository below a directory of its own, so that files can stand beside it."""
    place = git_repo.parent / "above" / "project"
    place.parent.mkdir()
    git_repo.rename(place)
    return place


@pytest.fixture
def sealed_product(sealed_home: Path) -> Product:
    """agent-bridge for a user whose homes the layout makes."""
    return Product(sealed_home)


@pytest.mark.parametrize(("layout", "start"), _cases(FOR_CODEX))
def test_claude_code_reads_what_is_said(
    claude: Claude, sealed_product: Product, repository: Path, layout: str, start: str
) -> None:
    _lay_out(LAYOUTS[layout], repository, claude.home)
    before = _tree(claude.home, repository.parent)
    told = _explained(sealed_product, "claude-code", repository / start)
    assert _tree(claude.home, repository.parent) == before

    prompt = claude.prompt(repository / start)

    assert [read["path"] for read in told["reads"]] == [str(path) for path in prompt.paths]
    for read, file in zip(told["reads"], prompt.files, strict=True):
        text = file.text.partition("\n\n> WARNING: MEMORY.md is ")[0]
        assert read["shown"] == len(text.encode()), read["path"]
        assert bool(read["cut"]) == ("> WARNING: MEMORY.md is " in file.text)
    _markers_are_as_told(told, prompt.text, LAYOUTS[layout])


@pytest.mark.parametrize(("layout", "start"), _cases(FOR_CLAUDE))
def test_codex_reads_what_is_said(
    codex: Codex, sealed_product: Product, repository: Path, layout: str, start: str
) -> None:
    _lay_out(LAYOUTS[layout], repository, codex.home)
    told = _explained(sealed_product, "codex", repository / start)

    instructions = codex.prompt(repository / start).instructions

    shown = [_as_shown(read, codex.home) for read in told["reads"]]
    is_global = [Path(read["path"]).parent == codex.home / ".codex" for read in told["reads"]]
    users = [text for text, ours in zip(shown, is_global, strict=True) if ours]
    projects = [text for text, ours in zip(shown, is_global, strict=True) if not ours]
    parts = [part for part in ("\n\n".join(users), "\n\n".join(projects)) if part]
    assert instructions == "\n\n--- project-doc ---\n\n".join(parts)
    _markers_are_as_told(told, instructions, LAYOUTS[layout])


OTHERS = ("claude", "both", "import", "nested-agents", "user")
"""Layouts for the programs whose own tests go further."""


@pytest.mark.parametrize("layout", OTHERS)
def test_opencode_reads_what_is_said(
    opencode: OpenCode, sealed_product: Product, repository: Path, layout: str
) -> None:
    _lay_out(LAYOUTS[layout], repository, opencode.home)
    told = _explained(sealed_product, "opencode", repository)

    prompt = opencode.prompt(repository)

    assert [read["path"] for read in told["reads"]] == [str(path) for path in prompt.paths]
    _markers_are_as_told(told, prompt.text, LAYOUTS[layout])


@pytest.mark.parametrize("layout", OTHERS)
def test_gemini_reads_what_is_said(
    gemini: Gemini, sealed_product: Product, repository: Path, layout: str
) -> None:
    _lay_out({**LAYOUTS[layout], "GEMINI.md": "{name}\n\n@./AGENTS.md\n"}, repository, gemini.home)
    told = _explained(sealed_product, "gemini", repository)

    prompt = gemini.prompt(repository)

    assert str(repository / "GEMINI.md") in {read["path"] for read in told["reads"]}
    _markers_are_as_told(told, prompt.text, {**LAYOUTS[layout], "GEMINI.md": "{name}"})


def _as_shown(read: Mapping[str, Any], home: Path) -> str:
    """The first `shown` bytes of the file; of the user's own file those that trimming leaves."""
    data = Path(read["path"]).read_bytes()
    assert len(data) == read["size"]
    text = data[: read["shown"]].decode("utf-8", "replace")
    if Path(read["path"]).parent == home / ".codex":
        text = data.decode().strip()
        assert len(text.encode()) == read["shown"]
    else:
        assert bool(read["cut"]) == (read["shown"] < read["size"])
    return text


def _markers_are_as_told(told: Mapping[str, Any], prompt: str, layout: Layout) -> None:
    """In the order in which they are said to be read; those of hidden files, and of all others, nowhere."""
    assert not {read["path"] for read in told["reads"]} & {file["path"] for file in told["hidden"]}
    texts = [Path(read["path"]).read_text("utf-8") for read in told["reads"]]
    markers = [_marker(name) for name, text in layout.items() if text and "{name}" in text]
    said = [marker for text in texts for marker in markers if marker in text]
    at = [prompt.find(marker) for marker in said]
    assert -1 not in at
    assert at == sorted(at)
    assert [marker for marker in markers if marker in prompt and marker not in said] == []


COMBINATIONS = (*("both", "import", "nested-claude", "override", "untrusted"),)
"""Layouts in which the project is set up and has a fact."""

EVERYWHERE = "Numbers are written with a thin space in every project."


@pytest.mark.parametrize("layout", COMBINATIONS)
def test_a_fact_is_in_the_prompt_unless_it_is_told_as_missing(
    claude: Claude, codex: Codex, sealed_product: Product, repository: Path, layout: str
) -> None:
    _lay_out(LAYOUTS[layout], repository, claude.home)
    users = {_marker(name) for name in LAYOUTS[layout]}
    before = [{text for text in users if one.prompt(repository).count(text)} for one in (claude, codex)]
    sealed_product.init(repository)
    facts.save(repository)
    sealed_product.run("sync", cwd=repository)
    sealed_product.run("add", EVERYWHERE, "--scope", "global", cwd=repository)
    texts = {"project": facts.BODY, "global": EVERYWHERE}

    for start in (repository, repository / "sub"):
        for name, prompt in (("claude-code", claude.prompt(start)), ("codex", codex.prompt(start))):
            told = _explained(sealed_product, name, start)
            missing = {group["scope"] for group in told["missing"]}
            doubled = len(told["doubles"]) > 0
            counts = {scope: prompt.count(text) for scope, text in texts.items()}
            assert {scope for scope, count in counts.items() if count == 0} == missing, (name, start, told)
            assert any(count > 1 for count in counts.values()) == doubled, (name, start, told)
            assert sum(read["facts"] for read in told["reads"]) == sum(counts.values())
    # Nothing of the user's is hidden by what was written.
    after = [{text for text in users if one.prompt(repository).count(text)} for one in (claude, codex)]
    assert after == before


def test_a_fact_shown_twice_is_told_with_both_files(
    codex: Codex, sealed_product: Product, repository: Path
) -> None:
    _lay_out(
        {"AGENTS.md": "{name}\n", "sub/AGENTS.md": f"# Below\n\n- {EVERYWHERE}\n"}, repository, codex.home
    )
    sealed_product.init(repository)
    fact = sealed_product.run("add", EVERYWHERE, cwd=repository)["data"]["fact"]["id"]

    told = _explained(sealed_product, "codex", repository / "sub")

    assert codex.prompt(repository / "sub").count(EVERYWHERE) == 2
    [double] = told["doubles"]
    assert double["fact"] == fact
    assert double["files"] == [str(repository / "AGENTS.md"), str(repository / "sub/AGENTS.md")]
    assert not _explained(sealed_product, "codex", repository)["doubles"]
