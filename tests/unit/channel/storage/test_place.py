"""Where messages are kept, and that a password never shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlalchemy import make_url

from agent_bridge import paths
from agent_bridge.channel.storage.place import Place
from agent_bridge.errors import ConfigError

ENV = {"HOME": "/home/user", "AGENT_BRIDGE_STATE_DIR": "/state"}


def test_without_a_setting_it_is_a_file_in_the_state_directory() -> None:
    place = Place.of("", ENV)
    assert place == Place.file(paths.channel_database(ENV))
    assert place.is_sqlite
    assert place.path == Path("/state/channel/channel.sqlite")
    assert place.shown == "/state/channel/channel.sqlite"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://ann:pw@db.example:5433/team", "postgresql://ann@db.example:5433/team"),
        ("postgresql://ann:pw@db.example/team", "postgresql://ann@db.example/team"),
        ("postgres://db.example/team", "postgresql://db.example/team"),
        ("postgresql+psycopg://ann:pw@[::1]:5433/team", "postgresql://ann@[::1]:5433/team"),
        ("postgresql+psycopg://ann@/team?host=/run/pg&password=pw", "postgresql://ann@/team"),
    ],
)
def test_a_server(url: str, shown: str) -> None:
    place = Place.of(url, ENV)
    assert not place.is_sqlite
    assert place.exists()
    assert place.shown == shown
    assert make_url(place.url).drivername == "postgresql+psycopg"
    assert make_url(place.url).database == "team"


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////tmp/x.sqlite",
        "mysql://ann:sesame@db/team",
        "/tmp/sesame.sqlite",
        "postgresql",
        "postgresql+psycopg://ann:sesame@db:port/team",
        "postgresql+psycopg://ann:se/same@db/team",
        "postgresql+psycopg://ann:12/same@db/team",
        "postgresql+psycopg://ann:12?same@db/team",
        "postgresql+psycopg://ann:12#same@db/team",
        "postgresql+psycopg://ann:[same@db/team",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Place.of(url, ENV)
    assert "database_url" in str(caught.value)
    assert "same" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1))
def test_no_password_is_shown(password: str) -> None:
    quoted = quote(password, safe="")
    marked = f"<{password}>"
    place = Place.of(f"postgresql+psycopg://u:{quote(marked, safe='')}@h/d?sslpassword={quoted}", ENV)
    assert make_url(place.url).password == marked
    assume(marked not in "postgresql://u@h/d")
    for text in (place.shown, repr(place), str(place)):
        assert marked not in text
        assert quote(marked, safe="") not in text
    for said in (marked, quote(marked, safe="")):
        assert said not in place.without_secrets(f'invalid connection option "{said}"')


def test_a_file_has_no_secrets() -> None:
    assert Place.file(Path("/a")).without_secrets("disk I/O error") == "disk I/O error"


def test_a_file_exists_once_it_is_there(tmp_path: Path) -> None:
    place = Place.file(tmp_path / "channel.sqlite")
    assert not place.exists()
    (tmp_path / "channel.sqlite").touch()
    assert place.exists()


def test_asking_for_the_place_imports_no_database_library() -> None:
    code = (
        "import sys; from agent_bridge.channel.storage.place import Place; Place.of('postgresql://a:b@c/d');"
        "print(sorted({'sqlalchemy', 'sqlite3', 'psycopg'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
