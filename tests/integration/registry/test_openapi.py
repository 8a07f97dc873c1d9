"""The OpenAPI document against the server: every promise tried, with what fits it and what doesn't."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData, FailureGroup

from agent_bridge.registry import fields, openapi, routes
from agent_bridge.registry.dashboard_access import DashboardAccess
from agent_bridge.registry.openapi_schemas import IDENTITY_PATTERN
from agent_bridge.registry.security import IDENTITY_HEADER
from integration.registry.running import Running

EXAMPLES = 5
"""Per operation, beside the cases that cover each constraint once."""

_PRINTABLE = st.characters(exclude_categories=["C", "Z"]) | st.just(" ")
_SHOWN = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="".join(fields._BIDI))


def _formats() -> None:
    """What a schema can't say exactly, see `openapi_schemas`."""
    ids = st.text(_PRINTABLE, min_size=1, max_size=200).filter(lambda text: not text.isspace())
    schemathesis.openapi.format("agent-bridge-id", ids)
    schemathesis.openapi.format("agent-bridge-line", st.text(_SHOWN, min_size=1, max_size=200))
    for scheme in ("http", "ws"):
        hosts = st.from_regex(r"\A[a-z]{1,20}(:[0-9]{1,4})?(/[a-z]{0,9}){0,3}\Z")
        addresses = hosts.map(lambda host, scheme=scheme: f"{scheme}://{host}")  # type: ignore[misc]
        schemathesis.openapi.format(f"agent-bridge-{scheme}-address", st.just("") | addresses)


_formats()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        # Something to be found under the ids that are tried.
        for identity in ("global", "0"):
            running.register("0", identity)
            running.post(identity, conversationId="0", messageId="0", toAgentId="0")
        yield running


_CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {
            "negative_data_rejection": {
                "expected-statuses": ["400", "401", "403", "404", "405", "413", "414"]
            },
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", "303", "401", "403", "404", "409", "413"]
            },
        }
    }
)
# The pages answer 503, which would pass for a failure; other tests ask for them.
promised = schemathesis.openapi.from_dict(openapi.document(), config=_CONFIG).exclude(path="/dashboard")


@promised.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_promise_is_kept(registry: Running, case: schemathesis.Case) -> None:
    _agree(case)
    try:
        case.call_and_validate(base_url=f"http://127.0.0.1:{registry.port}", headers=registry.headers())
    except FailureGroup as found:
        broken = [failure for failure in found.exceptions if not _is_about_our_formats(failure)]
        if broken:
            raise broken[0] from None


def _agree(case: schemathesis.Case) -> None:
    """A schema can't say that the identities in header and body must be the same, where both are there."""
    named = case.body.get("identity") if isinstance(case.body, dict) else None
    header = case.headers.get(IDENTITY_HEADER)
    if _is_identity(named) and _is_identity(header):
        del case.headers[IDENTITY_HEADER]


def _is_identity(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(IDENTITY_PATTERN, value) is not None


def _is_about_our_formats(failure: Exception) -> bool:
    """Whether a value was meant not to fit a format of ours, which its maker doesn't know: perhaps it does.

    `Authorization` doesn't count: the test itself puts the right one in its place.
    """
    if not isinstance(failure, AcceptedNegativeData):
        return False
    parts = [line for line in failure.message.splitlines() if line.lstrip().startswith("- ")]
    return bool(parts) and all("violates `format`" in part or "/Authorization" in part for part in parts)


def test_the_document_names_every_route_and_no_other() -> None:
    told = {
        (method.upper(), path)
        for path, operations in openapi.document()["paths"].items()
        for method in operations
    }
    served = {(method, path) for method, path, _handler in routes.handlers(Any, DashboardAccess())}  # type: ignore[arg-type]
    assert told == served | {("POST", routes.AG_UI), ("GET", "/openapi.json")}
