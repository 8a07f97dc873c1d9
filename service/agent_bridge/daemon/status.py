"""What the service says about itself: the status document, schema 1.

A stable interface: keys are added, never renamed or removed within a schema. Times are UTC in ISO 8601.

    schema           1
    version, pid, started_at
    state            starting | ok | degraded | stopping
    reasons          sentences that say why the state isn't ok; [] when it is
    projects         one object a project:
        id, root
        generation       grows by one with each completed pass over this project
        state            ok | waiting | failed | starting
        facts            {shared, private, withheld}: withheld ones hold secrets and stand nowhere
        last_projection  {at, ms, paths}: the last pass that wrote files, or null
        last_pass        {at, ms}, or null
        waiting          what Git is doing, so that tracked files wait; or null
        error            why the last pass failed, or null
        problems         [{path, reason, remedy}]: files that can't be used
        notices          [{level, code, text, path}]
        candidates       texts found in harnesses that a person should look at (`agent-bridge review`)
        left_out         facts that didn't fit
        watches          [{path, backend, state, reason}]; state: watching | polled | missing (only of what
                         must exist: the project's root and its store)
    global           the same for what concerns the user rather than one project, without `root`; or null
    watch            {backend, watches, polled, overflows, rebuilt, missed}: counts since the start
    jobs             [{name, interval_s, last_run, next_run, runs, failures}]
    queue            changes not acted on yet, as of the reading; 0 means that nothing is under way
    last_full_check  when everything was last compared, or null
    registry         the channel's hub:
        state            idle (listens; loaded when somebody calls) | loading | ok | degraded | failed
        url              where it answers, or null; registry.json in the state directory says it too
        token_file       the file whose text is sent as `Authorization: Bearer`
        reasons          sentences that say why it isn't ok; they stand in the service's `reasons` too
        notices          sentences about what is otherwise than set (another port, a setting that waits) and
                         what has befallen the database: replaced while in use, a damaged one set aside
        failures         how often it failed and was begun anew
        agents           {identity: how many sessions}
        sockets          {open, identified, and what went over them since the registry was loaded}
        refused          {code: how many} of the HTTP requests since then
        store            {state, path, journal_mode, set_aside, wal_bytes, and counts}, or null until asked
        sweeps           [{name, interval_s, last_run, next_run, runs, failures, last_ms, last_count, counts,
                         error}]: `counts` is what it dealt with since the registry was loaded
    mcp              the tools that agents call:
        state            idle (listens; loaded with the first client) | ok | degraded | failed
        socket           where the shims of agent programs connect, or null
        reasons          sentences that say why it isn't ok; they stand in the service's `reasons` too
        failures         how often its loop failed and was begun anew
        clients          [{client, version, agentId, project, identity, since}]: who is connected
        calls            calls of tools since the start
        errors           calls that failed by a fault of ours, of those
        last_error       the last such fault in a sentence, or null
    loop             {beat_age_s}: how long ago the main loop last came round; it does at least every 2 s,
                     unless a pass takes longer
"""

from __future__ import annotations

import dataclasses
import enum
import os
import time
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from agent_bridge import __version__
from agent_bridge.daemon.jobs import utc

SCHEMA = 1
HUNG_SECONDS = 15.0
"""A main loop that didn't come round for so long is told as degraded."""


NO_REGISTRY: Mapping[str, Any] = {
    "state": "idle",
    "url": None,
    "token_file": None,
    "reasons": (),
    "notices": (),
    "failures": 0,
    "agents": {},
    "sockets": {},
    "refused": {},
    "store": None,
    "sweeps": (),
}
"""What a service that doesn't listen yet says of its registry."""


NO_TOOLS: Mapping[str, Any] = {
    "state": "idle",
    "socket": None,
    "reasons": (),
    "failures": 0,
    "clients": (),
    "calls": 0,
    "errors": 0,
    "last_error": None,
}
"""What a service that doesn't listen yet says of its tools."""


class State(enum.Enum):
    """How the service is, in one word."""

    STARTING = "starting"
    OK = "ok"
    DEGRADED = "degraded"
    STOPPING = "stopping"


class StatusBoard:
    """The last published document. The main loop publishes and beats; any thread reads."""

    def __init__(self) -> None:
        self._base = {
            "schema": SCHEMA,
            "version": __version__,
            "pid": os.getpid(),
            "started_at": utc(time.time()),
        }
        self._beat = time.monotonic()
        self.queue_length: Callable[[], int] = lambda: 0
        """Asked at each reading, on the reader's thread."""
        self.registry: Callable[[], dict[str, Any]] = lambda: dict(NO_REGISTRY)
        """The same for the registry; its reasons count as the service's."""
        self.mcp: Callable[[], dict[str, Any]] = lambda: dict(NO_TOOLS)
        """The same for the tools."""
        self._document: dict[str, Any] = {}
        self.publish(empty_document(State.STARTING))

    def publish(self, document: Mapping[str, Any]) -> None:
        """Swap in a new document; it must not be changed afterwards."""
        self._document = self._base | dict(document)

    def beat(self) -> None:
        """The main loop has come round."""
        self._beat = time.monotonic()

    def read(self) -> dict[str, Any]:
        """The document as of now, with the age of the last beat; a loop that hangs shows as degraded."""
        age = time.monotonic() - self._beat
        registry, mcp = self.registry(), self.mcp()
        document = self._document | {
            "queue": self.queue_length(),
            "registry": registry,
            "mcp": mcp,
            "loop": {"beat_age_s": round(age, 3)},
        }
        if registry["reasons"] or mcp["reasons"]:
            document["reasons"] = [*document["reasons"], *registry["reasons"], *mcp["reasons"]]
            if document["state"] == State.OK.value:
                document["state"] = State.DEGRADED.value
        if age > HUNG_SECONDS and document["state"] != State.STARTING.value:
            document["state"] = State.DEGRADED.value
            document["reasons"] = [*document["reasons"], f"The main loop has not come round for {age:.0f} s."]
        return document


def empty_document(state: State) -> dict[str, Any]:
    """The document of a service that knows nothing yet."""
    return {
        "state": state.value,
        "reasons": [],
        "projects": [],
        "global": None,
        "watch": {"backend": "", "watches": 0, "polled": 0, "overflows": 0, "rebuilt": 0, "missed": 0},
        "jobs": [],
        "queue": 0,
        "last_full_check": None,
    }


def plain(value: Any) -> Any:  # noqa: ANN401 (values of every room come by here)
    """A value as JSON knows it: dataclasses become objects, paths and enumerations texts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value)
