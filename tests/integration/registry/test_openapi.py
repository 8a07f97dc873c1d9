"""The OpenAPI document against the server: every promise tried, with what fits it and what doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from agent_bridge.registry import openapi, openapi_socket, routes
from agent_bridge.registry.dashboard_access import DashboardAccess
from agent_bridge.registry.hub import Hub
from agent_bridge.registry.peer import _HANDLERS
from integration.registry.running import Running

_OPERATIONS = [
    (method, path) for path, operations in openapi.document()["paths"].items() for method in operations
]
# The pages answer 503, which would pass for a failure; other tests ask for them.
_TRIED = [(method, path) for method, path in _OPERATIONS if path != "/dashboard"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        # Something to be found under the ids that are tried first.
        for identity in ("global", "0"):
            running.register("0", identity)
            running.post(identity, conversationId="0", messageId="0", toAgentId="0")
        yield running


@pytest.mark.parametrize(("method", "path"), _TRIED, ids=[f"{method} {path}" for method, path in _TRIED])
def test_every_promise_is_kept(registry: Running, method: str, path: str) -> None:
    from integration.registry.promises import broken_promises

    url = f"http://127.0.0.1:{registry.port}"
    assert broken_promises(openapi.document(), method, path, url, registry.headers()) == []
    assert registry.figures()["failures"] == 0


def test_a_promise_that_isnt_kept_is_found(registry: Running) -> None:
    from integration.registry.promises import broken_promises

    document: dict[str, Any] = openapi.document()
    health = {"get": document["paths"]["/health"]["get"] | {"responses": {"418": {"description": "No."}}}}
    url = f"http://127.0.0.1:{registry.port}"
    assert broken_promises(
        document | {"paths": {"/health": health}}, "get", "/health", url, registry.headers()
    )


def test_the_document_tells_of_every_frame_that_may_be_sent() -> None:
    told = openapi.document()["info"]["description"]
    assert set(openapi_socket.SAID) == set(_HANDLERS)
    for kind in (*_HANDLERS, *openapi_socket.TOLD):
        assert f"- `{kind}`: " in told


def test_the_document_names_every_route_and_no_other() -> None:
    hub = cast("Hub", object())  # only asked once a handler is called
    served = {(method.lower(), path) for method, path, _handler in routes.handlers(hub, DashboardAccess())}
    assert set(_OPERATIONS) == served | {("post", routes.AG_UI), ("get", "/openapi.json")}
