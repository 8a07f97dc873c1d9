"""A shim and the service's end of its socket, in a sealed home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_bridge import paths
from integration.mcp.shim.rig import Service, Shim


@pytest.fixture
def service(sealed_home: Path) -> Iterator[Service]:
    """A listener at the socket's place."""
    listener = Service(paths.mcp_socket())
    yield listener
    listener.close()


@pytest.fixture
def shim(sealed_home: Path) -> Iterator[Callable[..., Shim]]:
    """Starts shims that start no service of their own, and ends them."""
    started: list[Shim] = []

    def start(*words: str, **more: object) -> Shim:
        started.append(Shim("--no-auto", *words, **more))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.close()
