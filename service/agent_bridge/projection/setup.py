"""Setting a project up (`init`), and leaving it again (`eject`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git, paths, projects
from agent_bridge.config import Settings
from agent_bridge.errors import NotFoundError, RefusedError
from agent_bridge.harnesses import all_harnesses, in_use
from agent_bridge.harnesses.base import KeyEdit, Scope, by_path
from agent_bridge.memory.store import Store
from agent_bridge.projection import (
    adopt,
    apply,
    guard,
    hook_context,
    hook_settings,
    housekeeping,
    legacy,
    mcp_settings,
    merge_driver,
    native_import,
    removed_worktrees,
    skill,
    undo,
)
from agent_bridge.projection.engine import Engine, Report, global_engine
from agent_bridge.projection.hooked import user_edits
from agent_bridge.projection.ledger import Kind, Ledger
from agent_bridge.projection.presence import check_store, is_gone
from agent_bridge.projection.survey import Survey, survey_project, survey_user
from agent_bridge.projects import Delivery, Mode, Project, Worktrees

_PURPOSE = "set-up"


@dataclass(frozen=True, slots=True)
class SetUp:
    """What `init` did: the project, the first report, and counts of what came in."""

    project: Project
    report: Report
    adopted: int
    imported: Mapping[str, int]
    left: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Ejected:
    """What `eject` did: one entry a path, and facts of the store's that stay."""

    undone: list[undo.Undone] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def refused(self) -> list[undo.Undone]:
        """What a person has to look at."""
        return [one for one in self.undone if one.outcome == "refused"]


