"""Whatever stands in a project: the choice is the same before and after it is carried out, and it is once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import agents_md, claude_carriers, opencode_config, opencode_files
from agent_bridge.harnesses.base import FileKind, InstructionFile, NestedFile, Scope, Site
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.config_edit import json_add_element
from agent_bridge.harnesses.managed_block import render_block, splice
from agent_bridge.harnesses.opencode import OpenCode
from agent_bridge.projects import Project

ROOT = Path("/p")
BODY = render_block((), (), budget=4096, scope="project").body
HARNESSES = (ClaudeCode(), Codex(), OpenCode())

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.override.md")
texts = st.sampled_from(["", "mine\n", "@AGENTS.md\n", "x" * 3000])
instructions = st.lists(
    st.sampled_from(["CLAUDE.md", "*.md", "AGENTS.md", "docs/x.md", "CONTEXT.md"]), max_size=2
)
nested_names = st.sampled_from(["sub/AGENTS.md", "sub/CLAUDE.md", "sub/CONTEXT.md", "other/CLAUDE.md"])


@st.composite
def sites(draw: st.DrawFn) -> Site:
    found = draw(st.dictionaries(st.sampled_from(NAMES), texts))
    settings = draw(st.dictionaries(st.sampled_from(opencode_config.PROJECT_FILES), instructions))
    tracked = draw(st.sets(st.sampled_from((*NAMES, *opencode_config.PROJECT_FILES))))
    files = {str(ROOT / name): file_of(name, text.encode(), name in tracked) for name, text in found.items()}
    for name in settings:
        files[str(ROOT / name)] = file_of(name, b"", name in tracked)
    if any("/" in name for name in settings):
        files[str(ROOT / ".opencode")] = replace(file_of(".opencode"), kind=FileKind.DIRECTORY)
    asked = draw(st.sampled_from([(), ("opencode",)]))
    return Site(
        project=Project("p", ROOT, mode=draw(st.sampled_from(["shared", "local"])), requested=asked),
        checkout=ROOT,
        env={"HOME": "/h"},
        used=frozenset(
            draw(st.sampled_from([("opencode", "codex", "claude-code"), ("codex", "claude-code")]))
        ),
        files=files,
        config={
            "/h/.codex/config.toml": b"project_doc_max_bytes = 4000",
            **{str(ROOT / name): json.dumps({"instructions": v}).encode() for name, v in settings.items()},
        },
        nested=tuple(NestedFile(name, 10) for name in draw(st.sets(nested_names))),
    )


def file_of(name: str, data: bytes = b"", tracked: bool = False) -> InstructionFile:
    path = ROOT / name
    return InstructionFile(name, path, path, FileKind.FILE, data, tracked, identity=(1, hash(name)))


def carriers_of(site: Site) -> dict[str, set[str]]:
    """By reader; a tracked file is no target where the store is kept out of Git (`targets.lay_out`)."""
    found: dict[str, set[str]] = {}
    for harness in HARNESSES:
        if not harness.only_if_used or harness.name in site.used:
            for carrier in harness.carriers(site, Scope.PROJECT):
                if agents_md.would_publish(site, site.file(carrier.path)):
                    continue
                for reader in carrier.readers:
                    found.setdefault(reader, set()).add(site.file(carrier.path).name)
    return found


def with_keys(site: Site) -> Site:
    """The site with its wanted instructions in their files."""
    files, config = dict(site.files), dict(site.config)
    for edit in OpenCode().key_edits(site) if "opencode" in site.used else ():
        spelled = str(edit.path)
        config[spelled] = json_add_element(config.get(spelled, b""), edit.key, edit.value)
        name = edit.path.relative_to(ROOT).as_posix()
        files.setdefault(spelled, file_of(name))
        if "/" in name:
            files[str(ROOT / ".opencode")] = replace(file_of(".opencode"), kind=FileKind.DIRECTORY)
    return replace(site, files=files, config=config)


def with_blocks(site: Site) -> Site:
    """The site with our block in every carrier."""
    files = dict(site.files)
    for name in set().union(*carriers_of(site).values()):
        file = site.file(name)
        after = splice(file.data, BODY).data
        files[str(file.path)] = replace(file_of(name, after), tracked=file.tracked)
        if name.startswith(".opencode/"):
            files[str(ROOT / ".opencode")] = replace(file_of(".opencode"), kind=FileKind.DIRECTORY)
    return replace(site, files=files)


def wanted(site: Site) -> list[tuple[Path, object, bool]]:
    return [(edit.path, edit.value, edit.local) for edit in opencode_files.key_edits(site)]


@given(sites())
def test_carrying_the_choice_out_changes_it_in_no_order(site: Site) -> None:
    for after in (
        with_keys(site),
        with_blocks(site),
        with_blocks(with_keys(site)),
        with_keys(with_blocks(site)),
    ):
        assert carriers_of(after) == carriers_of(site)
        assert {value for _, value, _ in wanted(after)} >= {value for _, value, _ in wanted(site)}
    done = with_keys(with_blocks(site))
    assert opencode_files.unset(done) == () or "opencode" not in site.used
    assert wanted(with_keys(done)) == wanted(done)


@given(sites())
def test_opencode_is_shown_one_block_in_the_root_and_below(site: Site) -> None:
    if "opencode" not in site.used:
        return
    done = with_blocks(with_keys(site))
    blocks = {name for names in carriers_of(done).values() for name in names}
    # Codex needs a block there too; whoever lists *.md is told.
    blocks.discard("AGENTS.override.md")
    asked = done.project is not None and done.project.requested
    bridge_beside = (
        {opencode_files.BRIDGE} if asked and len(carriers_of(done).get("opencode", ())) > 1 else set()
    )
    for start in ("", "sub", "other"):
        assert len((shown(done, start) & blocks) - bridge_beside) == 1


@given(sites())
def test_nothing_that_opencode_showed_is_hidden_by_us(site: Site) -> None:
    if "opencode" not in site.used:
        return
    done = with_blocks(with_keys(site))
    for start in ("", "sub", "other"):
        assert shown(done, start) >= {
            name for name in shown(site, start) if name != "AGENTS.md" or site.file(name).data
        }


def shown(site: Site, start: str) -> set[str]:
    """What a session in the root or a directory below shows, by OpenCode's rules, written down once more."""
    there = {name for name in NAMES if site.file(name).readable} | {nested.name for nested in site.nested}
    places = ["", f"{start}/"] if start else [""]
    found: set[str] = set()
    for name in ("AGENTS.md", "CLAUDE.md", "CONTEXT.md"):
        found = {f"{place}{name}" for place in places if f"{place}{name}" in there}
        if found:
            break
    there |= {name for name in (opencode_files.BRIDGE, claude_carriers.RULES) if site.file(name).readable}
    for entry in opencode_config.entries(site):
        for place in places:
            found |= {
                name
                for name in there
                if name.startswith(place)
                and opencode_config.names(entry, ROOT / name, ROOT / place, Path("/h"))
            }
    return found


