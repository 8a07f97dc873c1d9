"""What `init` would do, as values: steps with diffs, what would become shared, which memories wait where.

Nothing is written here. `plan` shows the same for a project that is set up already.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git, paths
from agent_bridge.config import Settings
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import agents_md, all_harnesses, config_edit
from agent_bridge.harnesses.base import KeyEdit, Notice, Scope, by_path
from agent_bridge.memory.fact import Fact, FactProblem, new_fact_bytes, parse_fact
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.memory.store import Store
from agent_bridge.projection import (
    apply,
    excludes,
    hook_settings,
    housekeeping,
    mcp_settings,
    merge_driver,
    native_import,
    skill,
)
from agent_bridge.projection.adopt import INDEX, read_tree
from agent_bridge.projection.hooked import user_edits
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.legacy import Found, look, waiting_in_words
from agent_bridge.projection.legacy_signs import tell_tracked
from agent_bridge.projection.plan import Evidence, Wanted, decide
from agent_bridge.projection.retire import former_carriers
from agent_bridge.projection.survey import Survey, survey_project, survey_user
from agent_bridge.projection.targets import Target
from agent_bridge.projects import STORE_NAME, Project

_LONG_VALUE = 120
"""Characters of JSON that are told in a sentence."""
_SET_BY_INIT = "opencode-init-again"
"""The notice that a setting is missing which `init` makes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that would be done: its kind, the path, a sentence, and a unified diff where there is one."""

    what: str
    path: Path
    text: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be done to a project. `becomes_shared` and `stays_private` are facts as `title (path)`.

    `imports` counts native items that go to this project's store, to the user's, and that would be held;
    `held` counts the last by the directory for whose `init` they wait.
    """

    project: Project
    steps: tuple[Step, ...]
    notices: tuple[Notice, ...]
    becomes_shared: tuple[str, ...]
    stays_private: tuple[str, ...]
    imports: dict[str, int]
    held: dict[str, int]

    @property
    def empty(self) -> bool:
        """Whether everything is as it should be."""
        return not self.steps


def preview_project(project: Project, settings: Settings) -> Preview:
    """Look at a project and say what `init` (or the next pass) would do. Reads only."""
    survey = survey_project(project, settings)
    user = survey_user(settings, project.environment or None)
    store = Store(project.store, scope="project", state=project.state)
    ledger = Ledger(project.state)
    snapshot = store.scan()
    adopted, adopting = _adopted_facts(survey)
    items = native_import.pending_items(native_import.gather(all_harnesses(), project.environment))
    sorted_items = native_import.sort_items(items, [site.checkout for site in survey.sites])
    imported = [fact for item in sorted_items.project for fact in _as_fact(item.text, item.title)]
    coming = [*adopted, *imported]
    steps: list[Step] = []
    if not project.store.is_dir():
        steps.append(Step("store", project.store, "is made; each markdown file in it is a fact"))
    steps += adopting
    left_over = look(project, survey, snapshot)
    steps += _legacy_steps(left_over, project.store)
    steps += _block_steps(survey, snapshot, coming, ledger, left_over)
    steps += _retired_steps(survey, ledger)
    native_off = dict.fromkeys((*survey.native_off, *user.native_off))
    of_user = (*user.keys, *user_edits(project, survey.hooked), *survey.mcp.user)
    steps += _key_steps((*survey.keys, *native_off, *of_user))
    users = Ledger(paths.user_state())
    leaving = hook_settings.stale(project, ledger, users, survey.hooked)
    steps += _leaving_steps((*leaving, *mcp_settings.stale(project, ledger, users, survey.mcp)))
    told = skill.to_be_done(project, survey.skill, users)
    steps += [Step("skill", place, text) for place, text in told]
    steps += _git_steps(project, survey, snapshot)
    counts = {
        "project": len(sorted_items.project),
        "global": len(sorted_items.user),
        "held": len(sorted_items.elsewhere),
    }
    new_open = [fact for fact in coming if not fact.private and not fact.secrets]
    closed = [fact for fact in coming if fact.private or fact.secrets]
    return Preview(
        project=project,
        steps=tuple(steps),
        notices=tuple(
            dict.fromkeys(
                (
                    *_unsettled(survey.notices, steps),
                    *mcp_settings.tell_missing_program(survey.mcp),
                    *user.notices,
                    *left_over.notices,
                    *tell_tracked(project, survey.checkout),
                )
            )
        ),
        becomes_shared=()
        if project.mode == "local"
        else tuple(
            f"{fact.title} ({fact.path})" for fact in (*_unshared(survey, store, snapshot), *new_open)
        ),
        stays_private=tuple(f"{fact.title} ({fact.path})" for fact in (*snapshot.private, *closed)),
        imports=counts,
        held=dict(sorted(Counter(str(item.directory) for item in sorted_items.elsewhere).items())),
    )


def _unsettled(notices: Iterable[Notice], steps: Iterable[Step]) -> list[Notice]:
    """What there is to know, without settings that are missing and are made by these steps."""
    made = {step.path for step in steps if step.what == "key"}
    return [notice for notice in notices if notice.code != _SET_BY_INIT or notice.path not in made]


