"""A PostgreSQL server of the tests' own, in a temporary directory; stopped and removed at the end.

It answers on a Unix socket there without a password, and on 127.0.0.1 with one. PostgreSQL refuses to run as
root: then it runs as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

USER = "keeper"
PASSWORD = "open sesame"
_START_S = 60


def programs() -> Path | None:
    """The directory with `initdb` and `postgres`: Debian keeps them off PATH. None where not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return versions[-1].parent if versions else None


class Cluster:
    """The server. `url` for a database on its socket, `address` for one on its port, with the password."""

    def __init__(self, bin_dir: Path) -> None:
        self._bin = bin_dir
        self._directory = Path(tempfile.mkdtemp(prefix="abpg", dir="/tmp"))
        self._data = self._directory / "data"
        self.port = _free_port()
        self._made = 0
        self._free: list[str] = []

    def start(self) -> None:
        """Make the cluster if there is none, start the server and wait until it answers."""
        if not self._data.exists():
            self._make()
        self._control("start", "-l", str(self._directory / "log"), "-t", str(_START_S))

    def stop(self) -> None:
        """Stop the server at once, as a crash of its machine would."""
        self._control("stop", "-m", "immediate")

    def remove(self) -> None:
        """Stop the server and remove its files."""
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def new_database(self) -> str:
        """An empty database; its name."""
        if self._free:
            return self._free.pop()
        self._made += 1
        name = f"channel{self._made}"
        self.run_sql(f"CREATE DATABASE {name}")
        return name

    def give_back(self, name: str) -> None:
        """Empty a database and keep it for the next test: a new one is a thousand files."""
        self.end_connections(name)
        self.run_sql("DROP SCHEMA public CASCADE", name)
        self.run_sql("CREATE SCHEMA public", name)
        self._free.append(name)

    def url(self, name: str) -> str:
        """The `database_url` of a database, by way of the socket."""
        return f"postgresql+psycopg://{USER}@/{name}?host={self._directory}&port={self.port}"

    def address(self, name: str, password: str = PASSWORD) -> str:
        """The `database_url` of a database, by way of the port."""
        quoted = password.replace(" ", "%20")
        return f"postgresql+psycopg://{USER}:{quoted}@127.0.0.1:{self.port}/{name}"

    def end_connections(self, name: str) -> None:
        """End all connections to a database, as an administrator would."""
        everybody = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname"
        self.run_sql(f"{everybody} = '{name}'")

    def run_sql(self, statement: str, database: str = "postgres") -> None:
        """Carry out a statement as the cluster's owner."""
        with psycopg.connect(
            host=str(self._directory), port=self.port, user=USER, dbname=database, autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def _make(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self._directory, "nobody")
        self._directory.chmod(0o755)
        secret = self._directory / "secret"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o644)
        self._run("initdb", "-D", self._data, "-U", USER, "--no-sync", "--no-locale", "-E", "UTF8",
                  "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}")  # fmt: skip
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = '127.0.0.1'\nport = {self.port}\nfsync = off\nmax_connections = 40\n"
                f"unix_socket_directories = '{self._directory}'\nshared_buffers = 16MB\n"
            )

    def _control(self, *words: str) -> None:
        # Its output would keep a pipe open as long as the server runs.
        self._run("pg_ctl", "-D", self._data, "-s", "-w", *words, output=subprocess.DEVNULL)

    def _run(
        self, program: str, *words: str | Path, output: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[str]:
        user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        return subprocess.run(
            [self._bin / program, *words],
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=self._directory,
            **user,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