def describe(
    cwd: Path,
    *,
    mode: Mode | None = None,
    worktrees: Worktrees = "shared",
    delivery: Delivery | None = None,
    mcp: bool | None = None,
    env: Mapping[str, str] | None = None,
) -> Project:
    """The project that `init` in `cwd` would set up, or the one that is; nothing is written.

    With `worktrees` "separate" a worktree is a project of its own, beside its main checkout's. `mcp`: whether
    clients get our MCP server there; None leaves it as it is, on at first.
    """
    own, main = projects.locate_both(cwd)
    root = own if worktrees == "separate" else main
    if git.is_inside_git_dir(root):
        raise RefusedError("A project can't be made here", path=root, detail=git.why_no_checkout(root))
    check_store(root / projects.STORE_NAME)
    known = next((project for project in projects.load_projects() if project.root == root), None)
    environment = projects.captured_environment(env)
    if known is not None:
        return replace(
            known,
            environment=environment,
            mode=mode or known.mode,
            worktrees=worktrees,
            delivery=delivery or known.delivery,
            mcp=(known.mcp is not False) if mcp is None else mcp,
        )
    if root in (Path("/"), paths.home(env).resolve()):
        raise RefusedError(
            "The home directory can't be a project"
            if root != Path("/")
            else "The top directory can't be a project",
            path=root,
            remedy="Facts for all projects go into the global store: `agent-bridge add --scope global TEXT`.",
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Project(
        projects.id_for(root),
        root,
        environment,
        mode or "shared",
        now,
        worktrees,
        delivery or "blocks",
        main=None if root == main else main,
        mcp=mcp is not False,
    )


def init(project: Project, settings: Settings, *, keep_private: bool = False) -> SetUp:
    """Set `project` up, or bring it in line again; safe to run twice, and to go on after a kill.

    `keep_private` marks every adopted and imported fact as private.
    """
    if os.path.lexists(project.root / ".git") and git.find_checkout(project.root) is None:
        raise RefusedError(
            "Private facts couldn't be kept out of Git here",
            path=project.root,
            detail=git.why_no_checkout(project.root),
            remedy="Install Git, or repair the repository.",
        )
    engine = Engine(project, settings)
    timeout = settings.lock_timeout_s
    with (
        files.locked(paths.user_state() / "lock", timeout=timeout, purpose=_PURPOSE),
        files.locked(engine.lock, timeout=timeout, purpose=_PURPOSE),
    ):
        projects.add_project(project)
        for state in (project.state, paths.user_state()):
            in_use.forget(state)
        guard.lift(engine.store)
        # Excluded before anything is in it: a fact that nobody has judged must not be addable for a moment.
        survey = survey_project(project, settings)
        users = Ledger(paths.user_state())
        withdrawn = hook_settings.withdraw_stale(project, engine.ledger, users, survey.hooked)
        if mcp_settings.withdraw_stale(project, engine.ledger, users, survey.mcp) or withdrawn:
            survey = survey_project(project, settings)
        if not project.mcp:
            _check_taken_out(skill.withdraw(users, project))
        engine.store.create()
        housekeeping.Excluder(project, engine.ledger).keep(survey, engine.store.scan())
        before = frozenset(fact.path for fact in engine.store.scan().facts)
        left = _take_over(engine.ledger, engine.store, survey)
        counts = _import(project, engine.store, survey)
        if keep_private:
            for fact in engine.store.scan().facts:
                if fact.path not in before:
                    engine.store.unshare(fact.id)
        adopted = len({fact.path for fact in engine.store.scan().facts} - before) - counts.get("added", 0)
        adopt.close_adoption(engine.ledger, engine.store, before)
        set_keys(engine.ledger, survey.keys)
        keep_merge_driver(engine.ledger, survey)
        left += legacy.replace_all(project, legacy.look(project, survey, engine.store.scan()))
    report = engine.reconcile()
    set_user_keys(settings, project, survey)
    user = global_engine(settings)
    user.reconcile()
    guard.lift(user.store)  # behind its own lines by now, which let in what is shared
    return SetUp(project, report, adopted, counts, left)


def eject(project: Project, settings: Settings, *, purge: bool = False) -> Ejected:
    """Take this project out: every change undone, the store left; user-wide changes go with the last one."""
    done = Ejected()
    engine = Engine(project, settings)
    survey = engine.survey()
    busy = [work for checkout in survey.checkouts.values() if (work := git.activity(checkout))]
    if busy:
        raise RefusedError(
            f"Git is at work here ({busy[0]})", path=project.root, remedy="Finish it, then eject again."
        )
    # What was written inside our blocks becomes a candidate first; no pass is run for those who have left.
    if not is_gone(project.root):
        engine.reconcile()
    user = global_engine(settings)
    if user.ledger.entries() and {one.id for one in projects.load_projects()} <= {project.id}:
        user.reconcile()
    timeout = settings.lock_timeout_s
    with (
        files.locked(user.lock, timeout=timeout, purpose="eject"),
        files.locked(engine.lock, timeout=timeout, purpose="eject"),
    ):
        last = {one.id for one in projects.load_projects()} <= {project.id}
        done.undone += undo.obstacles(engine.ledger) + (undo.obstacles(user.ledger) if last else [])
        if done.refused:
            return done  # all or nothing: the service would write the other half back
        _guard_private(project, engine)
        done.undone += undo_all(engine.ledger, engine.store)
        done.undone += legacy.restore_all(project)
        hook_context.remove(engine.state)
        done.undone += hook_settings.withdraw_users(user.ledger, project)
        done.undone += mcp_settings.withdraw_users(user.ledger, project)
        done.undone += skill.withdraw(user.ledger, project)
        if last and not done.refused:
            guard.guard_private(user.store)  # homes are kept in repositories too
            done.undone += undo_all(user.ledger, user.store)
        # Last: what was killed before this is still a project, which can be ejected again.
        if not done.refused:
            projects.remove_project(project.id)
    if purge and not done.refused:
        done.notes += _purge(project)
        if not projects.load_projects():
            _purge_user()
    return done


def _check_taken_out(undone: Iterable[undo.Undone]) -> None:
    """Raises RefusedError where something stays though its user doesn't want it."""
    for one in undone:
        if one.outcome == "refused":
            raise RefusedError("It can't be taken out", path=one.path, detail=one.note)


def _purge(project: Project) -> list[str]:
    """Remove a project's state; copies of facts whose worktree is gone are the last there are, and stay."""
    last = removed_worktrees.copies(project) if project.main and is_gone(project.root) else []
    if not last:
        shutil.rmtree(project.state, ignore_errors=True)
        return []
    return [f"{len(last)} copies of facts of {project.root}, which is gone, stay in {last[0].parent}."]


def _purge_user() -> None:
    """What we kept for all projects; locks stay, somebody may be waiting for one."""
    for directory in (paths.user_state(), native_import.held_directory(), paths.cache_dir()):
        shutil.rmtree(directory, ignore_errors=True)
    for file in (paths.projects_file(), paths.state_dir() / ".gitignore"):
        file.unlink(missing_ok=True)


def undo_all(ledger: Ledger, store: Store) -> list[undo.Undone]:
    """Undo every entry, the newest first."""
    undone = []
    for entry in reversed(ledger.entries()):
        if entry.kind is Kind.LINK:
            undone.append(adopt.undo_link(ledger, store, entry))
        else:
            undone.append(undo.undo(ledger, entry))
    return undone


def set_keys(ledger: Ledger, edits: tuple[KeyEdit, ...]) -> None:
    """Set the keys that harnesses need, file by file."""
    for path, group in by_path(edits).items():
        apply.edit_keys(ledger, path, group)


def set_user_keys(settings: Settings, project: Project, survey: Survey) -> None:
    """Switch off the memories that harnesses keep for all projects, which have been imported before.

    And set what hooks and our MCP server need in files that serve all projects, and install the skill.
    """
    ledger = Ledger(paths.user_state())
    user = survey_user(settings, project.environment)
    native_off = dict.fromkeys((*survey.native_off, *user.native_off))
    edits = (*native_off, *user.keys, *user_edits(project, survey.hooked), *survey.mcp.user)
    with files.locked(paths.user_state() / "lock", timeout=settings.lock_timeout_s, purpose=_PURPOSE):
        set_keys(ledger, edits)
        skill.install(ledger, survey.skill)


def keep_merge_driver(ledger: Ledger, survey: Survey) -> None:
    """Have Git merge tracked files with a block by our driver."""
    checkout = survey.checkout
    if checkout is None:
        return
    asked = git.attribute(
        checkout, "merge", {target.real for target in survey.layout.targets if target.tracked}
    )
    tracked = [path for path, value in asked.items() if merge_driver.may_drive(value)]
    if not tracked:
        return
    roots = [site.checkout for site in survey.sites]
    names = {
        path.relative_to(root).as_posix() for path in tracked for root in roots if path.is_relative_to(root)
    }
    program = merge_driver.own_program()
    if program is None:
        return  # without a program to name, Git's own merge is the better driver
    apply.set_git(ledger, checkout, merge_driver.settings(program, git.version()))
    apply.edit_lines(ledger, git.attributes_file(checkout), merge_driver.attribute_lines(sorted(names)))


def listed(cwd: Path) -> Project:
    """The set-up project that `cwd` lies in; NotFoundError with the remedy where there is none."""
    project = projects.find_project(cwd)
    if project is None:
        raise NotFoundError(
            "This directory isn't set up", path=cwd, remedy="Run `agent-bridge init` here first."
        )
    return project


def _take_over(ledger: Ledger, store: Store, survey: Survey) -> tuple[tuple[str, str], ...]:
    left: list[tuple[str, str]] = []
    user = Store(paths.global_store(), scope="global", state=paths.user_state())
    for adoption in survey.adoptions:
        tree = adopt.read_tree(adoption.directory)
        whose = store if adoption.scope is Scope.PROJECT else user
        whose.create()
        found = adopt.adopt_files(whose, tree, "claude-code")
        left += [(str(adoption.directory / name), why) for name, why in found.left]
    for link in survey.links:
        found = adopt.make_link(ledger, store, link.path, "claude-code")
        left += [(str(link.path / name), why) for name, why in found.left]
    return tuple(left)


def _import(project: Project, store: Store, survey: Survey) -> dict[str, int]:
    items = native_import.pending_items(native_import.gather(all_harnesses(), project.environment))
    found = native_import.sort_items(items, [site.checkout for site in survey.sites])
    now = native_import.utc_now()
    counts = native_import.import_items(store, found.project, now=now)
    native_import.release_items(found.project)
    if found.user:
        user = Store(paths.global_store(), scope="global", state=paths.user_state())
        user.create()
        more = native_import.import_items(user, found.user, now=now)
        counts["global"] = more["added"]
    counts["held"] = native_import.hold_items(found.elsewhere)
    return counts


def _guard_private(project: Project, engine: Engine) -> None:
    """With the excludes gone, private facts would be addable: a rule in the store itself keeps them out."""
    if engine.survey().checkout is None:
        return
    if project.mode == "local":
        guard.guard(engine.store)
    else:
        guard.guard_private(engine.store)
