"""A user manager for a module: one that already answers, else the lab, else a skip that says why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from system.answering import AnsweringManager, OccupiedError, a_manager_answers
from system.lab import TOOLS, Lab, NotPossibleError
from system.seat import Seat


@pytest.fixture(scope="module")
def seat() -> Iterator[Seat]:
    """A user with a systemd manager in which agent-bridge isn't installed."""
    if a_manager_answers():
        try:
            with AnsweringManager() as manager:
                yield manager
        except OccupiedError:
            pytest.skip("agent-bridge is installed in this user's systemd manager, which is left alone")
        return
    if os.getuid() != 0:
        pytest.skip("no systemd user manager answers, and only root can make one")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        unavailable(f"not installed: {', '.join(missing)} (systemd, dbus-user-session, util-linux)")
    lab = Lab()
    try:
        lab.open()
    except NotPossibleError as error:
        pytest.skip(f"no systemd user manager answers, and none can be made: {error}")
    yield lab
    lab.close()


@pytest.fixture
def lab(seat: Seat) -> Lab:
    """The manager of the lab, for what nobody would do to a user's own."""
    if not isinstance(seat, Lab):
        pytest.skip("done to a manager of our own only: this user's is in use")
    return seat


@pytest.fixture
def installed(seat: Seat) -> Seat:
    """The service, installed and just started; it stays for the next test."""
    seat.bridge("service", "install")
    return seat


@pytest.fixture
def uninstalled(seat: Seat) -> Seat:
    """A user without the service."""
    seat.bridge("service", "uninstall")
    return seat


@pytest.fixture
def project(seat: Seat, request: pytest.FixtureRequest) -> Path:
    """A Git repository of the user that is set up."""
    return seat.make_project(str(request.node.name))


def unavailable(why: str) -> None:
    """Skip for want of something that could be installed; on a build machine that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
