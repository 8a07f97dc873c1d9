"""The projects that `init` has set up, and which one a directory belongs to.

The list is one JSON file in the state directory: `{"schema": 1, "projects": [{"id", "root", "environment",
"mode", "created_at", "worktrees", "delivery", "requested", "main", "mcp"}]}`; the last four may be missing.
It is changed under a lock and replaced whole, so a reader needs none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from agent_bridge import files, git, paths
from agent_bridge.errors import RefusedError

SCHEMA = 1
STORE_NAME = ".memory"
ENVIRONMENT_NAMES = (
    "HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
)
"""What decides where harnesses keep their files, and which they read; `init` records those that are set."""

Mode = Literal["shared", "local"]
Worktrees = Literal["shared", "separate"]
Delivery = Literal["blocks", "hooks"]
"""How facts reach Claude Code and Codex: by blocks in files, or by a hook when a session starts."""


@dataclass(frozen=True, slots=True)
class Project:
    """One project. `root` is the real path of its main checkout; `created_at` is UTC in ISO 8601.

    `requested` are names of harnesses whose own extra files `sync --to` has asked for. `main` is the main
    checkout of a worktree that is a project of its own (`worktrees = "separate"`), None for all others.
    `mcp`: clients get our MCP server here; None where no `init` has shown that yet.
    """

    id: str
    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    mode: Mode = "shared"
    created_at: str = ""
    worktrees: Worktrees = "shared"
    delivery: Delivery = "blocks"
    requested: tuple[str, ...] = ()
    main: Path | None = None
    mcp: bool | None = None

    @property
    def store(self) -> Path:
        """The project's store."""
        return self.root / STORE_NAME

    @property
    def state(self) -> Path:
        """Its directory below the state directory: ledger, kept bytes, candidates."""
        return paths.project_state(self.id)

    @property
    def lock(self) -> Path:
        """The lock that everything holds that writes projections of this project."""
        return self.state / "lock"


def id_for(root: Path) -> str:
    """The id of the project at `root`: 16 hex digits of the SHA-256 of its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]


def locate(cwd: Path) -> Path:
    """The root of the project that `cwd` would belong to.

    Inside Git: the main checkout, also from a sub-directory, a worktree or through a symlink (the worktree
    itself where the repository is bare). Outside Git: the directory itself. A file stands for its directory.
    """
    return locate_both(cwd)[1]


def locate_both(cwd: Path) -> tuple[Path, Path]:
    """The top of the checkout that `cwd` lies in, a worktree perhaps, and the root that `locate` gives."""
    directory = Path(os.path.realpath(cwd))
    if directory.is_file():
        directory = directory.parent
    checkout = git.find_checkout(directory)
    if checkout is None:
        return directory, directory
    own = Path(os.path.realpath(checkout.root))
    return own, own if checkout.main_root is None else Path(os.path.realpath(checkout.main_root))


def find_project(cwd: Path) -> Project | None:
    """The listed project that `cwd` lies in, or None.

    Outside Git the innermost listed project above `cwd` counts; inside Git only the checkout's own, since
    a repository inside a project directory is a project of its own. A worktree belongs to its main checkout's
    project, unless that keeps worktrees separate.
    """
    known = {project.root: project for project in load_projects()}
    if not known:
        return None
    own, root = locate_both(cwd)
    if own in known:
        return known[own]
    if root in known:
        return known[root] if known[root].worktrees == "shared" else None
    if git.find_checkout(root) is not None:
        return None
    return next((known[parent] for parent in root.parents if parent in known), None)


def captured_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `ENVIRONMENT_NAMES` that are set, for `Project.environment`."""
    source = os.environ if env is None else env
    return {name: source[name] for name in ENVIRONMENT_NAMES if source.get(name)}


def environment_changes(project: Project, env: Mapping[str, str] | None = None) -> list[str]:
    """The variables that decide where harnesses keep their files and that aren't as `init` saw them."""
    now = captured_environment(env)
    return [name for name in ENVIRONMENT_NAMES if now.get(name) != project.environment.get(name)]


