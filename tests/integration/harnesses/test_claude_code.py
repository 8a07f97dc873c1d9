"""Which file carries facts to Claude Code, and what its settings come to. The table is what 2.1.332 does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import Adoption, Scope, Site
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.projects import Project, id_for

Make = Callable[[Mapping[str, str]], Site]
CLAUDE = ClaudeCode()
RULES = ".claude/rules/agent-bridge.md"
PLUGIN = '{"pluginConfigs":{"cc-plugin-agents-md@builtin":{"options":{"instructionFiles":"%s"}}}}'
BOTH = PLUGIN % "claude-md-and-agents-md"
ONLY = PLUGIN % "claude-md"
MANAGED = PLUGIN % "managed-only"
NO_CLAUDE_MD = '{"claudeMdExcludes": ["**/CLAUDE.md"]}'
NO_AGENTS_MD = '{"claudeMdExcludes": ["**/AGENTS.md"]}'
BLOCK = """\
<!-- agent-bridge:memory:start (managed, do not edit) -->
- @AGENTS.md
<!-- agent-bridge:memory:end -->
"""

CARRIERS: dict[str, tuple[dict[str, str], str | None, set[str]]] = {
    "nothing": ({}, "AGENTS.md", set()),
    "AGENTS.md alone": ({"AGENTS.md": "x"}, "AGENTS.md", set()),
    "plain CLAUDE.md": ({"CLAUDE.md": "x"}, "CLAUDE.md", set()),
    "both, unrelated": ({"CLAUDE.md": "x", "AGENTS.md": "y"}, "CLAUDE.md", set()),
    "empty CLAUDE.md": ({"CLAUDE.md": "", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "CLAUDE.md of comments": ({"CLAUDE.md": "<!-- x -->\n", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "CLAUDE.md with a block alone": ({"CLAUDE.md": BLOCK, "AGENTS.md": "y"}, "AGENTS.md", set()),
    "empty CLAUDE.md, AGENTS.md out of use": (
        {"CLAUDE.md": "", "AGENTS.md": "-> {home}/a", "~/a": "y"},
        RULES,
        set(),
    ),
    "CLAUDE.md is AGENTS.md": ({"CLAUDE.md": "-> AGENTS.md", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "AGENTS.md is CLAUDE.md": ({"AGENTS.md": "-> CLAUDE.md", "CLAUDE.md": "y"}, "AGENTS.md", set()),
    "CLAUDE.md leads to an AGENTS.md to come": ({"CLAUDE.md": "-> AGENTS.md"}, "AGENTS.md", set()),
    "CLAUDE.md leads nowhere": ({"CLAUDE.md": "-> gone.md", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "CLAUDE.md is a directory": ({"CLAUDE.md/": "", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "import": ({"CLAUDE.md": "@AGENTS.md", "AGENTS.md": "y"}, "AGENTS.md", {"claude-import-below-root"}),
    "import with ./": (
        {"CLAUDE.md": "see @./AGENTS.md", "AGENTS.md": "y"},
        "AGENTS.md",
        {"claude-import-below-root"},
    ),
    "import of a file to come": ({"CLAUDE.md": "@AGENTS.md"}, "AGENTS.md", {"claude-import-below-root"}),
    "import by another file": (
        {"CLAUDE.md": "@docs/a.md", "docs/a.md": "@b.md", "docs/b.md": "@../AGENTS.md", "AGENTS.md": "y"},
        "AGENTS.md",
        {"claude-import-below-root"},
    ),
    "import from .claude": (
        {".claude/CLAUDE.md": "@../AGENTS.md", "AGENTS.md": "y"},
        "AGENTS.md",
        {"claude-import-below-root"},
    ),
    "import in code": ({"CLAUDE.md": "`@AGENTS.md`", "AGENTS.md": "y"}, "CLAUDE.md", set()),
    "import in our own block": ({"CLAUDE.md": "x\n\n" + BLOCK, "AGENTS.md": "y"}, "CLAUDE.md", set()),
    "import beside the real file of a link": (
        {"CLAUDE.md": "-> docs/C.md", "docs/C.md": "@AGENTS.md", "AGENTS.md": "y"},
        "CLAUDE.md",
        set(),
    ),
    "CLAUDE.md leads out": ({"CLAUDE.md": "-> {home}/c.md", "~/c.md": "x"}, RULES, {"claude-md-outside"}),
    "only .claude/CLAUDE.md": ({".claude/CLAUDE.md": "x", "AGENTS.md": "y"}, RULES, set()),
    "only CLAUDE.local.md": ({"CLAUDE.local.md": "x", "AGENTS.md": "y"}, RULES, set()),
    "a CLAUDE.md above": ({"../CLAUDE.md": "x", "AGENTS.md": "y"}, RULES, set()),
    "a CLAUDE.local.md above": ({"../CLAUDE.local.md": "x"}, RULES, set()),
    "the user's CLAUDE.md hides nothing": ({"~/.claude/CLAUDE.md": "x"}, "AGENTS.md", set()),
    "rules hide nothing": ({".claude/rules/x.md": "x", "AGENTS.md": "y"}, "AGENTS.md", set()),
    "a nested CLAUDE.md": ({"AGENTS.md": "y", "sub/CLAUDE.md": "x"}, "AGENTS.md", {"claude-nested"}),
    "a nested CLAUDE.md below a plain one": ({"CLAUDE.md": "y", "sub/CLAUDE.md": "x"}, "CLAUDE.md", set()),
    "AGENTS.md leads out": ({"AGENTS.md": "-> {home}/a.md", "~/a.md": "x"}, RULES, set()),
    "rules lead out": (
        {"CLAUDE.local.md": "x", ".claude/rules": "-> {home}/r", "~/r/": ""},
        "CLAUDE.local.md",
        {"claude-rules-unusable"},
    ),
    "rules lead out, one file above": (
        {"../CLAUDE.md": "x", ".claude/rules": "-> {home}/r", "~/r/": ""},
        "CLAUDE.local.md",
        {"claude-rules-unusable"},
    ),
    "rules stay inside by a link": (
        {"CLAUDE.local.md": "x", ".claude/rules": "-> ../r", "r/": ""},
        "CLAUDE.local.md",
        {"claude-rules-unusable"},
    ),
    ".claude leads out": (
        {"CLAUDE.md": "-> {home}/c.md", "~/c.md": "x", ".claude": "-> {home}/d", "~/d/": ""},
        "CLAUDE.local.md",
        {"claude-md-outside", "claude-rules-unusable", "claude-local-settings"},
    ),
    "both always": (
        {"CLAUDE.md": "x", "AGENTS.md": "y", "~/.claude/settings.json": BOTH},
        "AGENTS.md",
        set(),
    ),
    "both, said by the project": (
        {"CLAUDE.md": "x", "AGENTS.md": "y", ".claude/settings.json": BOTH},
        "CLAUDE.md",
        set(),
    ),
    "never AGENTS.md": ({"AGENTS.md": "y", "~/.claude/settings.json": ONLY}, RULES, set()),
    "managed only": (
        {"CLAUDE.md": "y", "~/.claude/settings.json": MANAGED},
        None,
        {"claude-instructions-off"},
    ),
    "switched off": (
        {"CLAUDE.md": "y", ".claude/settings.json": '{"env":{"CLAUDE_CODE_DISABLE_CLAUDE_MDS":"1"}}'},
        None,
        {"claude-instructions-off"},
    ),
    "CLAUDE.md excluded": (
        {"CLAUDE.md": "x", "AGENTS.md": "y", ".claude/settings.local.json": NO_CLAUDE_MD},
        "AGENTS.md",
        set(),
    ),
    "CLAUDE.md excluded by the project": (
        {"CLAUDE.md": "x", "AGENTS.md": "y", ".claude/settings.json": NO_CLAUDE_MD},
        "AGENTS.md",
        {"claude-excludes-below-root"},
    ),
    "AGENTS.md excluded": ({"AGENTS.md": "y", "~/.claude/settings.json": NO_AGENTS_MD}, RULES, set()),
    "a new AGENTS.md would hide GEMINI.md from Codex": (
        {"GEMINI.md": "x", "~/.codex/config.toml": 'project_doc_fallback_filenames = ["GEMINI.md"]'},
        RULES,
        set(),
    ),
    "AGENTS.md too large for Codex": ({"AGENTS.md": "y" * 31_000}, RULES, set()),
}


@pytest.mark.parametrize(("found", "carrier", "codes"), CARRIERS.values(), ids=CARRIERS.keys())
def test_the_carrier_of_a_project(
    make: Make, found: dict[str, str], carrier: str | None, codes: set[str]
) -> None:
    site = make(found)
    carriers = CLAUDE.carriers(site, Scope.PROJECT)
    assert [item.path for item in carriers] == ([] if carrier is None else [site.checkout / carrier])
    assert {notice.code for notice in CLAUDE.notices(site)} == codes


def test_a_rules_file_is_ours_alone_and_local(make: Make) -> None:
    (carrier,) = CLAUDE.carriers(make({"CLAUDE.local.md": "x"}), Scope.PROJECT)
    assert (carrier.kind, carrier.local, carrier.create) == ("own", True, True)


def test_a_fifo_is_never_opened(make: Make) -> None:
    site = make({})
    os.mkfifo(site.checkout / "CLAUDE.md")
    again = make({"AGENTS.md": "y"})
    assert [item.path.name for item in CLAUDE.carriers(again, Scope.PROJECT)] == ["AGENTS.md"]


def test_the_global_carrier_is_claudes_own_file(look_at_user: Make, sealed_home: Path) -> None:
    (carrier,) = CLAUDE.carriers(look_at_user({}), Scope.GLOBAL)
    assert carrier.path == sealed_home / ".claude/CLAUDE.md"


def test_a_global_file_that_imports_codexs_is_served_by_that(look_at_user: Make, sealed_home: Path) -> None:
    site = look_at_user({"~/.claude/CLAUDE.md": "@~/.codex/AGENTS.md", "~/.codex/AGENTS.md": "x"})
    assert [item.path for item in CLAUDE.carriers(site, Scope.GLOBAL)] == [sealed_home / ".codex/AGENTS.md"]


def test_memory_directory_link_and_key(make: Make, sealed_home: Path) -> None:
    site = make({})
    store = site.checkout / ".memory"
    (link,) = CLAUDE.links(site)
    (key,) = CLAUDE.key_edits(site)
    assert link.target == store
    assert link.path.parent.parent == sealed_home / ".claude/projects"
    assert (key.path, key.key, key.value) == (
        site.checkout / ".claude/settings.local.json",
        ("autoMemoryDirectory",),
        str(store),
    )
    assert CLAUDE.adoptions(site) == ()


def test_the_store_behind_a_link_is_named_by_its_real_path(make: Make, sealed_home: Path) -> None:
    site = make({".memory": "-> {home}/store", "~/store/": ""})
    assert CLAUDE.key_edits(site)[0].value == str(sealed_home / "store")


def test_a_worktree_asks_for_neither_link_nor_key(make: Make, sealed_home: Path) -> None:
    root = make({"AGENTS.md": "x"}).checkout
    tree = root / ".claude/worktrees/w"
    subprocess.run(["git", "-C", str(root), "add", "AGENTS.md"], check=True)
    subprocess.run(["git", "-C", str(root), "commit", "-qm", "x"], check=True)
    subprocess.run(["git", "-C", str(root), "worktree", "add", "-q", str(tree)], check=True)
    (root / "CLAUDE.md").write_text("x")
    site = observe_site(Project(id_for(root), root), tree)
    assert not site.is_main
    assert (CLAUDE.links(site), CLAUDE.key_edits(site), CLAUDE.adoptions(site)) == ((), (), ())
    # The main checkout's CLAUDE.md lies above this worktree, but Claude skips it.
    assert [item.path for item in CLAUDE.carriers(site, Scope.PROJECT)] == [tree / "AGENTS.md"]
    assert site.file("AGENTS.md").tracked


@pytest.mark.parametrize("layer", [".claude/settings.local.json", ".claude/settings.json"])
def test_a_directory_of_the_users_own_is_adopted(make: Make, sealed_home: Path, layer: str) -> None:
    site = make({"~/mine/a.md": "x", layer: json.dumps({"autoMemoryDirectory": "~/mine"})})
    (adoption,) = CLAUDE.adoptions(site)
    assert (adoption.directory, adoption.scope) == (sealed_home / "mine", Scope.PROJECT)
    assert len(CLAUDE.key_edits(site)) == 1


@pytest.mark.parametrize("layer", [".claude/settings.local.json", ".claude/settings.json"])
@pytest.mark.parametrize(("place", "adopted"), [("{home}/mine", False), ("{root}/notes", True)])
def test_a_repository_that_names_a_directory_outside_of_it_is_not_followed(
    make: Make, layer: str, place: str, *, adopted: bool
) -> None:
    setting = f'{{"autoMemoryDirectory": "{place}"}}'
    root = make({"~/mine/a.md": "x", "notes/b.md": "y", layer: setting}).checkout
    subprocess.run(["git", "-C", str(root), "add", layer], check=True)
    site = make({})
    assert bool(CLAUDE.adoptions(site)) is adopted
    told = {notice.code for notice in CLAUDE.notices(site)}
    assert ("claude-memory-not-yours" in told) is not adopted


def test_a_directory_for_all_projects_is_adopted_globally(make: Make, sealed_home: Path) -> None:
    site = make({"~/mine/a.md": "x", "~/.claude/settings.json": '{"autoMemoryDirectory": "~/mine"}'})
    assert [(item.directory, item.scope) for item in CLAUDE.adoptions(site)] == [
        (sealed_home / "mine", Scope.GLOBAL)
    ]


@pytest.mark.parametrize("value", ["relative/dir", "", "/x", 7, None, "/a\0b", "~/missing"])
def test_values_that_claude_ignores_and_missing_directories_are_not_adopted(
    make: Make, value: object
) -> None:
    assert CLAUDE.adoptions(make({".claude/settings.json": json.dumps({"autoMemoryDirectory": value})})) == ()


@pytest.mark.parametrize("value", ["{home}", "{home}/..", "{root}", "{root}/../..", "{home}/link"])
@pytest.mark.parametrize("layer", [".claude/settings.json", "~/.claude/settings.json"])
def test_a_directory_that_holds_the_home_or_the_project_is_never_read_as_a_memory(
    make: Make, layer: str, value: str
) -> None:
    site = make({"~/link": "-> {home}/..", layer: f'{{"autoMemoryDirectory": "{value}"}}'})
    assert CLAUDE.adoptions(site) == ()
    assert [notice.code for notice in CLAUDE.notices(site)] == ["claude-memory-too-wide"]


def test_once_our_value_stands_nothing_is_adopted(make: Make) -> None:
    found = {
        ".memory/": "",
        "~/mine/": "",
        "~/.claude/settings.json": '{"autoMemoryDirectory": "~/mine"}',
        ".claude/settings.local.json": '{"autoMemoryDirectory": "{root}/.memory"}',
    }
    assert CLAUDE.adoptions(make(found)) == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"autoMemoryEnabled": False},
        {"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}},
        {"env": {"CLAUDE_CODE_SIMPLE": "true"}},
    ],
)
@pytest.mark.parametrize("layer", ["~/.claude/settings.json", ".claude/settings.json"])
def test_memory_that_the_user_switched_off_stays_off(
    make: Make, settings: dict[str, object], layer: str
) -> None:
    site = make({layer: json.dumps(settings)})
    assert (CLAUDE.links(site), CLAUDE.key_edits(site)) == ((), ())
    assert [notice.code for notice in CLAUDE.notices(site)] == ["claude-memory-off"]
    assert [item.path.name for item in CLAUDE.carriers(site, Scope.PROJECT)] == ["AGENTS.md"]


@pytest.mark.parametrize(
    "found",
    [
        {
            "~/.claude/settings.json": '{"autoMemoryEnabled": false}',
            ".claude/settings.local.json": '{"autoMemoryEnabled": true}',
        },
        {
            "~/.claude/settings.json": '{"autoMemoryEnabled": false}',
            ".claude/settings.json": '{"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}}',
        },
    ],
)
def test_a_stronger_layer_switches_it_on_again(make: Make, found: dict[str, str]) -> None:
    assert len(CLAUDE.key_edits(make(found))) == 1


def test_settings_that_are_no_json_or_lead_out_are_told_and_left(make: Make) -> None:
    site = make({".claude/settings.local.json": "{broken"})
    assert CLAUDE.key_edits(site) == ()
    assert [notice.code for notice in CLAUDE.notices(site)] == ["claude-settings"]


def test_settings_behind_a_link_that_leads_out_are_not_written(make: Make) -> None:
    site = make({".claude/settings.local.json": "-> {home}/s.json", "~/s.json": "{}"})
    assert CLAUDE.key_edits(site) == ()
    assert [notice.code for notice in CLAUDE.notices(site)] == ["claude-local-settings"]


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_a_store_out_of_git_uses_no_file_of_gits(make: Make, name: str, tracked: bool) -> None:
    root = make({name: "x"}).checkout
    if tracked:
        subprocess.run(["git", "-C", str(root), "add", name], check=True)
    site = observe_site(Project(id_for(root), root, mode="local"), root)
    (carrier,) = CLAUDE.carriers(site, Scope.PROJECT)
    assert carrier.path == root / (RULES if tracked else name)


def memory_place(site: Site) -> Path:
    place = CLAUDE.memory_location(site)
    assert place is not None
    place.parent.mkdir(parents=True)
    return place


def test_the_right_link_is_asked_for_again_and_a_foreign_one_is_adopted(
    make: Make, sealed_home: Path
) -> None:
    place = memory_place(make({".memory/": ""}))
    place.symlink_to(sealed_home.parent / "work/project/.memory")
    site = make({})
    assert [link.path for link in CLAUDE.links(site)] == [place]
    assert CLAUDE.adoptions(site) == ()
    place.unlink()
    other = sealed_home / "other"
    other.mkdir()
    place.symlink_to(other)
    assert CLAUDE.adoptions(make({})) == (Adoption(other, Scope.PROJECT, f"{place} was a link to it"),)


def test_a_reverse_link_needs_no_link(make: Make, sealed_home: Path) -> None:
    place = memory_place(make({}))
    place.mkdir()
    site = make({".memory": f"-> {place}"})
    assert CLAUDE.links(site) == ()
    assert CLAUDE.key_edits(site)[0].value == str(place)


def test_a_file_in_the_memory_directorys_place_is_left(make: Make) -> None:
    memory_place(make({})).write_text("x")
    site = make({})
    assert CLAUDE.links(site) == ()
    assert [notice.code for notice in CLAUDE.notices(site)] == ["claude-memory-place"]
