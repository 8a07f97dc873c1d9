"""`up`, `down`, `logs` and `service …`: the process in the background."""

from __future__ import annotations

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.result import Result, info
from agent_bridge.daemon import control
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED, AgentBridgeError

_PANEL = "Service"
_WORKS = {control.Start.STARTED, control.Start.ALREADY_RUNNING, control.Start.STARTING}
_UP = {
    control.Start.STARTED: "The service runs.",
    control.Start.ALREADY_RUNNING: "The service was running already.",
    control.Start.STARTING: "The service runs; its first pass over everything isn't done yet.",
}
_DOWN = {
    control.Stop.STOPPED: "The service is stopped.",
    control.Stop.KILLED: "The service didn't end in time and was killed.",
    control.Stop.NOT_RUNNING: "The service wasn't running.",
}


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("up", panel=_PANEL)(up)
    verbs.verb("down", panel=_PANEL)(down)


def up() -> Result:
    """Start the service in the background, until you log out or stop it."""
    started = control.up()
    if started.result not in _WORKS:
        raise AgentBridgeError(
            "The service didn't start", path=started.log, remedy="Its log says why: `agent-bridge logs`."
        )
    return Result(
        "up",
        data={"result": started.result.value, "pid": started.pid, "log": str(started.log)},
        view=(f"{_UP[started.result]} pid {started.pid}",),
        messages=(info(f"It logs to {started.log}"),),
        exit_code=EXIT_FAILED if started.result is control.Start.STARTING else EXIT_DONE,
    )


def down() -> Result:
    """Stop the service."""
    stopped = control.down()
    if stopped is control.Stop.FAILED:
        raise AgentBridgeError(
            "The service runs, but its process can't be told for certain, so nothing was stopped.",
            remedy="Look at it with `agent-bridge status`.",
        )
    return Result("down", data={"result": stopped.value}, view=(_DOWN[stopped],))
