"""`prune`: take rows of ended programs out of the list of sessions, and end programs that were left over."""

from __future__ import annotations

import os
import socket
from typing import Annotated, NamedTuple

import typer

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import UnknownError
from agent_bridge.cli.agent_rows import pick, row
from agent_bridge.cli.app import JsonOption, Verbs
from agent_bridge.cli.consent import YesOption, consent
from agent_bridge.cli.messages_shown import first_line, shown_name
from agent_bridge.cli.printing import tell
from agent_bridge.cli.prune_rules import Action, Claim, Class, Here, Judged, Seen, action, is_local, judge
from agent_bridge.cli.registry_access import IdentityOption, connect
from agent_bridge.cli.result import Json, Result, Table, counted, info
from agent_bridge.client.http import Registry
from agent_bridge.daemon import processes
from agent_bridge.daemon.client import serving_pid
from agent_bridge.daemon.lifecycle import recorded_pid
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED, RefusedError, UsageError

_PANEL = "Channel"
_DONE = {
    Action.REMOVE: "taken out of the list",
    Action.END: "ended and taken out of the list",
    Action.KEEP: "left alone",
}
_WOULD = {Action.REMOVE: "take out of the list", Action.END: "end", Action.KEEP: "leave alone"}


class _Plan(NamedTuple):
    """A row, what it is, and what is to be done about it."""

    row: AgentRow
    judged: Judged
    action: Action


def register(verbs: Verbs) -> None:
    """Add the command of this module."""
    verbs.verb("prune", panel=_PANEL)(prune)


def prune(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="Sessions by id, beginning of the id, or name."),
    ] = None,
    *,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="End processes without a terminal or a parent, too.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="End all processes of sessions here.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    yes: YesOption = False,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Take sessions whose process is gone out of the list; on request end those that were left over.

    Only processes of this machine and user are ever ended, none that runs this command, and not the service.
    Ending asks first.
    """
    if targets and (orphans or every):
        raise UsageError("Name sessions, or say --orphans or --all.")
    with connect(identity) as registry:
        rows = [one for one in map(row, registry.agents()) if one.identity == registry.identity]
        chosen = [pick(rows, key) for key in dict.fromkeys(targets)] if targets else rows
        plans = _plans(chosen, named=bool(targets), orphans=orphans, every=every)
        if dry_run:
            return _shown(plans, [_WOULD[plan.action] for plan in plans], dry_run=True)
        _consented(plans, yes=yes, as_json=as_json)
        outcomes = [_carry_out(registry, plan) for plan in plans]
    return _shown(plans, outcomes, dry_run=False)


def _plans(chosen: list[AgentRow], *, named: bool, orphans: bool, every: bool) -> list[_Plan]:
    here = Here(socket.gethostname(), os.getuid(), _spared())
    plans = []
    for one in chosen:
        claim = Claim(one.agent_id, one.pid, one.host, one.registered_at or None)
        judged = judge(claim, _seen(claim, here), here)
        if named and judged.protection:
            raise RefusedError(f"{shown_name(one.agent_id)} is left alone: {judged.why}.")
        plans.append(_Plan(one, judged, action(judged, named=named, orphans=orphans, everything=every)))
    return plans


def _spared() -> dict[int, str]:
    """The service, and what runs this command: an agent that prunes may be in the list itself."""
    spared = {pid: f"process {pid} runs this command" for pid in processes.ancestors(os.getpid())}
    service = serving_pid() or recorded_pid()
    return spared if service is None else {**spared, service: f"process {service} is the service"}


def _seen(claim: Claim, here: Here) -> Seen:
    if claim.pid is None or not is_local(claim, here):
        return Seen()
    try:
        return Seen(processes.look(claim.pid))
    except processes.NotInspectableError:
        return Seen(is_hidden=True)


def _consented(plans: list[_Plan], *, yes: bool, as_json: bool) -> None:
    """Ask before processes are ended. `--json` is no consent, and nobody to ask either."""
    ends = [plan for plan in plans if plan.action is Action.END]
    if not ends or yes:
        return
    if as_json:
        raise UsageError("This ends processes, and --json is no consent.", remedy="Say yes with `--yes`.")
    for plan in ends:
        process = plan.judged.process
        command = "" if process is None else f"{process.pid}  {first_line(process.command)}"
        tell(f"{plan.judged.kind.value}  {shown_name(plan.row.agent_id)}  {command}")
    consent("End this process?" if len(ends) == 1 else f"End these {len(ends)} processes?", yes=yes)


def _carry_out(registry: Registry, plan: _Plan) -> str:
    """What became of a row; one whose process didn't end keeps its place, since it would register again."""
    if plan.action is Action.END and plan.judged.process is not None:
        try:
            processes.end(plan.judged.process)
        except processes.NotEndedError as error:
            return f"failed: {error.sentence()}"
    if plan.action is Action.KEEP:
        return _DONE[plan.action]
    if _is_taken_again(registry, plan.row):
        return "left in the list: another process has registered meanwhile"
    registry.deregister(plan.row.agent_id)
    return _DONE[plan.action]


def _is_taken_again(registry: Registry, before: AgentRow) -> bool:
    """Whether the row is another process's by now; asking the person may have taken long."""
    try:
        now = row(registry.agent(before.agent_id))
    except UnknownError:
        return False
    return (now.pid, now.registered_at) != (before.pid, before.registered_at)


def _shown(plans: list[_Plan], outcomes: list[str], *, dry_run: bool) -> Result:
    rows: list[Json] = [
        {
            "agentId": plan.row.agent_id,
            "name": plan.row.name,
            "class": plan.judged.kind.value,
            "why": plan.judged.why,
            "pid": plan.row.pid,
            "host": plan.row.host,
            "action": plan.action.value,
            "outcome": outcome,
        }
        for plan, outcome in zip(plans, outcomes, strict=True)
    ]
    table = Table(
        ("id", "name", "class", "why", "outcome"),
        tuple(
            (plan.row.agent_id, shown_name(plan.row.name), plan.judged.kind.value, plan.judged.why, outcome)
            for plan, outcome in zip(plans, outcomes, strict=True)
        ),
        piped=(0, 2, 3, 4),
    )
    left = sum(plan.judged.kind is Class.ORPHANED and plan.action is Action.KEEP for plan in plans)
    orphans = info(f"{counted(left, 'orphan')} left alone: `agent-bridge prune --orphans` ends such.")
    return Result(
        "prune",
        data={"dryRun": dry_run, "count": len(plans), "sessions": rows},
        view=(table,),
        messages=((orphans,) if left else ()) if plans else (info("Nobody is in the list."),),
        exit_code=EXIT_FAILED if any(one.startswith("failed") for one in outcomes) else EXIT_DONE,
    )
