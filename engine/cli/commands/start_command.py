"""`engine start` in a terminal or under a supervisor, and what other commands ask of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api import Selection, runnable, sinks_among
from engine.api.keep_running.bounded_end import bounded_end
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.api.one_session import alone
from engine.api.requests import check_supported
from engine.cli.command_setup import (
    CommandSettings,
    Warnings,
    compile_and_report,
    defer_and_report,
    log_file,
    select_and_report,
)
from engine.cli.console.live_area import AREA
from engine.compile import Compiled, DataTest, Target, UnitTest
from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.control import ControlServer, ask, socket_path
from engine.errors import StateError, UsageError
from engine.events import Event, ProjectReloaded, Step, StepStarted
from engine.live.lag import LagReader
from engine.live.observer import Observer, observing
from engine.live.stall_seconds import stall_rule
from engine.node_ids import SINK, TESTS
from engine.spark.jvm import kill_all

if TYPE_CHECKING:
    from engine.live.alerts import Alerts

_SECONDS_TO_STOP = 20
_SECONDS_TO_TELL = 0.5


def start_project(
    settings: CommandSettings, selection: Selection, options: LiveOptions, port: int | None = None
) -> bool:
    """Keep what is selected up to date until a signal or `engine stop`.

    Raises EngineError: the project has errors, or another process keeps it running.
    """
    with log_file(settings):
        settings.out.event(StepStarted(Step.COMPILE))
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        selected_nodes = select_and_report(settings, result.manifest, selection, report_empty=False)
        nodes = runnable(result.manifest, selected_nodes, "build")
        sinks = sinks_among(selected_nodes, "build")
        if not nodes and not sinks:
            settings.out.say("The selection has no models, tests or sinks; nothing to do")
            return True
        check_supported(result.manifest, nodes)
        result = defer_and_report(settings, result, nodes, selection)
        write_artifacts(result.manifest, settings.target_dir)
        live = LiveProject(settings.project, selection, options)
        with (
            _bounded_end(live) as observers,
            alone(),
            ControlServer(_socket(settings, result.target.name), _handlers(live)),
            _alerts(result.target, settings) as alerts,
            closing(LagReader()) as lag_reader,
            observing(
                settings.target_dir,
                _owners(result),
                lambda: {
                    **lag_reader.lags(live.plan_now(), (live.compiled or result).target.place(settings.root)),
                    **live.sink_lags(),
                },
                (alerts.check,) if alerts is not None else (),
                stall_rules=lambda node: stall_rule(live.compiled or result, node),
                beat=lambda: live.beat,
            ) as observer,
            _live_page(settings, result, observer, live, port),
            _signals(live),
        ):
            observers.append(observer)
            if alerts is not None:
                alerts.load(result.target.name)

            def on_event(event: Event) -> None:
                if isinstance(event, ProjectReloaded):
                    observer.status.owners = _owners(live.compiled or result)
                observer.on_event(event)

            live.listeners = (on_event, settings.out.event)
            live.follow(result, nodes, sinks)
    return True


def _owners(compile_and_report: Compiled) -> dict[str, str]:
    nodes = compile_and_report.manifest.nodes.values()
    return {node.id: node.model for node in nodes if isinstance(node, DataTest | UnitTest)}


@contextmanager
def _bounded_end(live: LiveProject) -> Iterator[list[Observer]]:
    """Have the process end within seconds once it is asked to; what observes it by then writes that down."""
    observers: list[Observer] = []

    def tell() -> None:
        # What has been closed in the meantime was written before.
        with suppress(Exception):
            live.report_stopped()
            for observer in observers:
                observer.write(observer.status.to_json())

    def leave() -> None:
        # Whoever should be told may be what hangs.
        last_write = threading.Thread(target=tell, daemon=True)
        last_write.start()
        last_write.join(_SECONDS_TO_TELL)
        AREA.abandon()
        os._exit(0)

    with bounded_end(live.stopping, leave):
        yield observers


@contextmanager
def _alerts(target: Target, settings: CommandSettings) -> Iterator[Alerts | None]:
    if target.alerts is None:
        yield None
        return
    from engine.live import turn_history
    from engine.live.alerts import Alerts, alert_rules
    from engine.live.open_alerts import OpenAlerts

    store = OpenAlerts(settings.target_dir / turn_history.FILE)
    alerts = Alerts(alert_rules(target.alerts()), settings.root, store)
    try:
        yield alerts
    finally:
        alerts.close()


@contextmanager
def _live_page(
    settings: CommandSettings, result: Compiled, observer: Observer, live: LiveProject, port: int | None
) -> Iterator[None]:
    if port is None:
        yield
        return
    from engine.cli.commands.docs_command import LIVE, shown_link, write_page
    from engine.docs.page_access import page_access
    from engine.live.live_server import serve
    from engine.live.live_site import LiveSite

    access = page_access()
    site = write_page(settings, result).parent
    data = LiveSite(lambda: live.compiled or result, observer.node_ids, settings.target_dir)
    with (
        serve(observer, site, access, port, data) as server,
        shown_link(server, LIVE, settings.target_dir) as page_link,
    ):
        settings.out.say(f"Live page: {page_link}")
        yield


def _socket(settings: CommandSettings, target: str) -> Path | None:
    return socket_path(settings.root, target)


@contextmanager
def _signals(live: LiveProject) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the process within seconds, a second one at once; SIGHUP reads the project again."""
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        if len(received) == 1:
            live.stop("terminated" if number == signal.SIGTERM else "interrupted")
            return
        kill_all()
        AREA.abandon()
        os._exit(128 + number)

    handlers = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: lambda *_: live.reload()}
    previous_handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _handlers(live: LiveProject) -> Mapping[str, Callable[[Mapping[str, Any]], None]]:
    return {
        "stop": lambda _: live.stop("engine stop"),
        "pause": lambda request: live.pause(_nodes(live, request.get("models", []))),
        "resume": lambda request: live.resume(_nodes(live, request.get("models", []))),
        "reload": lambda _: live.reload(),
    }