def reader_titles(names: Iterable[str]) -> str:
    """Harnesses as people call them: "Claude Code, Codex"."""
    titles = {harness.name: harness.title for harness in all_harnesses()}
    return ", ".join(titles.get(name, name) for name in names)


def unified_diff(path: Path, before: bytes, after: bytes) -> str:
    """A unified diff of two texts; bytes that aren't UTF-8 are shown as replacement characters."""
    old = before.decode("utf-8", "replace").splitlines(keepends=True)
    new = after.decode("utf-8", "replace").splitlines(keepends=True)
    lines = difflib.unified_diff(
        old, new, str(path) if before else "/dev/null", str(path) if after else "/dev/null"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _adopted_facts(survey: Survey) -> tuple[list[Fact], list[Step]]:
    facts: list[Fact] = []
    steps: list[Step] = []
    for link in survey.links:
        if link.path.is_symlink():
            if link.path.readlink() != link.target:
                steps.append(
                    Step(
                        "link",
                        link.path,
                        f"pointed to {link.path.readlink()} and will point to {link.target}",
                    )
                )
            continue
        if link.path.is_dir():
            found = _facts_in(link.path)
            facts += found
            count = f"{_in_words(len(found))} adopted, a copy of it is kept"
            text = f"becomes a link to {link.target}; {count}"
        else:
            text = f"becomes a link to {link.target}"
        steps.append(Step("link", link.path, text))
    for adoption in survey.adoptions:
        found = _facts_in(adoption.directory)
        where = "for all projects" if adoption.scope is Scope.GLOBAL else "for this project"
        text = f"{_in_words(len(found))} adopted {where}; {adoption.why}"
        steps.append(Step("adopt", adoption.directory, text))
        if adoption.scope is Scope.PROJECT:
            facts += found
    return facts, steps


def _in_words(count: int) -> str:
    return f"the {count} memories in it are" if count != 1 else "the 1 memory in it is"


def _facts_in(directory: Path) -> list[Fact]:
    facts = []
    for name, data in sorted(read_tree(directory).items()):
        if name.rsplit("/", 1)[-1] == INDEX or isinstance(data, str) or not name.endswith(".md"):
            continue
        try:
            facts.append(parse_fact(name, data))
        except FactProblem:
            continue
    return facts


def _as_fact(text: str, title: str) -> list[Fact]:
    now = datetime.now(UTC)
    data = new_fact_bytes(text, fact_id="imported", now=now, title=title or None, source="codex")
    try:
        return [parse_fact("entries/imported.md", data)]
    except FactProblem:
        return []


def _legacy_steps(found: Found, store: Path) -> list[Step]:
    """What memory-bridge left and what becomes of it; our own blocks are steps of their own."""
    count = len(found.waiting)
    texts = f"{waiting_in_words(count)}; it is made anew from the facts"
    steps = [Step("legacy", store / "index.json", texts)] if count else []
    return steps + [
        Step(
            "legacy",
            change.image.path,
            change.text,
            unified_diff(change.image.path, change.image.data, change.rest),
        )
        for change in found.changes
    ]


def _block_steps(
    survey: Survey, snapshot: Snapshot, coming: Iterable[Fact], ledger: Ledger, left_over: Found
) -> list[Step]:
    shared = (*snapshot.shared, *(fact for fact in coming if not fact.private and not fact.secrets))
    wanted = Wanted(snapshot.documents, shared, survey.heard)
    steps = []
    for target in survey.layout.targets:
        image = files.read_image(target.path)
        entry = ledger.get(target.path)
        separator = None if entry is None or entry.separator is None else entry.separator.encode()
        evidence = Evidence(
            recorded=entry is not None, created=bool(entry and entry.created), separator=separator
        )
        change = left_over.change_of(image.real)
        data, before = (image.data, image.data) if change is None else (change.after or b"", change.rest)
        decision = decide(target, data if image.existed else None, wanted, evidence)
        readers = reader_titles(target.serves)
        if decision.refused is not None:
            steps.append(Step("refused", target.path, decision.refused.text))
        elif decision.after != (image.data if image.existed else None):
            made = "" if image.existed else f" ({_as_new_file(target, survey)})"
            diff = unified_diff(target.path, before, decision.after or b"")
            steps.append(Step("block", target.path, f"gets the block for {readers}{made}", diff))
        elif wanted.empty:
            steps.append(Step("block", target.path, f"will get the block for {readers} with the first fact"))
    return steps


def _retired_steps(survey: Survey, ledger: Ledger) -> list[Step]:
    """Files that carry the memory no more."""
    steps = []
    nothing = Wanted((), (), {})
    for target in former_carriers(ledger, survey):
        image = files.read_image(target.path)
        entry = ledger.get(target.path)
        separator = None if entry is None or entry.separator is None else entry.separator.encode()
        evidence = Evidence(recorded=True, created=bool(entry and entry.created), separator=separator)
        after = decide(target, image.data, nothing, evidence).after
        if after != image.data:
            text = "goes: it was made for our block" if after is None else "loses the block"
            steps.append(
                Step("block", target.path, text, unified_diff(target.path, image.data, after or b""))
            )
    return steps


def _leaving_steps(leaving: Iterable[KeyEdit]) -> list[Step]:
    """Hooks, and settings for MCP, that are taken back."""
    return [
        Step("key", path, f"{', '.join('.'.join(edit.key) for edit in group)}: our part is taken out again")
        for path, group in by_path(leaving).items()
    ]


def _as_new_file(target: Target, survey: Survey) -> str:
    """What a file that we make is to Git, how it can be shared, and what it would hide from others then."""
    if not target.local or target.checkout is None:
        return "a new file"
    name = target.path.relative_to(target.checkout).as_posix()
    told = "a new file, kept out of Git"
    if target.own:
        return told
    site = next(site for site in survey.sites if site.checkout == target.checkout)
    hidden = agents_md.hidden_from_others(site) if name == agents_md.NAME else ()
    effect = f"; it would hide {' and '.join(hidden)} from OpenCode and others there" if hidden else ""
    return f"{told}; `git add -f {name}` shares it with others{effect}"


def _key_steps(edits: Iterable[KeyEdit]) -> list[Step]:
    steps = []
    for path, group in by_path(edits).items():
        image = files.read_image(path)
        after = image.data
        for edit in group:
            after = apply.edited(after, edit)
        if after != image.data:
            names = ", ".join(_edit_in_words(edit) for edit in group)
            why = "; ".join(dict.fromkeys(edit.why for edit in group))
            steps.append(Step("key", path, f"{names}: {why}", unified_diff(path, image.data, after)))
    return steps


def _edit_in_words(edit: KeyEdit) -> str:
    """The key and its value; of a long one, which the diff has, only that it is set."""
    key, value = ".".join(edit.key), json.dumps(edit.value)
    if len(value) > _LONG_VALUE:
        return f"{key} gets an entry" if edit.element else f"{key} is set"
    return f"{key} gets {value}" if edit.element else f"{key} = {value}"


def _git_steps(project: Project, survey: Survey, snapshot: Snapshot) -> list[Step]:
    checkout = survey.checkout
    if checkout is None:
        return []
    is_local = project.mode == "local"
    kept = "the whole memory" if is_local else "private facts, and those that nobody has judged yet,"
    excluded = _exclude_lines(project, survey, snapshot)
    steps = [_line_step(git.exclude_file(checkout), f"keeps {kept} out of Git", excluded)]
    tracked = {target.real for target in survey.layout.targets if target.tracked}
    driven = sorted(
        path.relative_to(root).as_posix()
        for path, merge in git.attribute(checkout, "merge", tracked).items()
        for root in (site.checkout for site in survey.sites)
        if merge_driver.may_drive(merge) and path.is_relative_to(root)
    )
    if driven:
        text = f"gets the merge driver {merge_driver.NAME!r}, for the blocks in tracked files"
        steps.append(Step("git", checkout.common_dir / "config", text))
        names = "names the tracked files that this driver merges"
        attributes = merge_driver.attribute_lines(driven)
        steps.append(_line_step(git.attributes_file(checkout), names, attributes))
    known = {entry.path for entry in Ledger(paths.project_state(project.id)).entries()}
    return [step for step in steps if str(step.path) not in known]


def _exclude_lines(project: Project, survey: Survey, snapshot: Snapshot) -> list[str]:
    """What `info/exclude` gets for the store as it is now and the files that would be made."""
    shared = [fact.path for fact in snapshot.shared] + [document.name for document in snapshot.documents]
    tracked = (
        git.tracked(survey.checkout, [project.store / name for name in shared]) if survey.checkout else ()
    )
    places = [target.path for target in survey.layout.targets if target.local and not target.tracked]
    places += [edit.path for edit in survey.keys if edit.local]
    roots = [site.checkout for site in survey.sites]
    created = {path.relative_to(root) for path in places for root in roots if path.is_relative_to(root)}
    alone = survey.checkout is None or housekeeping.stands_alone(project, survey.checkout)
    lines = excludes.exclude_lines(
        store=STORE_NAME,
        local=project.mode == "local",
        shared=[name for name in shared if project.store / name not in tracked] if alone else (),
        created=[path for path in created if not (project.root / path).exists()],
    )
    if alone or survey.checkout is None:
        return lines
    return housekeeping.with_siblings(lines, files.read_image(git.exclude_file(survey.checkout)).data)


def _line_step(path: Path, text: str, lines: list[str]) -> Step:
    before = files.read_image(path).data
    return Step("lines", path, text, unified_diff(path, before, config_edit.ensure_lines(before, lines)))


def _unshared(survey: Survey, store: Store, snapshot: Snapshot) -> list[Fact]:
    """Shared facts of an existing store that Git doesn't track yet."""
    if survey.checkout is None:
        return []
    try:
        tracked = git.tracked_below(survey.checkout, store.root)
    except AgentBridgeError:
        return []
    return [fact for fact in snapshot.shared if store.root / fact.path not in tracked]