def test_what_the_user_wrote_into_our_agents_md_changes_nothing_once_it_is_set() -> None:
    site = Site(
        project=Project("p", ROOT),
        checkout=ROOT,
        env={"HOME": "/h"},
        used=frozenset({"opencode"}),
        files={str(ROOT / "CLAUDE.md"): file_of("CLAUDE.md", b"mine\n")},
    )
    done = with_keys(with_blocks(site))
    shared = done.file(agents_md.NAME)
    files = {**done.files, str(shared.path): replace(shared, data=b"more\n" + shared.data)}
    after = replace(done, files=files)
    assert carriers_of(after) == carriers_of(site)
    assert wanted(after) == wanted(done)


def test_files_of_one_name_are_told_apart_by_their_directory() -> None:
    site = Site(
        project=Project("p", ROOT),
        checkout=ROOT,
        env={"HOME": "/h"},
        used=frozenset({"opencode"}),
        nested=(NestedFile("a/AGENTS.md", 1), NestedFile("a/b/CLAUDE.md", 1), NestedFile(".x/CLAUDE.md", 1)),
    )
    assert opencode_files.hidden_names(site) == ()
    below = replace(site, nested=(*site.nested, NestedFile("c/CLAUDE.md", 1)))
    assert opencode_files.hidden_names(below) == ("CLAUDE.md",)