def load_projects() -> list[Project]:
    """The listed projects, in the order of their `init`; [] without a list.

    Raises RefusedError if the list can't be understood: treating it as empty would forget what to undo.
    """
    path = paths.projects_file()
    image = files.read_image(path)
    if not image.existed:
        return []
    try:
        document = json.loads(image.data)
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']!r}, expected {SCHEMA}")
        return [_from_json(item) for item in document["projects"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError(
            "The list of projects can't be understood",
            path=path,
            detail=f"{type(error).__name__}: {error}",
            remedy="Repair it, or move it away and run `agent-bridge init` in each project again.",
        ) from error


def add_project(project: Project, *, timeout: float = 30.0) -> None:
    """List a project, in the place of one with the same id. `timeout` in seconds; LockTimeoutError."""
    with _list_lock(timeout):
        known = load_projects()
        listed = [project if old.id == project.id else old for old in known]
        if project not in listed:
            listed.append(project)
        _save(listed)


def remove_project(project_id: str, *, timeout: float = 30.0) -> Project | None:
    """Take a project off the list; the one that was there, or None. `timeout` in seconds."""
    with _list_lock(timeout):
        known = load_projects()
        removed = next((project for project in known if project.id == project_id), None)
        if removed is not None:
            _save([project for project in known if project.id != project_id])
        return removed


def _list_lock(timeout: float) -> files.Locking:
    return files.locked(
        paths.projects_file().with_suffix(".lock"), timeout=timeout, purpose="change the list of projects"
    )


def _save(projects: list[Project]) -> None:
    guard = paths.state_dir() / ".gitignore"
    if not guard.exists():  # homes are kept in repositories too, and private texts lie here
        files.write_own(guard, b"*\n")
    for orphan in paths.projects_file().parent.glob(f".{paths.projects_file().name}.*.agent-bridge.tmp"):
        orphan.unlink(missing_ok=True)  # of a killed process: the list is written under its lock alone
    document = {"schema": SCHEMA, "projects": [_to_json(project) for project in projects]}
    files.write_own(paths.projects_file(), (json.dumps(document, indent=2) + "\n").encode())


def _to_json(project: Project) -> dict[str, object]:
    return {
        "id": project.id,
        "root": str(project.root),
        "environment": project.environment,
        "mode": project.mode,
        "created_at": project.created_at,
        "worktrees": project.worktrees,
        "delivery": project.delivery,
        "requested": list(project.requested),
        "main": None if project.main is None else str(project.main),
        "mcp": project.mcp,
    }


def _from_json(item: object) -> Project:
    if not isinstance(item, dict):
        raise ValueError("a project isn't an object")
    texts = {name: item.get(name, "") for name in ("id", "root", "mode", "created_at", "worktrees")}
    environment = item.get("environment", {})
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("a project has a value that isn't a text")
    if not (isinstance(environment, dict) and all(isinstance(text, str) for text in environment.values())):
        raise ValueError("a project's environment isn't a table of texts")
    delivery, requested, main = (item.get(name) for name in ("delivery", "requested", "main"))
    if delivery not in (None, "blocks", "hooks") or not isinstance(requested, list | None):
        raise ValueError(f"unknown delivery {delivery!r} or requested {requested!r}")
    mcp = item.get("mcp")
    if mcp not in (None, True, False):
        raise ValueError(f"unknown mcp {mcp!r}")
    if main is not None and not (isinstance(main, str) and Path(main).is_absolute()):
        raise ValueError(f"the main checkout {main!r} is no absolute path")
    root = Path(texts["root"])
    if not root.is_absolute() or texts["id"] != _id_of_real(root):
        raise ValueError(f"the id {texts['id']!r} doesn't belong to the root {texts['root']!r}")
    if texts["mode"] not in ("shared", "local") or texts["worktrees"] not in ("shared", "separate"):
        raise ValueError(f"unknown mode {texts['mode']!r} or worktrees {texts['worktrees']!r}")
    return Project(
        texts["id"],
        root,
        environment,
        cast(Mode, texts["mode"]),
        texts["created_at"],
        cast(Worktrees, texts["worktrees"]),
        cast(Delivery, delivery or "blocks"),
        tuple(name for name in requested or () if isinstance(name, str)),
        None if main is None else Path(main),
        None if mcp is None else bool(mcp),
    )


def _id_of_real(root: Path) -> str:
    # Not id_for: the directory may have become a symlink since, and its list entry must stay readable.
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
