"""`up`, `down`, `logs` and `service …`: the process in the background."""

from __future__ import annotations

import inspect
import os
from types import NoneType
from typing import Annotated, Any, cast

import typer

from agent_bridge.cli.app import JsonOption, Verb, Verbs
from agent_bridge.cli.log_shown import FollowOption, LinesOption, shown_log
from agent_bridge.cli.result import Result, info
from agent_bridge.cli.status import status
from agent_bridge.config import Settings, load_settings, meanings
from agent_bridge.daemon import control
from agent_bridge.daemon.install import Manager, entry_point, find_manager, installed_manager
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED, AgentBridgeError, UsageError

_PANEL = "Service"
_WORKS = {control.Start.STARTED, control.Start.ALREADY_RUNNING, control.Start.STARTING}
_UP = {
    control.Start.STARTED: "The service runs",
    control.Start.ALREADY_RUNNING: "The service was running already",
    control.Start.STARTING: "The service has started and still looks at everything for the first time",
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
    verbs.verb("logs", panel=_PANEL)(logs)
    service = Verbs("service", "The service: run it, have it started at login, look at it.")
    service.verb("run")(_with_setting_flags(_run))
    service.verb("install")(install)
    service.verb("uninstall")(uninstall)
    service.verb("start")(start)
    service.verb("stop")(stop)
    service.verb("restart")(restart)
    service.verb("status")(service_status)
    service.verb("logs")(logs)
    verbs.add(service, panel=_PANEL)


def up() -> Result:
    """Start the service in the background, until the machine stops."""
    return _started("up", control.up())


def down() -> Result:
    """Stop the service."""
    return _stopped("down")


def logs(*, lines: LinesOption = 100, follow: FollowOption = False, as_json: JsonOption = False) -> Result:
    """Show the end of the service's log."""
    if follow and as_json:
        raise UsageError("--follow shows lines as they come; that is no JSON object.")
    return shown_log(lines, follow=follow)


def service_status() -> Result:
    """Say how the service is; the same as `agent-bridge status`."""
    return status()


def install() -> Result:
    """Have the service started now and at each login."""
    manager = find_manager()
    done = manager.install(entry_point(), os.environ)
    runs = f"The service runs, pid {done.pid}, and" if done.pid else "The service is installed; it"
    return Result(
        "service install",
        data={"manager": manager.title, "file": str(done.file), "pid": done.pid},
        view=(f"{runs} is started at each login by {manager.title}: {done.file}",),
        messages=tuple(info(remark) for remark in done.remarks),
    )


def uninstall() -> Result:
    """Stop it and take it from systemd or launchd; facts stay."""
    manager = find_manager()
    was_there = manager.uninstall()
    view = "The service is stopped and no longer started." if was_there else "The service wasn't installed."
    return Result(
        "service uninstall", data={"manager": manager.title, "was_installed": was_there}, view=(view,)
    )


def start() -> Result:
    """Start the installed service, else the same as `up`."""
    manager = installed_manager()
    if manager is None:
        return _started("service start", control.up())
    manager.start()
    return _managed("service start", manager, "The service runs.")


def stop() -> Result:
    """Stop the service until it is started again or the next login."""
    manager = installed_manager()
    if manager is None:
        return _stopped("service stop")
    manager.stop()
    return _managed("service stop", manager, "The service is stopped.")


def restart() -> Result:
    """Stop the service and start it again."""
    manager = installed_manager()
    if manager is None:
        _stopped("service restart")
        return _started("service restart", control.up())
    manager.restart()
    return _managed("service restart", manager, "The service was restarted.")


def _run(**flags: object) -> Result:
    """Be the service, in the foreground, until it is told to stop."""
    from agent_bridge.daemon.service import run

    return Result("service run", exit_code=run(engines=None, **flags))


def _with_setting_flags(function: Verb) -> Verb:
    """`function` with an option for each setting, so that every interval and limit has one."""
    parameters = []
    told = meanings()
    for name, field in Settings.model_fields.items():
        if name == "warnings":
            continue
        option = typer.Option(f"--{name.replace('_', '-')}", help=told[name])
        annotation = cast(Any, Annotated)[_option_type(field.annotation), option]
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        )
        function.__annotations__[name] = annotation
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


def _option_type(annotation: object) -> object:
    """The setting's plain type, or none; choices and bounds are checked where all settings are."""
    return (annotation if isinstance(annotation, type) else str) | NoneType


def _stopped(command: str) -> Result:
    stopped = control.down()
    if stopped is control.Stop.FAILED:
        raise AgentBridgeError(
            "The service runs, but its process can't be told for certain, so nothing was stopped.",
            remedy="Look at it with `agent-bridge status`.",
        )
    return Result(command, data={"result": stopped.value}, view=(_DOWN[stopped],))


def _managed(command: str, manager: Manager, view: str) -> Result:
    return Result(command, data={"result": "done", "manager": manager.title}, view=(view,))


def _started(command: str, started: control.Started) -> Result:
    if started.result not in _WORKS:
        load_settings()  # a setting that can't be used is told here, not in the log alone
        raise AgentBridgeError(
            "The service didn't start", path=started.log, remedy="Its log says why: `agent-bridge logs`."
        )
    return Result(
        command,
        data={"result": started.result.value, "pid": started.pid, "log": str(started.log)},
        view=(f"{_UP[started.result]}, pid {started.pid}.",),
        messages=()
        if started.result is control.Start.ALREADY_RUNNING
        else (info(f"It logs to {started.log}"), *map(info, control.notices())),
        exit_code=EXIT_FAILED if started.result is control.Start.STARTING else EXIT_DONE,
    )
