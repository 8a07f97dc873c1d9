"""The token that the registry asks of its clients: one line in a file that only this user can read.

The file is made where it is missing and kept otherwise; one that was replaced counts from the next request
on. Where others could have read or written it, nobody is let in until that is put right.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import ClassVar

from agent_bridge import paths
from agent_bridge.channel.errors import ChannelError
from agent_bridge.errors import AgentBridgeError

_BYTES = 32
_SHORTEST, _LONGEST = 32, 512
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


class TokenError(ChannelError):
    """The token file can't be used, so nobody can be told from anybody else; `path` names it."""

    status: ClassVar[int] = 503
    code = "token"


class TokenFile:
    """The token in `path`; every look costs one `lstat` as long as the file stays the same."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] | None = None
        self._token = b""

    def current(self) -> bytes:
        """The token in force; made where the file is missing. Raises TokenError."""
        try:
            signs = _signs(self.path.lstat())
        except FileNotFoundError:
            self._make()
            signs = None
        except OSError as error:
            raise _unusable(self.path, error.strerror or str(error)) from error
        if signs is None or signs != self._seen:
            self._seen = None
            self._token, self._seen = self._read()
        return self._token

    def problem(self) -> str | None:
        """Why the token can't be used, in one sentence for `status`; None when it can."""
        try:
            self.current()
        except TokenError as error:
            return error.sentence()
        return None

    def _make(self) -> None:
        """Put a new token there, whole and closed to others from the start; an existing one stays."""
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.tmp")
        try:
            paths.ensure_private_dir(self.path.parent)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                os.fchmod(descriptor, 0o600)
                os.write(descriptor, secrets.token_urlsafe(_BYTES).encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _give_name(temporary, self.path)
        except OSError as error:
            raise _unusable(self.path, f"it can't be made: {error.strerror or error}") from error
        except AgentBridgeError as error:
            raise _unusable(self.path, f"it can't be made: {error.sentence()}") from error
        finally:
            temporary.unlink(missing_ok=True)

    def _read(self) -> tuple[bytes, tuple[int, ...]]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
        except OSError as error:
            reason = "it is a symlink" if self.path.is_symlink() else error.strerror or str(error)
            raise _unusable(self.path, reason) from error
        try:
            found = os.fstat(descriptor)
            _check(found, self.path)
            text = os.read(descriptor, _LONGEST + 2).strip()
        except OSError as error:
            raise _unusable(self.path, error.strerror or str(error)) from error
        finally:
            os.close(descriptor)
        if not _SHORTEST <= len(text) <= _LONGEST or not all(0x21 <= byte <= 0x7E for byte in text):
            raise _unusable(self.path, f"it doesn't hold one word of {_SHORTEST} to {_LONGEST} characters")
        return text, _signs(found)


def _give_name(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        return  # somebody else was faster; that one is kept
    except OSError:
        temporary.rename(path)  # a file system without hard links


def _signs(info: os.stat_result) -> tuple[int, ...]:
    # A change of owner, mode or content changes ctime, which nobody can set back.
    return info.st_dev, info.st_ino, info.st_mode, info.st_uid, info.st_size, info.st_ctime_ns


def _check(info: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise _unusable(path, "it isn't a regular file")
    if info.st_uid != os.getuid():
        raise _unusable(path, "it belongs to another user")
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise _unusable(path, f"others may use it, its mode is {stat.S_IMODE(info.st_mode):04o}")


def _unusable(path: Path, reason: str) -> TokenError:
    return TokenError(
        "The registry's token can't be used, so nobody is let in",
        path=path,
        detail=reason,
        remedy="Remove the file; a new one is made.",
    )
