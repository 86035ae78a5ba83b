"""`engine.Project` with Spark: in another thread, twice in a process, beside another run, after what failed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.utils.concurrent import ExecutorFactory

from engine import Project, events
from engine.errors import EngineError, SetupError
from engine.events import Event, ModelFinished, ModelStarted, RunFinished, RunStarted, Status, Step, StepStarted
from tests.lab import JAVA_OPTIONS, Lab, LabSession, run_alone, wait_for_locks, wait_until

pytestmark = pytest.mark.spark

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def shop(tmp_path: Path, lab_session: LabSession) -> Lab:
    """A project with a lake of its own, in a process without a session; its target `small` has no room for Java."""
    lab_session.close()
    return shop_in(tmp_path / "shop")


def shop_in(root: Path) -> Lab:
    lab = Lab(root, None, None)
    conf = f'{{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{JAVA_OPTIONS}"}}}}'
    small = '{master: "local[2]", conf: {spark.driver.memory: 1k}}'
    catalog = "{type: sqlite, name: lake, path: .engine/lake}"
    lab.write(
        "project.yml",
        f"name: shop\ntarget: dev\ntargets:\n  dev: {{catalog: {catalog}, schema: {lab.schema}, spark: {conf}}}\n"
        f"  small: {{catalog: {catalog}, schema: {lab.schema}, spark: {small}}}\n",
    )
    lab.model("events", "/*---\nstreams: [shop.events]\n---*/\nselect id, amount from {{ source('shop', 'events') }}\n")
    lab.model(
        "sums", "/*---\ncolumns: {n: {tests: [not_null]}}\n---*/\nselect sum(amount) as n from {{ ref('events') }}"
    )
    lab.land("a", [{"id": 1, "amount": 2.0}, {"id": 2, "amount": 3.0}])
    return lab


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.mark.nightly
def test_builds_in_another_thread_one_after_another(shop: Lab, tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    handlers = [signal.getsignal(number) for number in SIGNALS]
    environment = dict(os.environ)
    seen: list[Event] = []
    project = Project(shop.root)

    with pytest.raises(SetupError) as refused:
        in_thread(lambda: Project(shop.root, target="small").build())
    assert refused.value.diagnostic.code == "java-start"

    first = in_thread(lambda: project.build(on_event=seen.append, threads=2))
    assert {r.node: r.status for r in first.results} == {
        "model.events": Status.SUCCESS, "model.sums": Status.SUCCESS, "test.not_null_sums_n.efd127ff81": Status.PASS,
    }  # fmt: skip
    assert not first.failed
    steps = [event.step for event in seen if isinstance(event, StepStarted)]
    assert steps == [Step.PLAN, Step.SESSION]
    rest = [event for event in seen if not isinstance(event, StepStarted)]
    assert [type(rest[0]), type(rest[-1])] == [RunStarted, RunFinished]
    assert [e for e in seen if isinstance(e, ModelFinished | events.TestFinished)] == list(first.results)
    assert shop.rows("sums") == [{"n": 5.0}]

    shop.land("b", [{"id": 3, "amount": 5.0}])
    shop.model("broken", "/*---\nmaterialized: table\n---*/\nselect 1 / (n - n) as x from {{ ref('sums') }}\n")
    second = in_thread(project.build)
    assert {r.node: r.status for r in second.results}["model.broken"] is Status.ERROR
    assert second.failed
    assert "division" in next(d.message.lower() for d in second.diagnostics if d.node == "broken")
    assert shop.rows("sums") == [{"n": 10.0}]
    assert (shop.root / "target" / "run_results.json").exists()

    other = shop_in(tmp_path / "other")
    third = Project(other.root).run("events")
    assert [(r.node, r.status) for r in third.results] == [("model.events", Status.SUCCESS)]
    assert len(other.rows("events")) == 2

    assert handlers == [signal.getsignal(number) for number in SIGNALS]
    assert dict(os.environ) == environment
    # PyIceberg keeps its readers for the process.
    threads |= ExecutorFactory.get_or_create()._threads
    # Those of PySpark that listened to Java end by themselves, a moment later.
    assert wait_until(lambda: set(threading.enumerate()) <= threads)


@pytest.mark.nightly
def test_a_second_run_beside_the_first_is_refused_at_once(shop: Lab, tmp_path: Path) -> None:
    other = Project(shop_in(tmp_path / "other").root)
    refused: list[EngineError] = []

    def beside(event: Event) -> None:
        if isinstance(event, ModelStarted):
            for run in (other.build, Project(shop.root).test):
                with pytest.raises(EngineError) as raised:
                    in_thread(run)
                refused.append(raised.value)

    assert not Project(shop.root).run("events", on_event=beside).failed
    assert [error.diagnostic.code for error in refused] == ["spark-session", "spark-session"]
    assert "this process already runs a build or tests" in str(refused[0])
    assert not other.run("events").failed


@pytest.mark.nightly
def test_what_a_handler_of_signals_raises_ends_a_build(shop: Lab) -> None:
    """As an orchestrator's task ends: its handler raises an exception of its own in the main thread."""
    shop.model(
        "endless",
        "/*---\nmaterialized: table\n---*/\nselect count(*) as n from range(100000000) a, range(100000000) b\n",
    )
    script = f"""
import os, signal, sys, threading
from engine import Project, events
from engine.events import ModelStarted

class Ended(Exception):
    pass

def end(*_):
    raise Ended

signal.signal(signal.SIGTERM, end)

def stop(event):
    if isinstance(event, ModelStarted):
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGTERM)).start()

try:
    Project({str(shop.root)!r}).run("endless", on_event=stop)
except Ended:
    sys.exit(42)
"""
    ended = run_alone(shop.root, "ls", script=script)
    assert ended.returncode == 42, ended.stdout + ended.stderr
    wait_for_locks(shop.root, 5)
