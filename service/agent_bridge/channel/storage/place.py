"""Where messages are kept: a SQLite file of ours, or a PostgreSQL database that a team shares.

Imports neither SQLAlchemy nor a driver: the service asks for the place long before anybody sends a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from agent_bridge import paths
from agent_bridge.errors import ConfigError

_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_SECRETS = ("password", "sslpassword", "passfile")
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Place:
    """One place. Made by `of` or `file`; `path` is None for PostgreSQL.

    `url` holds the password where there is one: it is for connecting only. `shown` is for people.
    """

    path: Path | None
    url: str = field(default="", repr=False)
    shown: str = ""

    @classmethod
    def of(cls, database_url: str, env: Mapping[str, str] | None = None) -> Place:
        """The place that the setting `database_url` names; empty: SQLite in the state directory.

        Raises ConfigError, in which no part of a password stands.
        """
        if not database_url:
            return cls.file(paths.channel_database(env))
        scheme, separator, rest = database_url.partition("://")
        if not separator or scheme not in _SCHEMES:
            raise _unusable("It isn't the address of a PostgreSQL database.")
        url = f"postgresql+psycopg://{rest}"
        return cls(path=None, url=url, shown=_shown(url))

    @classmethod
    def file(cls, path: Path) -> Place:
        """A SQLite file; it needn't exist."""
        return cls(path=path, shown=str(path))

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of ours."""
        return self.path is not None

    def exists(self) -> bool:
        """Whether something may be kept there already; a database on a server counts as there."""
        return self.path is None or self.path.exists()

    def without_secrets(self, text: str) -> str:
        """`text` (a driver's message) without the password, however it is written."""
        for secret in self._secrets():
            text = text.replace(secret, _HIDDEN)
        return text

    def _secrets(self) -> list[str]:
        if not self.url:
            return []
        parts = urlsplit(self.url)
        found = [parts.password or ""] + [value for key, value in parse_qsl(parts.query) if key in _SECRETS]
        forms = {form for value in found for form in (value, unquote(value), quote(unquote(value), safe=""))}
        return sorted((form for form in forms if form), key=len, reverse=True)


def _shown(url: str) -> str:
    """The address without password and query, which may hold one too."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
        host = parts.hostname or ""
    except ValueError:
        # Not told why: a part of an unquoted password would stand in the message.
        raise _unusable("Its host or port can't be read.") from None
    if "@" in url.removeprefix(f"{parts.scheme}://{parts.netloc}"):
        raise _unusable("A character of its password has to be written as %XX.")
    user = f"{parts.username}@" if parts.username else ""
    host = f"[{host}]" if ":" in host else host
    return f"postgresql://{user}{host}{port}{parts.path}"


def _unusable(detail: str) -> ConfigError:
    return ConfigError(
        "The setting database_url can't be used",
        detail=detail,
        remedy="Write postgresql+psycopg://user:password@host:port/database, with special characters of the "
        "password as %XX, or leave it out for SQLite.",
    )
