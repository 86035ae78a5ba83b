"""All pages of a live site tell the same about a model, at each step of what happens to it: they equal the status."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from engine import events
from engine.compile import Compiled, compile_project
from engine.docs.page_access import PageAccess
from engine.events import NodeState, NodeTurnFinished, NodeTurnStarted, ProjectReloaded, Status
from engine.live.lag import Lag
from engine.live.live_server import serve
from engine.live.live_site import LiveSite
from engine.live.node_status import StallRule
from engine.live.observer import Observer, observing
from engine.project import load_project
from tests.browser.conftest import Window
from tests.docs.build import written
from tests.live.sequences import started, state, text, turn
from tests.project.small_projects import write
from tests.projects import sources_yaml

ACCESS = PageAccess("a-token-of-this-test-only", "the-session-of-this-test")
ORDERS, TOTALS, ALERTS = "model.orders", "model.totals", "model.alerts"
PROJECT = """
name: shop
version: "1"
target: dev
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: lake}
    schema: main
    spark: {master: "local[2]"}
"""
SOURCES = sources_yaml(events="id string, amount int")
STREAM = """/*---
streams: [shop.events]
---*/
select id, amount from {{ source('shop', 'events') }}
"""
TESTED = STREAM.replace("---*/", "columns: {id: {tests: [not_null]}}\n---*/")
FILES = {
    "project.yml": PROJECT,
    "sources/shop.yml": SOURCES,
    "models/orders.sql": TESTED,
    "models/totals.sql": "select id, sum(amount) as amount from {{ ref('orders') }} group by id\n",
}


@dataclass
class Process:
    """A project that is kept running, as far as pages can tell: its files are edited, and events come."""

    root: Path
    observer: Observer
    address: str
    compiled: Compiled
    turns: int = 0

    def happens(self, *new: Any) -> None:
        for event in new:
            self.observer.on_event(event)

    def runs(self, node: str, *, status: Status = Status.SUCCESS, message: str = "") -> None:
        self.turns += 1
        self.happens(*turn(node, self.turns, at=time.time(), status=status, message=message))

    def begins(self, node: str) -> None:
        self.turns += 1
        at = time.time()
        self.happens(
            state(node, NodeState.RUNNING, "tried again", at),
            NodeTurnStarted(node, self.turns, "tried again", 0.0, text(at)),
        )

    def tests(self, status: Status, message: str = "") -> None:
        """The tests of orders run, in a turn of their own."""
        node, at = f"tests.{ORDERS}", time.time()
        (test,) = self.compiled.manifest.tests
        self.begins(node)
        self.happens(
            events.TestFinished(test.id, 1, 1, status, 0.1, int(status.failed), message, text(at)),
            NodeTurnFinished(node, self.turns, status, 0.1, more=False, message=message, at=text(at)),
            state(node, NodeState.BACKING_OFF if status.failed else NodeState.IDLE, message, at),
        )

    def edit(self, **files: str | None) -> None:
        """Change models, or remove them, and use the project as it is then."""
        for name, content in files.items():
            path = self.root / "models" / f"{name}.sql"
            if content is None:
                path.unlink()
            else:
                path.write_text(content)
        self.compiled = compile_project(load_project(self.root))
        assert self.compiled.manifest.errors == ()
        nodes = [model.id for model in self.compiled.manifest.models]
        changed = tuple(f"model.{name}" for name in files)
        kept = (*nodes, *([f"tests.{ORDERS}"] if self.compiled.manifest.tests else []))
        self.happens(ProjectReloaded(("models",), changed, "", text(time.time()), kept))

    @property
    def status(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=10)
        connection.request("GET", "/live/status", headers={"Authorization": f"Bearer {ACCESS.token}"})
        return json.loads(connection.getresponse().read())

    @property
    def words(self) -> dict[str, str]:
        """What each model is said to do."""
        return {node["name"]: node["word"] for node in self.status["nodes"] if node["node"].startswith("model.")}


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """A project whose last `engine build`, before it was kept running, failed."""
    write(tmp_path, FILES)
    compiled = compile_project(load_project(tmp_path))
    target = tmp_path / "target"
    (test,) = compiled.manifest.tests
    results = [
        {"unique_id": f"model.shop.{name}", "status": "error", "message": f"{name} failed in a build long ago"}
        for name in ("orders", "totals")
    ]
    results.append({"unique_id": f"test.shop.{test.id.partition('.')[2]}", "status": "fail", "message": "long ago"})
    stored = {"metadata": {"generated_at": "2026-01-01T00:00:00Z"}, "args": {"which": "build"}, "results": results}
    target.mkdir()
    (target / "run_results.json").write_text(json.dumps(stored))
    written(target / "docs", compiled.manifest, stored)
    with observing(target, {test.id: ORDERS}) as observer:
        data = LiveSite(lambda: process.compiled, observer.node_ids, target)
        with serve(observer, target / "docs", ACCESS, data=data) as server:
            process = Process(tmp_path, observer, server.link(), compiled)
            process.happens(started(ORDERS, TOTALS, f"tests.{ORDERS}", at=time.time() - 60))
            yield process


def stated(page: Page, words: dict[str, str]) -> None:
    """All pages list these models and no other, each with its word."""
    for name, word in words.items():
        tone = re.compile(r"(^|\W)" + re.escape(word) + r"($|\W)")
        expect(page.locator("#nodes a", has_text=name)).to_have_attribute("title", word)
        box = page.locator("a.box", has=page.locator(f".name:text-is('{name}')"))
        expect(box).to_have_attribute("aria-label", tone)
    expect(page.locator("#nodes details[data-title=models] li")).to_have_count(len(words))


def go(window: Window, address: str) -> None:
    if window.page.evaluate("window.location.hash") != address:
        window.turn(address)


def agrees(window: Window, process: Process) -> None:
    """Overview, graph, list, the page of each model and Live tell what the status tells, without being loaded again."""
    page, words = window.page, process.words
    status = process.status
    failing = sum(word.startswith(("failing", "failed")) or "test" in word for word in words.values())
    for address in ("#/", "#/graph", "#/live"):
        go(window, address)
        stated(page, words)
        if address == "#/":
            rows = page.locator("section", has=page.locator("h2:text-matches('^(Streams|Tables)')")).locator("tbody tr")
            expect(rows).to_have_count(len(words))
            for name, word in words.items():
                expect(rows.filter(has=page.locator(f"bdi:text-is('{name}')")).locator(".badge")).to_have_text(word)
            expect(page.locator(".tile", has_text="Models").locator("b")).to_have_text(str(len(words)))
            now = page.locator(".tile", has=page.locator("dt:text-is('Now')"))
            expect(now).to_contain_text(f"{failing} failing" if failing else "all well")
            expect(page.locator("main")).not_to_contain_text("long ago")
        if address == "#/live":
            assert page.locator(".tile", has_text="Failing").locator("b").text_content() == str(failing)
            expect(page.locator(".tile", has_text="Failing")).to_contain_text(f"of {len(words)} model")
            for node in status["nodes"]:
                row = page.locator("table tr", has=page.locator(f"bdi:text-is('{node['name']}')"))
                shown = bool(node["reasons"]) and node["node"].startswith("model.")
                expect(row).to_have_count(int(shown))
                for reason in node["reasons"] if shown else ():
                    assert (row.text_content() or "").count(reason) == 1
    for name, word in words.items():
        for address in (f"#/model/{name}", f"#/live/{name}"):
            go(window, address)
            tile = page.locator(".tile", has=page.locator("dt:text-is('State')"))
            expect(tile.locator("b")).to_have_text(word)
            (reasons,) = (node["reasons"] for node in status["nodes"] if node["name"] == name)
            assert page.locator("main p.notice").all_text_contents() == reasons
        go(window, f"#/model/{name}")
        expect(page.locator("header .badges .of-node .badge")).to_have_text(word)
        expect(page.locator("main")).not_to_contain_text("long ago")


def test_all_pages_tell_what_the_status_tells_at_each_step(window, process: Process) -> None:
    watched = window(process.address)
    watched.open("#/")
    agrees(watched, process)  # nothing has run: what an earlier build said counts no more
    process.runs(ORDERS)
    process.runs(TOTALS)
    agrees(watched, process)
    process.runs(ORDERS, status=Status.ERROR, message="the broker is away")
    agrees(watched, process)
    process.begins(ORDERS)  # it is failing until a turn succeeds
    assert process.words["orders"] == "failing, retrying"
    agrees(watched, process)
    process.runs(ORDERS)
    agrees(watched, process)
    process.tests(Status.FAIL, "3 rows are NULL")
    assert process.words["orders"] == "1 test failing"
    agrees(watched, process)
    go(watched, "#/model/orders")
    expect(watched.page.locator(".test .badge").first).to_have_text("fail")
    process.tests(Status.PASS)
    expect(watched.page.locator(".test .badge").first).to_have_text("pass")
    agrees(watched, process)
    process.edit(alerts=STREAM)
    agrees(watched, process)
    process.runs(ALERTS, status=Status.ERROR, message="no such column")
    process.happens(state(ALERTS, NodeState.FAILED, "no such column", time.time()))
    agrees(watched, process)
    process.edit(totals=None)
    agrees(watched, process)
    process.edit(alerts=STREAM.replace("amount from", "amount + 1 as more from"))
    go(watched, "#/model/alerts")
    expect(watched.page.locator("main")).to_contain_text("amount + 1 as more")
    process.runs(ALERTS)
    agrees(watched, process)


def test_the_open_page_takes_an_edit_at_its_place(window, process: Process) -> None:
    watched = window(process.address, height=400)
    page = watched.open("#/model/orders")
    page.locator("[role=tab]", has_text="Compiled").click()
    page.locator("#nodes summary").first.click()
    page.evaluate("window.scrollTo(0, 450)")
    page.evaluate("window.same = true")
    process.edit(alerts=STREAM, orders=TESTED.replace("select", "select -- edited\n "))
    expect(page.locator("#nodes")).to_contain_text("alerts")
    expect(page.locator("[role=tabpanel]").first).to_contain_text("edited")
    assert page.evaluate("window.same && window.scrollY") == 450
    expect(page.locator("[role=tab]", has_text="Compiled")).to_have_attribute("aria-selected", "true")
    assert page.locator("#nodes details").first.get_attribute("open") is None
    # The search finds what is new, in a page that was never loaded again.
    page.keyboard.press("/")
    page.keyboard.type("alerts")
    expect(page.locator("#found")).to_contain_text("alerts")


def test_a_page_that_opens_while_the_project_changes_shows_the_new_one(window, process: Process) -> None:
    process.edit(alerts=STREAM)
    page, asked = window(process.address).open("#/"), []
    page.route("**/data/nodes*.js*", lambda route: route.continue_() if asked else asked.append(route))
    page.evaluate("window.location.hash = '#/model/alerts'")
    expect(page.locator("html")).not_to_have_attribute("data-ready", "true")
    process.edit(alerts=STREAM.replace("amount from", "amount + 1 as more from"), totals=None)
    expect(page.locator("#nodes")).not_to_contain_text("totals")
    asked[0].continue_()
    expect(page.locator("main")).to_contain_text("amount + 1 as more")


def test_who_selects_a_text_is_asked_first(window, process: Process) -> None:
    page = window(process.address).open("#/model/orders")
    page.locator("h1 bdi").select_text()
    process.edit(alerts=STREAM)
    expect(page.locator("#told")).to_contain_text("The project has changed.")
    assert page.evaluate("window.getSelection().toString()") == "orders"
    expect(page.locator("#nodes")).not_to_contain_text("alerts")
    page.get_by_role("button", name="Show it").click()
    expect(page.locator("#nodes")).to_contain_text("alerts")


def test_the_page_of_a_model_that_is_deleted_says_so(window, process: Process) -> None:
    page = window(process.address).open("#/model/totals")
    process.edit(totals=None)
    expect(page.locator("main")).to_contain_text("not in the project any more")


def test_stalled_is_said_with_what_it_does_meanwhile(window, process: Process) -> None:
    process.observer.status.stall_rules = lambda _: StallRule(0.0)
    process.observer.status.note_lags({ORDERS: (Lag("shop.events", "files", 1),)}, time.time() - 5)
    process.begins(ORDERS)
    page = window(process.address).open("#/live")
    row = page.locator("table tr", has_text="orders")
    expect(row.locator(".badge")).to_have_text("stalled, running")
    expect(row).to_contain_text("1 file of shop.events")
    expect(page.locator(".tile", has_text="Running").locator("b")).to_have_text("1")


def test_data_that_did_not_change_are_not_read(process: Process) -> None:
    data = LiveSite(lambda: process.compiled, process.observer.node_ids, process.root / "target")
    first = data.script("index")
    assert first is not None
    assert data.script("index") is first
    assert data.script("nodes0", "99") == b'headrace.stale("nodes0");\n'
    assert data.script("nodes7") is None
    assert data.script("secret") is None


@pytest.mark.nightly_cases("10000")
@pytest.mark.parametrize("turns", [300, 10_000])
def test_pages_that_stay_open_stay_small(window, process: Process, turns: int) -> None:
    watched = window(process.address)
    page = watched.open("#/live")
    charts = page.context.new_page()
    charts.goto(f"{watched.start}index.html#/live/orders")
    expect(charts.locator(".live-chart")).to_have_count(5)
    for number in range(1, turns + 1):
        bad = number % 97 == 0
        process.runs(
            (ORDERS, TOTALS)[number % 2],
            status=Status.ERROR if bad else Status.SUCCESS,
            message="the broker is away" if bad else "",
        )
        if number % 10 == 0:
            page.wait_for_timeout(100)
    process.runs(ORDERS)
    process.runs(TOTALS)
    expect(charts.locator(".tile", has_text="Turns")).to_contain_text(f"{turns // 2 + 1:,}")
    for one in (page, charts):
        session = one.context.new_cdp_session(one)
        session.send("Performance.enable")
        session.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        assert metrics["Nodes"] < 5_000
        assert metrics["JSHeapUsedSize"] < 20e6
    agrees(watched, process)
