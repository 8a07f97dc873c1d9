"""The names by which everything in the channel goes: identities, agents, messages, conversations. Pure."""

from __future__ import annotations

import hashlib
import re
import uuid

from agent_bridge.channel.errors import InvalidError

DASHBOARD_ID = "client-dashboard-ui"
"""The agent id of every dashboard."""
MAX_ID = 200
"""Characters that an id may have."""

IDENTITY_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The whole name of an identity, as a regular expression."""

_IDENTITY = re.compile(IDENTITY_PATTERN)
_NAME_IN_ID = 64
_MASK = 0xFFFFFFFF


def checked_identity(text: object) -> str:
    """The name of an identity: 1-64 of `A-Z a-z 0-9 . _ -`, the first a letter or digit.

    Raises InvalidError.
    """
    if isinstance(text, str) and _IDENTITY.fullmatch(text):
        return text
    raise InvalidError(
        "That identity can't be used",
        detail="identity is 1-64 letters, digits, '.', '_' or '-', and begins with a letter or digit",
    )


def checked_id(text: object, what: str) -> str:
    """An id as others chose it: 1-200 printable characters; no control or bidi characters, no line breaks.

    `what` names the field, as in `messageId`. Raises InvalidError.
    """
    if isinstance(text, str) and 0 < len(text) <= MAX_ID and text.isprintable() and not text.isspace():
        return text
    raise InvalidError(
        f"{what} can't be used",
        detail=f"{what} is 1-{MAX_ID} printable characters on one line, not only blanks",
    )


def thread_id() -> str:
    """A new conversation's id, a random UUID."""
    return str(uuid.uuid4())


def message_id() -> str:
    """A new message's id, a random UUID."""
    return str(uuid.uuid4())


def pair_id(one: str, other: str) -> str:
    """The conversation id of two agents, in the shape of a UUID, the same from both sides."""
    digits = _sha1(*sorted((one, other)))
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{digits[16:20]}-{digits[20:32]}"


def client_id(name: str, project_path: str, identity: str) -> str:
    """The agent id of a client program's session, `client-<name>-<12 hex>`; `name` as in its `clientInfo`.

    Characters that no id may have become `-`, and a long name is cut; the digits come of the full name.
    """
    shown = "".join(letter if letter.isprintable() else "-" for letter in name[:_NAME_IN_ID])
    return f"client-{shown}-{_sha1(name, project_path, identity)[:12]}"


def codex_bridge_id(project_path: str, identity: str) -> str:
    """The agent id of the bridge into Codex for one project."""
    return f"client-codex-bridge-{_sha1('codex-app-bridge', project_path, identity)[:12]}"


def opencode_bridge_id(project_path: str, identity: str) -> str:
    """The agent id of the plugin in OpenCode for one project; hashes UTF-16 units, as the plugin does."""
    text = f"{project_path}\n{identity}".encode("utf-16-le", "surrogatepass")
    value = 0xDEADBEEF
    for unit in memoryview(text).cast("H") if text else ():
        value = (value ^ unit) * 2654435769 & _MASK
    return f"client-opencode-bridge-{value ^ (value >> 16):08x}"


def _sha1(*parts: str) -> str:
    return hashlib.sha1("\n".join(parts).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
