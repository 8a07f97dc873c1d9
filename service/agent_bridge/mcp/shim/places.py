"""Where the service's socket and its catalogue lie: the rules of `agent_bridge.paths`, without its imports.

A test holds both equal for any environment.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_APP = "agent-bridge"
_SOCKET_PATH_LIMIT = 103


def socket_path(env: Mapping[str, str]) -> str:
    """The service's socket for shims; needn't exist. Raises ValueError where there can't be one."""
    path = _joined(_runtime_dir(env), "mcp.sock")
    length = len(os.fsencode(path))
    if length > _SOCKET_PATH_LIMIT:
        raise ValueError(
            f"The path of the socket {path} would be {length} bytes long; {_SOCKET_PATH_LIMIT} are possible. "
            "Set AGENT_BRIDGE_RUNTIME_DIR to a shorter directory of your own."
        )
    return path


def catalogue_path(env: Mapping[str, str]) -> str:
    """The catalogue that the service writes; needn't exist. Raises ValueError where there can't be one."""
    return _joined(_state_dir(env), "mcp", "catalogue.json")


def _state_dir(env: Mapping[str, str]) -> str:
    override = _override("STATE", env)
    if override is not None:
        return override
    if sys.platform == "darwin":
        return _joined(_home(env), "Library", "Application Support", _APP, "state")
    given = env.get("XDG_STATE_HOME", "")
    base = given if given.startswith("/") else _joined(_home(env), ".local", "state")
    return _joined(base, _APP)


def _runtime_dir(env: Mapping[str, str]) -> str:
    override = _override("RUNTIME", env)
    if override is not None:
        return override
    if sys.platform == "darwin":
        return _joined(_home(env), "Library", "Caches", _APP, "run")
    given = env.get("XDG_RUNTIME_DIR", "")
    for candidate in (given, f"/run/user/{os.getuid()}"):
        if candidate.startswith("/") and _is_ours(_plain(candidate)):
            return _joined(candidate, _APP)
    shared = f"/tmp/{_APP}-{os.getuid()}"  # noqa: S108 - checked to be ours, as in `paths`
    if os.path.lexists(shared) and not _is_ours(shared):
        raise ValueError(f"{shared} isn't a directory of yours, so agent-bridge doesn't use it. Remove it.")
    return shared


def _override(kind: str, env: Mapping[str, str]) -> str | None:
    variable = f"AGENT_BRIDGE_{kind}_DIR"
    value = env.get(variable, "")
    if not value:
        return None
    path = _joined(_home(env), value[2:]) if value.startswith("~/") else _plain(value)
    if not path.startswith("/"):
        raise ValueError(f"{variable} is {value!r}, which isn't an absolute path. Write the whole path.")
    return path


def _home(env: Mapping[str, str]) -> str:
    value = env.get("HOME", "")
    if value.startswith("/"):
        return value
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise ValueError("HOME isn't set, and the user database doesn't know this user.") from None


def _joined(*parts: str) -> str:
    return _plain(os.path.join(*parts))  # noqa: PTH118 - pathlib alone takes longer than the shim may


def _plain(path: str) -> str:
    """As pathlib writes it: no empty and no `.` parts; two leading slashes stay two."""
    root = "" if not path.startswith("/") else "//" if path[:2] == "//" != path[1:3] else "/"
    return root + "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_ours(path: str) -> bool:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return False
    return info.st_mode & 0o170000 == 0o040000 and info.st_uid == os.getuid()
