"""Has schemathesis try an operation of an OpenAPI document against a server. Slow to import."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import engine
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.engine import events

from agent_bridge.channel.ids import IDENTITY_PATTERN
from agent_bridge.registry.security import IDENTITY_HEADER

EXAMPLES = 6
"""Per operation, beside the cases that cover each constraint once."""

_PRINTABLE = st.characters(exclude_categories=["C", "Z"]) | st.just(" ")
_SHOWN = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])


def broken_promises(
    document: dict[str, Any], method: str, path: str, url: str, headers: Mapping[str, str]
) -> list[str]:
    """What the server did that the document doesn't say, or refused that it does."""
    schema = schemathesis.openapi.from_dict(_without_lengths(document), config=_config(url, headers))
    found: list[str] = []
    tried = 0
    for event in engine.from_schema(schema.include(path=path, method=method)).execute():
        if isinstance(event, events.ScenarioFinished):
            tried += len(event.recorder.cases)
            for checks in event.recorder.checks.values():
                found += [
                    f"{check.failure_info.failure.title}: {check.failure_info.failure.message}\n"
                    f"{check.failure_info.code_sample}"
                    for check in checks
                    if check.failure_info is not None
                    and not _is_about_our_formats(check.failure_info.failure)
                ]
        elif isinstance(event, events.NonFatalError | events.FatalError):
            found.append(str(event))
    return found if tried else ["nothing was tried"]


def _without_lengths(document: Any) -> Any:  # noqa: ANN401 - JSON is anything
    """The document without lengths beside formats of ours: finding values of both takes seconds for each."""
    if isinstance(document, list):
        return [_without_lengths(one) for one in document]
    if not isinstance(document, dict):
        return document
    ours = str(document.get("format", "")).startswith("agent-bridge-")
    return {
        name: _without_lengths(value)
        for name, value in document.items()
        if not (ours and name == "maxLength")
    }


def _config(url: str, headers: Mapping[str, str]) -> schemathesis.Config:
    return schemathesis.Config.from_dict(
        {
            "base-url": url,
            "headers": dict(headers),
            "continue-on-failure": True,
            "generation": {"max-examples": EXAMPLES, "deterministic": True, "no-shrink": True},
            "phases": {"examples": {"enabled": False}, "stateful": {"enabled": False}},
            "checks": {
                "negative_data_rejection": {
                    "expected-statuses": ["400", "401", "403", "404", "405", "413", "414"]
                },
                "positive_data_acceptance": {
                    "expected-statuses": ["2xx", "303", "401", "403", "404", "409", "413"]
                },
            },
        }
    )


def _agree(_context: object, case: schemathesis.Case[Any], _arguments: object) -> None:
    """A schema can't say that the identities in header and body must be the same, where both are there."""
    named = case.body.get("identity") if isinstance(case.body, dict) else None
    header = case.headers.get(IDENTITY_HEADER)
    if _is_identity(named) and _is_identity(header):
        del case.headers[IDENTITY_HEADER]


def _is_identity(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(IDENTITY_PATTERN, value) is not None


def _is_about_our_formats(failure: Failure) -> bool:
    """Whether a value was meant not to fit a format of ours, which its maker doesn't know: perhaps it does.

    `Authorization` doesn't count: the right one is put in its place.
    """
    if not isinstance(failure, AcceptedNegativeData):
        return False
    parts = [line for line in failure.message.splitlines() if line.lstrip().startswith("- ")]
    return bool(parts) and all("violates `format`" in part or "/Authorization" in part for part in parts)


def _make_formats() -> None:
    """What a schema can't say exactly, see `openapi_schemas`."""
    ids = st.text(_PRINTABLE, min_size=1, max_size=200).filter(lambda text: not text.isspace())
    schemathesis.openapi.format("agent-bridge-id", ids)
    schemathesis.openapi.format("agent-bridge-line", st.text(_SHOWN, min_size=1, max_size=200))
    for scheme in ("http", "ws"):
        hosts = st.from_regex(r"\A[a-z]{1,20}(:[0-9]{1,4})?(/[a-z]{0,9}){0,3}\Z")
        addresses = st.builds("{}://{}".format, st.just(scheme), hosts)
        schemathesis.openapi.format(f"agent-bridge-{scheme}-address", st.just("") | addresses)


_make_formats()
schemathesis.hook("before_call")(_agree)
