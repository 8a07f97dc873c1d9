"""`agent-bridge service run`: the long-running process from its first instruction to its last.

Order: signals → lock → socket (state `starting`) → the registry's port → the tools' socket → watches → one
pass over everything → READY=1 → events. Registry and tools themselves are loaded when somebody calls. Signals
come first, before anything slow is imported: a manager that stops a service while it starts would otherwise
count a failure.
Exit: 0 when told to stop.
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from agent_bridge.daemon.orders import Order, StopFlag

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.daemon.lifecycle import Instance
    from agent_bridge.daemon.pulse import Pulse
    from agent_bridge.daemon.reactor import Inbox
    from agent_bridge.daemon.status import StatusBoard
    from agent_bridge.daemon.supervisor import Engines


def run(*, engines: Engines | None = None, **flags: object) -> int:
    """Be the service until SIGTERM or SIGINT; SIGHUP reads settings and projects again.

    `engines` makes the engines (None: the real ones); `flags` are settings from the command line. Returns the
    exit code. Raises AlreadyRunningError, ConfigError.
    """
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stop = StopFlag()
    _catch_signals(inbox, stop)

    from agent_bridge.daemon.own_log import keep_own_log

    keep_own_log()

    from agent_bridge.daemon.lifecycle import single_instance

    with single_instance() as instance:
        return _serve(inbox, stop, engines, lambda: _settings(flags), instance)


def _serve(
    inbox: Inbox,
    stop: StopFlag,
    engines: Engines | None,
    read_settings: Callable[[], Settings],
    instance: Instance,
) -> int:
    from agent_bridge.daemon.notify import Notifier
    from agent_bridge.daemon.pulse import Pulse
    from agent_bridge.daemon.status import StatusBoard
    from agent_bridge.daemon.status_server import StatusServer

    board = StatusBoard()
    server = StatusServer(board.read)
    server.start()
    notifier = Notifier()
    try:
        _react(inbox, engines, read_settings, board, Pulse(board, notifier, stop), instance)
    finally:
        notifier.stopping()
        server.stop()
    return 0


def _react(
    inbox: Inbox,
    engines: Engines | None,
    read_settings: Callable[[], Settings],
    board: StatusBoard,
    pulse: Pulse,
    instance: Instance,
) -> None:
    from agent_bridge import log
    from agent_bridge.daemon.engines import ProjectionEngines
    from agent_bridge.daemon.jobs import Jobs
    from agent_bridge.daemon.lifecycle import LOCK_SECONDS, AlreadyRunningError
    from agent_bridge.daemon.mcp_host import SOCKET_SECONDS, McpHost
    from agent_bridge.daemon.reactor import DueJob, Reactor
    from agent_bridge.daemon.registry_host import ADDRESS_SECONDS, RegistryHost
    from agent_bridge.daemon.supervisor import Supervisor
    from agent_bridge.watch.observer import open_watcher
    from agent_bridge.watch.watches import WatchSet

    def read_and_apply() -> Settings:
        settings = read_settings()
        log.configure(settings.log_level)
        for warning in settings.warnings:
            log.get_logger("settings").warning(warning)
        return settings

    def reload() -> Settings:
        settings = read_and_apply()
        registry.apply(settings)
        tools.apply(settings)
        return settings

    settings = read_and_apply()
    watches = WatchSet(inbox.put, open_watcher, polling=settings.polling)
    jobs = Jobs(lambda name: inbox.put(DueJob(name)))
    registry = RegistryHost(settings)
    tools = McpHost(settings, registry)
    registry.mount = tools.face
    registry.start()
    board.registry = registry.describe
    tools.start()
    board.mcp = tools.describe

    def keep_lock() -> None:
        try:
            instance.keep()
        except AlreadyRunningError as error:
            log.get_logger("service").error("another service has taken over", error=error)
            inbox.put(Order.STOP)

    def when_ready() -> None:
        registry.service_is_ready()
        jobs.add("service-lock", LOCK_SECONDS, keep_lock)
        jobs.add("registry-address", ADDRESS_SECONDS, registry.check_address)
        jobs.add("mcp-socket", SOCKET_SECONDS, tools.check_socket)

    pulse.when_ready = when_ready
    reactor = Reactor(
        inbox=inbox,
        settings=settings,
        reload_settings=reload,
        supervisor=Supervisor(engines or ProjectionEngines(pulse.step), settings),
        watches=watches,
        jobs=jobs,
        board=board,
        pulse=pulse,
    )
    try:
        reactor.run()
    finally:
        pulse.stopping()
        tools.stop()
        registry.stop()
        jobs.stop()
        watches.close()


def _settings(flags: dict[str, object]) -> Settings:
    from agent_bridge.config import load_settings

    return load_settings(env=None, **flags)


def _catch_signals(inbox: queue.SimpleQueue[Any], stop: StopFlag) -> None:
    def catch(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            inbox.put(Order.RELOAD)
        else:
            stop.is_set = True
            inbox.put(Order.STOP)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, catch)
