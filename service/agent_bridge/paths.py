"""Where everything lies: one function a place, from the environment alone.

The answers are the same in a shell, under systemd, under launchd and from cron, as long as HOME (or, where
it is missing, the user database) says the same. `env` is the environment to judge by; None means the
process's own. On Linux the XDG Base Directory rules hold: a value that isn't absolute is ignored. On macOS
XDG variables are ignored for our own places, since launchd doesn't hand them to an agent.

`AGENT_BRIDGE_{CONFIG,STATE,DATA,CACHE,RUNTIME}_DIR` override each place; they must be absolute (`~/` is
understood, as a unit file doesn't expand it).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from agent_bridge.errors import AgentBridgeError, ConfigError, RefusedError

APP = "agent-bridge"
SOCKET_PATH_LIMIT = 103
"""Bytes that the path of a Unix socket may have: macOS's limit, four below Linux's."""

_RUN_USER = Path("/run/user")
_SHARED_TEMPORARY = Path("/tmp")  # noqa: S108 - never $TMPDIR, which differs between a shell and a service; checked


def home(env: Mapping[str, str] | None = None) -> Path:
    """The user's home: HOME when it is absolute, else what the user database says."""
    value = _environment(env).get("HOME", "")
    if value.startswith("/"):
        return Path(value)
    import pwd

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise ConfigError(
            "HOME isn't set, and the user database doesn't know this user.",
            remedy="Set HOME to an absolute path.",
        ) from None


def config_dir(env: Mapping[str, str] | None = None) -> Path:
    """Settings: ~/.config/agent-bridge; on macOS ~/Library/Application Support/agent-bridge."""
    return _place("CONFIG", "XDG_CONFIG_HOME", ".config", "Application Support/agent-bridge", env)


def config_file(env: Mapping[str, str] | None = None) -> Path:
    """The settings file; it needn't exist."""
    return config_dir(env) / "config.toml"


def data_dir(env: Mapping[str, str] | None = None) -> Path:
    """What the user would miss: ~/.local/share/agent-bridge."""
    return _place("DATA", "XDG_DATA_HOME", ".local/share", "Application Support/agent-bridge/data", env)


def global_store(env: Mapping[str, str] | None = None) -> Path:
    """The store of scope `global`."""
    return data_dir(env) / "memory"


def state_dir(env: Mapping[str, str] | None = None) -> Path:
    """Ledgers, kept bytes, locks, the list of projects: ~/.local/state/agent-bridge."""
    return _place("STATE", "XDG_STATE_HOME", ".local/state", "Application Support/agent-bridge/state", env)


def projects_file(env: Mapping[str, str] | None = None) -> Path:
    """The list of projects."""
    return state_dir(env) / "projects.json"


def project_state(project_id: str, env: Mapping[str, str] | None = None) -> Path:
    """State of one project. `project_id` comes from `projects.id_for`."""
    return state_dir(env) / "projects" / project_id


def user_state(env: Mapping[str, str] | None = None) -> Path:
    """State of what concerns the user rather than one project (scope `global`)."""
    return state_dir(env) / "user"


def service_lock(env: Mapping[str, str] | None = None) -> Path:
    """The lock that makes the service a single instance."""
    return state_dir(env) / "service.lock"


def log_file(env: Mapping[str, str] | None = None) -> Path:
    """Our own log, where no journal keeps it: state_dir()/service.log; on macOS in ~/Library/Logs."""
    if sys.platform == "darwin" and _override("STATE", env) is None:
        return home(env) / "Library/Logs" / APP / f"{APP}.log"
    return state_dir(env) / "service.log"


def cache_dir(env: Mapping[str, str] | None = None) -> Path:
    """What can be rebuilt: ~/.cache/agent-bridge; on macOS ~/Library/Caches/agent-bridge."""
    return _place("CACHE", "XDG_CACHE_HOME", ".cache", "Caches/agent-bridge", env)


def runtime_dir(env: Mapping[str, str] | None = None) -> Path:
    """Where the sockets lie; made by `ensure_private_dir`, not here.

    Linux: below XDG_RUNTIME_DIR or /run/user/UID, whichever first is a real directory of this user: `su`
    hands down another user's variable, and cron none. Where neither is, /tmp/agent-bridge-UID.
    Raises RefusedError if somebody else has taken that name.
    """
    override = _override("RUNTIME", env)
    if override is not None:
        return override
    if sys.platform == "darwin":
        return home(env) / "Library/Caches" / APP / "run"
    given = _environment(env).get("XDG_RUNTIME_DIR", "")
    candidates = ([Path(given)] if given.startswith("/") else []) + [_RUN_USER / str(os.getuid())]
    for candidate in candidates:
        if _is_ours(candidate):
            return candidate / APP
    shared = _SHARED_TEMPORARY / f"{APP}-{os.getuid()}"
    if os.path.lexists(shared) and not _is_ours(shared):
        raise _not_ours(shared)
    return shared


def status_socket(env: Mapping[str, str] | None = None) -> Path:
    """The socket that answers status queries. Raises ConfigError if its path is too long for a socket."""
    return _socket("status.sock", env)