def _nodes(live: LiveProject, names: Any) -> list[str]:
    """The ids of models by their names. Raises UsageError: one of them is not kept running."""
    nodes_by_name = {node.partition(".")[2]: node for node in live.nodes if node.startswith("model.")}
    # A sink may have the name of a model.
    nodes_by_name |= {f"sink:{node.removeprefix(SINK)}": node for node in live.nodes if node.startswith(SINK)}
    requested = [str(name) for name in names] if isinstance(names, list) else []
    for name in requested:
        if name not in nodes_by_name:
            message = f"'{name}' is not a model or sink that is kept running"
            raise UsageError("usage", message, "List those that are: engine status")
    return [node for name in requested for node in (nodes_by_name[name], f"{TESTS}{nodes_by_name[name]}")]


def ask_running(settings: CommandSettings, request: str, models: Sequence[str]) -> None:
    """Ask the process that keeps a project running for something; report what it did.

    Raises:
        StateError: `not-running`: no process does.
        UsageError: a model is not kept running.
    """
    target = settings.project.compile().target.name
    pid = ask(_socket(settings, target), request, models=list(models))
    if pid is None:
        message = f"no engine start runs for this project with the target {target}"
        raise StateError("not-running", message, "Start it: engine start")
    if request == "stop":
        _await_end(pid)
    past_tense = {"stop": "Stopped", "pause": "Paused", "resume": "Resumed", "reload": "Reading the project again"}
    name_list = f": {', '.join(models)}" if models else ""
    settings.out.say(f"{past_tense[request]}{name_list}")


def _await_end(pid: int) -> None:
    import time

    deadline = time.monotonic() + _SECONDS_TO_STOP
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
