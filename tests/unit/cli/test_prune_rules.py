"""What is pruned: a truth table of rows and processes."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.cli.prune_rules import Action, Claim, Class, Here, Judged, Seen, action, is_local, judge
from agent_bridge.daemon.processes import Process

CLAIM = Claim("client-a", pid=77, host="box", registered_at=1_000_000)
HERE = Here(host="BOX", user=1000, spared={5: "process 5 runs this command", 78: "process 78 is the service"})
PROCESS = Process(pid=77, parent=9, user=1000, started_at=900_000, has_terminal=True, command="claude")


def but(value: Process, **changes: object) -> Seen:
    return Seen(dataclasses.replace(value, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "kind", "why"),
    [
        (Seen(PROCESS), Class.LIVE, "has a terminal"),
        (but(PROCESS, has_terminal=False), Class.ORPHANED, "no terminal"),
        (but(PROCESS, is_adopted=True), Class.ORPHANED, "parent is gone"),
        (Seen(), Class.DEAD, "no process 77"),
        (Seen(is_hidden=True), Class.LIVE, "can't be looked at"),
        (but(PROCESS, started_at=1_005_001), Class.DEAD, "another one"),
        (but(PROCESS, started_at=1_004_999), Class.LIVE, "has a terminal"),
        (but(PROCESS, user=0, has_terminal=False), Class.LIVE, "another user's"),
        (but(PROCESS, pid=1, has_terminal=False), Class.LIVE, "process 1"),
        (but(PROCESS, pid=5, has_terminal=False), Class.LIVE, "runs this command"),
        (but(PROCESS, pid=78, is_adopted=True), Class.LIVE, "is the service"),
    ],
)
def test_the_class_of_a_row_of_this_machine(seen: Seen, kind: Class, why: str) -> None:
    judged = judge(CLAIM, seen, HERE)
    assert judged.kind is kind
    assert why in judged.why


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (dataclasses.replace(CLAIM, host="other"), Class.REMOTE),
        (dataclasses.replace(CLAIM, host=None), Class.REMOTE),
        (dataclasses.replace(CLAIM, pid=None), Class.LIVE),
    ],
)
def test_what_a_row_doesnt_say_is_never_touched(claim: Claim, kind: Class) -> None:
    judged = judge(claim, Seen(PROCESS), HERE)
    assert judged.kind is kind
    assert action(judged, named=True, orphans=True, everything=True) is Action.KEEP


LIVE = judge(CLAIM, Seen(PROCESS), HERE)
ORPHANED = judge(CLAIM, but(PROCESS, has_terminal=False), HERE)
DEAD = judge(CLAIM, Seen(), HERE)


@pytest.mark.parametrize(
    ("judged", "named", "orphans", "everything", "wanted"),
    [
        (DEAD, False, False, False, Action.REMOVE),
        (ORPHANED, False, False, False, Action.KEEP),
        (ORPHANED, False, True, False, Action.END),
        (ORPHANED, False, False, True, Action.END),
        (ORPHANED, True, False, False, Action.END),
        (LIVE, False, False, False, Action.KEEP),
        (LIVE, False, True, False, Action.KEEP),
        (LIVE, False, False, True, Action.END),
        (LIVE, True, False, False, Action.END),
    ],
)
def test_what_is_done(judged: Judged, named: bool, orphans: bool, everything: bool, wanted: Action) -> None:
    assert action(judged, named=named, orphans=orphans, everything=everything) is wanted


_claims = st.builds(
    Claim,
    agent_id=st.just("a"),
    pid=st.none() | st.integers(-1, 100),
    host=st.none() | st.sampled_from(["box", "other"]),
    registered_at=st.none() | st.integers(0, 2_000_000),
)
_processes = st.builds(
    Process,
    pid=st.integers(1, 100),
    parent=st.integers(0, 100),
    user=st.sampled_from([0, 1000]),
    started_at=st.integers(0, 2_000_000),
    has_terminal=st.booleans(),
    command=st.just("x"),
    is_adopted=st.booleans(),
)


@given(claim=_claims, process=_processes, hidden=st.booleans())
def test_nothing_is_ever_ended_but_a_local_process_of_this_user_that_was_there_when_the_row_came(
    claim: Claim, process: Process, hidden: bool
) -> None:
    seen = Seen(is_hidden=True) if hidden else Seen(process)
    judged = judge(claim, seen, HERE)
    if action(judged, named=True, orphans=True, everything=True) is not Action.END:
        return
    assert is_local(claim, HERE)
    assert not hidden
    assert claim.pid is not None
    assert (process.user, process.pid in {1, *HERE.spared}) == (1000, False)
    assert claim.registered_at is None or process.started_at <= claim.registered_at + 5000
