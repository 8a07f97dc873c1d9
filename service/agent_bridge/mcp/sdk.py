"""Loading the MCP SDK (mcp 2.3) without what a server doesn't use.

Its packages `mcp` and `mcp.server` import the clients, a second kind of server, httpx2 and OpenSSL: 12 MB
that a background service would hold for nothing. While ours is imported, empty packages stand in for these
two; a later `import mcp` gets the real ones, and with them the modules that are loaded by now.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_PACKAGES = ("mcp", "mcp.server")
USED = ("mcp.server.lowlevel.server", "mcp.server.runner", "mcp.server.streamable_http")


def load() -> None:
    """Load what a server needs. Raises ImportError. Where the SDK is loaded already, nothing is left out."""
    if any(name in sys.modules for name in _PACKAGES):
        for name in USED:
            importlib.import_module(name)
        return
    with _empty_packages():
        for name in USED:
            importlib.import_module(name)


@contextmanager
def _empty_packages() -> Iterator[None]:
    try:
        for name in _PACKAGES:
            sys.modules[name] = _empty(name)
        yield
    finally:
        for name in _PACKAGES:
            sys.modules.pop(name, None)


def _empty(name: str) -> ModuleType:
    found = importlib.util.find_spec(name)
    if found is None:
        raise ImportError(f"The package {name} isn't installed.")
    package = importlib.util.module_from_spec(found)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)
    return package
