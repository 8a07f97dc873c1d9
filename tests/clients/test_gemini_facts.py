"""What agent-bridge relies on in Gemini CLI: which files it reads, what it imports, where it keeps notes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_bridge.harnesses import gemini_imports
from clients.rig.gemini import WRITES, Gemini, write_file
from clients.rig.sealed import ClientError

MINE, SHARED = "Of GEMINI.md, by hand.", "Of AGENTS.md, by hand."
BOTH = {"GEMINI.md": f"{MINE}\n", "AGENTS.md": f"{SHARED}\n"}
IMPORT = {"GEMINI.md": f"{MINE}\n\n@AGENTS.md\n", "AGENTS.md": f"{SHARED}\n"}


@dataclass(frozen=True, slots=True)
class Case:
    """Files, the settings' `context` of the user and of the project, and how often AGENTS.md is shown.

    A text that begins with "->" is a link. The counts are those of sessions in (the root, `sub`).
    """

    name: str
    files: dict[str, str]
    shown: tuple[int, int]
    user: dict[str, object] = field(default_factory=dict)
    project: dict[str, object] = field(default_factory=dict)
    git: bool = True


CASES = (
    Case("agents-md isn't read", BOTH, (0, 0)),
    Case("an import", IMPORT, (1, 1)),
    Case(
        "an import is shown as often as it is named",
        IMPORT | {"GEMINI.md": "@AGENTS.md @./AGENTS.md\n"},
        (2, 2),
    ),
    Case("a name of the user's", BOTH, (1, 1), user={"fileName": ["AGENTS.md"]}),
    Case("a name of the user's as a text", BOTH, (1, 1), user={"fileName": "AGENTS.md"}),
    Case("a name of the project's holds in the root", BOTH, (1, 0), project={"fileName": ["AGENTS.md"]}),
    Case(
        "the project's names replace the user's",
        BOTH,
        (0, 1),
        user={"fileName": "AGENTS.md"},
        project={"fileName": "X.md"},
    ),
    Case("a name and an import", IMPORT, (2, 2), user={"fileName": ["AGENTS.md"]}),
    Case(
        "one file under two names",
        {"AGENTS.md": SHARED, "GEMINI.md": "->AGENTS.md"},
        (1, 1),
        user={"fileName": ["AGENTS.md"]},
    ),
    Case(
        "an import in a linked file",
        {"docs/x.md": "@AGENTS.md\n", "GEMINI.md": "->docs/x.md", "AGENTS.md": SHARED},
        (1, 1),
    ),
    Case("ignored files are imported", IMPORT | {".geminiignore": "*.md\n", ".gitignore": "*.md\n"}, (1, 1)),
    Case(
        "a stray backtick before and one behind",
        IMPORT | {"GEMINI.md": "a ` b\n\n@AGENTS.md\n\n`c`\n"},
        (0, 0),
    ),
    Case("nothing above is read without git", IMPORT, (1, 0), git=False),
    Case("nor without a marker", IMPORT, (1, 0), user={"memoryBoundaryMarkers": []}),
    Case("flat imports", IMPORT, (1, 1), user={"importFormat": "flat"}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_how_often_agents_md_is_shown(gemini: Gemini, sealed_home: Path, case: Case) -> None:
    root = _lay_out(sealed_home, case.files, git=case.git)
    gemini.settings({"context": case.user})
    if case.project:
        (root / ".gemini").mkdir()
        (root / ".gemini/settings.json").write_text(json.dumps({"context": case.project}), "utf-8")

    shown = tuple(gemini.prompt(place).count(SHARED) for place in (root, root / "sub"))

    assert shown == case.shown


def test_gemini_md_is_read_whatever_the_names_are(gemini: Gemini, sealed_home: Path) -> None:
    root = _lay_out(sealed_home, BOTH | {"sub/GEMINI.md": "Deeper.\n"})
    gemini.settings({"context": {"fileName": ["AGENTS.md"]}})
    home = sealed_home / ".gemini"
    for name in ("GEMINI.md", "AGENTS.md"):
        (home / name).write_text(f"The user's {name}.\n", "utf-8")

    prompt = gemini.prompt(root / "sub")

    assert prompt.paths == (
        home / "AGENTS.md",
        home / "GEMINI.md",
        root / "AGENTS.md",
        root / "GEMINI.md",
        root / "sub/GEMINI.md",
    )
    assert "The user's GEMINI.md." in prompt.system
    assert MINE in prompt.first


def test_nothing_outside_of_the_repository_is_imported(gemini: Gemini, sealed_home: Path) -> None:
    root = _lay_out(
        sealed_home, {"GEMINI.md": "@../secret.md\n@/etc/passwd\n@link.md\n", "link.md": "->../secret.md"}
    )
    (sealed_home / "secret.md").write_text("Not for it.\n", "utf-8")
    (sealed_home / ".gemini").mkdir()
    (sealed_home / ".gemini/GEMINI.md").write_text("@../secret.md\n", "utf-8")

    prompt = gemini.prompt(root)

    assert (prompt.count("Not for it."), prompt.count("root:x:")) == (0, 0)
    assert prompt.count("Path traversal attempt") == 4


TRICKY = (
    "@a.md (@a.md) \\@a.md **@a.md** x@a.md `@a.md` ~@a.md @./a.md. @~/a.md @#a.md",
    "```\n@a.md\n```\n@a.md",
    "~~~\n@a.md\n~~~",
    "one ` stray\n\n```\n@a.md\n```\n",
    "```` four\n@a.md\n``` three\n@a.md",
    "`` a ` b `` @a.md ` @a.md",
    "<!-- @a.md -->\n    @a.md",
    "@a.md,\n@http://a.md @file://a.md\n\t@a.md\r\n@a.md",
)


def test_we_find_the_same_imports(gemini: Gemini, sealed_home: Path) -> None:
    """What is no import stays as it is written; what is one becomes a comment, as no such file is there."""
    root = _lay_out(sealed_home, {})
    for number, text in enumerate(TRICKY):
        (root / f"{number}.md").write_text(text, "utf-8", newline="")
    gemini.settings({"context": {"fileName": [f"{number}.md" for number in range(len(TRICKY))]}})

    prompt = gemini.prompt(root)

    for number, text in enumerate(TRICKY):
        shown = prompt.contents_of(root / f"{number}.md") or ""
        refused = text.count("@http") + text.count("@file")
        assert shown.count("<!-- Import failed") == len(gemini_imports.imports(text)) + refused, text


def test_a_distrusted_folder_brings_no_files(gemini: Gemini, sealed_home: Path) -> None:
    """A session without a person doesn't even start there."""
    root = _lay_out(sealed_home, IMPORT)
    gemini.settings({})
    trust = sealed_home / ".gemini/trustedFolders.json"
    trust.write_text(json.dumps({str(sealed_home): "TRUST_FOLDER", str(root): "DO_NOT_TRUST"}), "utf-8")
    asking = Gemini(gemini.program, gemini.home, {"GEMINI_CLI_TRUST_WORKSPACE": ""})

    with pytest.raises(ClientError, match="not running in a trusted directory"):
        asking.prompt(root)
    trust.write_text(json.dumps({str(root / "sub"): "TRUST_PARENT"}), "utf-8")
    assert asking.prompt(root).count(SHARED) == 1


def test_where_it_keeps_private_notes(gemini: Gemini, sealed_home: Path) -> None:
    root = _lay_out(sealed_home, {})
    gemini.prompt(root / "sub")
    home = sealed_home / ".gemini"
    slug = json.loads((home / "projects.json").read_text("utf-8"))["projects"][str(root / "sub")]
    memory = home / "tmp" / slug / "memory"

    gemini.run(
        root / "sub", [write_file(memory / "MEMORY.md", "- The desk is by the window.\n")], arguments=WRITES
    )
    (memory / "more.md").write_text("Detailed.\n", "utf-8")

    prompt = gemini.prompt(root / "sub")
    assert (prompt.system.count("The desk is by the window."), prompt.count("Detailed.")) == (1, 0)
    assert gemini.prompt(root).count("The desk is by the window.") == 0


def _lay_out(home: Path, files: dict[str, str], *, git: bool = True) -> Path:
    root = home / "project"
    (root / "sub").mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text, "utf-8")
    if git:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root
