"""Databases for the tests: a SQLite file, and a PostgreSQL server of our own where one is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.channel.storage.place import Place
from integration.channel.cluster import Cluster, programs
from integration.channel.records import Records


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running PostgreSQL server, the same for all tests of a worker."""
    bin_dir = programs()
    if bin_dir is None:
        why = "PostgreSQL's server isn't installed (Debian: postgresql)"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    server = Cluster(bin_dir)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database_name(cluster: Cluster) -> Iterator[str]:
    """An empty database on that server."""
    name = cluster.new_database()
    yield name
    cluster.give_back(name)


@pytest.fixture
def postgresql_url(cluster: Cluster, database_name: str) -> str:
    """Its `database_url`."""
    return cluster.url(database_name)


@pytest.fixture(params=["sqlite", "postgresql"])
def each_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for messages with nothing in it: the test runs once for each kind."""
    if request.param == "sqlite":
        return Place.file(tmp_path / "channel" / "channel.sqlite")
    return Place.of(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    """An open store in a SQLite file."""
    with Records(Place.file(tmp_path / "channel" / "channel.sqlite")) as opened:
        yield opened


@pytest.fixture
def each_records(each_place: Place) -> Iterator[Records]:
    """An open store: the test runs once for each kind of database."""
    with Records(each_place) as opened:
        yield opened