def mcp_socket(env: Mapping[str, str] | None = None) -> Path:
    """The socket to which the stdio shims of agent programs connect. Raises as `status_socket`."""
    return _socket("mcp.sock", env)


def mcp_catalogue(env: Mapping[str, str] | None = None) -> Path:
    """The file that tells the shims what the running service answers to `initialize` and `tools/list`."""
    return state_dir(env) / "mcp" / "catalogue.json"


def registry_token(env: Mapping[str, str] | None = None) -> Path:
    """The file (0600) with the token that the registry asks of its clients."""
    return state_dir(env) / "registry.token"


def registry_address(env: Mapping[str, str] | None = None) -> Path:
    """The file that says where the registry of the running service answers: JSON `{"url", "pid"}`."""
    return state_dir(env) / "registry.json"


def channel_database(env: Mapping[str, str] | None = None) -> Path:
    """The SQLite file with messages and acks, where no `database_url` is set.

    In a directory of its own: the state directory is watched, and each commit would wake the watcher.
    """
    return state_dir(env) / "channel" / "channel.sqlite"


def ensure_private_dir(path: Path) -> Path:
    """Make `path` a directory that only this user may enter (0700), and return it.

    Missing parents are made too, and a symlink of the user's own is followed. Raises RefusedError if it is a
    symlink in a shared place, no directory, or somebody else's.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_symlink() and _is_ours(path.parent):
            path = path.resolve()
        if not _is_ours(path):
            raise _not_ours(path)
        if stat.S_IMODE(path.lstat().st_mode) != 0o700:
            path.chmod(0o700)
    except FileExistsError:
        raise _not_ours(path) from None
    except OSError as error:
        raise AgentBridgeError(
            "A directory of ours can't be made", path=path, detail=error.strerror or str(error)
        ) from error
    return path


def claude_home(env: Mapping[str, str] | None = None) -> Path:
    """Claude Code's directory: CLAUDE_CONFIG_DIR or ~/.claude (Claude Code 2.1.332)."""
    return _harness_home("CLAUDE_CONFIG_DIR", ".claude", env)


def codex_home(env: Mapping[str, str] | None = None) -> Path:
    """Codex's directory: CODEX_HOME or ~/.codex (codex 0.171.0)."""
    return _harness_home("CODEX_HOME", ".codex", env)


def opencode_config(env: Mapping[str, str] | None = None) -> Path:
    """OpenCode's configuration: ~/.config/opencode, by XDG_CONFIG_HOME on macOS too."""
    return _xdg("XDG_CONFIG_HOME", ".config", env) / "opencode"


def opencode_data(env: Mapping[str, str] | None = None) -> Path:
    """Where OpenCode keeps its sessions: ~/.local/share/opencode, by XDG_DATA_HOME on macOS too (1.18.33)."""
    return _xdg("XDG_DATA_HOME", ".local/share", env) / "opencode"


def gemini_home(env: Mapping[str, str] | None = None) -> Path:
    """Gemini CLI's and Antigravity's: `.gemini` in GEMINI_CLI_HOME or the home (gemini-cli 0.61.0)."""
    given = _environment(env).get("GEMINI_CLI_HOME", "")
    return (Path(given) if given.startswith("/") else home(env)) / ".gemini"


def _environment(env: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if env is None else env


def _place(
    kind: str, variable: str, below_home: str, below_library: str, env: Mapping[str, str] | None
) -> Path:
    override = _override(kind, env)
    if override is not None:
        return override
    if sys.platform == "darwin":
        return home(env) / "Library" / below_library
    return _xdg(variable, below_home, env) / APP


def _override(kind: str, env: Mapping[str, str] | None) -> Path | None:
    variable = f"AGENT_BRIDGE_{kind}_DIR"
    value = _environment(env).get(variable, "")
    if not value:
        return None
    path = home(env) / value[2:] if value.startswith("~/") else Path(value)
    if not path.is_absolute():
        raise ConfigError(
            f"{variable} is {value!r}, which isn't an absolute path.",
            detail="The service and a shell would take a relative path for different places.",
            remedy="Write the whole path.",
        )
    return path


def _xdg(variable: str, below_home: str, env: Mapping[str, str] | None) -> Path:
    value = _environment(env).get(variable, "")
    return Path(value) if value.startswith("/") else home(env) / below_home


def _harness_home(variable: str, below_home: str, env: Mapping[str, str] | None) -> Path:
    value = _environment(env).get(variable, "")
    return Path(value) if value.startswith("/") else home(env) / below_home


def _socket(name: str, env: Mapping[str, str] | None) -> Path:
    path = runtime_dir(env) / name
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT:
        raise ConfigError(
            f"The path of a socket would be {length} bytes long; {SOCKET_PATH_LIMIT} are possible",
            path=path,
            remedy="Set AGENT_BRIDGE_RUNTIME_DIR to a shorter directory of your own.",
        )
    return path


def _is_ours(path: Path) -> bool:
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def _not_ours(path: Path) -> RefusedError:
    return RefusedError(
        "This isn't a directory of yours, so agent-bridge doesn't use it",
        path=path,
        remedy="Remove it, or point the matching AGENT_BRIDGE_*_DIR variable at a directory of your own.",
    )
