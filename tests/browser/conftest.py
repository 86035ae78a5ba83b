"""A real chromium, and sites for it. Every page that a test opens is watched: no error, and no request leaves the site."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from engine.compile import Manifest, UnitTest, compile_project
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, StepKind, UnitTestStep
from engine.docs.site.table_rows import ColumnProfile, TableRows
from engine.docs.site.table_statistics import Snapshot, StoredTable
from engine.errors import Location
from engine.events import BatchCommitted, ModelFinished, RunFinished, RunStarted, Status, TestFinished, fold
from engine.project import load_project
from engine.runtime.context.run_history import note_run, read_history
from engine.runtime.context.run_results import as_dict
from tests.docs.build import NOW, Site, written
from tests.lab import REPOSITORY

_HOURLY = "model.departures_hourly"
_FAILING = "unit_test.departures_hourly.late"
SHOTS = REPOSITORY / "target" / "screenshots"
# Milliseconds: the live page takes at most a tenth of the time for its history, and four tests may share two cores.
expect.set_options(timeout=60_000)
_FOUND = os.environ.get("ENGINE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if _FOUND is None:
        pytest.skip("there is no chromium (ENGINE_CHROMIUM names one)")
    with sync_playwright() as playwright:
        # The sandbox of chromium does not run as root, as CI does.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=_FOUND, args=arguments)
        yield started
        started.close()


# A selector: what a page evaluates by itself while it waits, the policy of the server forbids.
DRAWN = "html[data-ready=true]"
TURN = """(address) => new Promise((done) => {
    addEventListener("hashchange", done, { once: true });
    location.hash = address;
})"""


class Window:
    """A page of a browser, watched."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        start, _, self._query = link.partition("?")
        self.start = start
        self.faults: list[str] = []
        page.on(
            "console",
            lambda message: self.faults.append(message.text) if message.type in {"error", "warning"} else None,
        )
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: self.faults.append(f"left: {request.url}") if not request.url.startswith(start) else None,
        )

    def _failed(self, request: Request) -> None:
        # A page that is left gives up what it still loads, its icon mostly. A file that is missing or refused fails
        # in another way, and a script that a page waits for and does not get is an error in its console too.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed: {request.url} ({request.failure})")

    def open(self, address: str = "#/") -> Page:
        """Go to an address of the site and wait until it is drawn."""
        self.page.goto("about:blank")  # another fragment alone would load nothing
        self.page.goto(f"{self.start}index.html{self._query and f'?{self._query}'}{address}")
        self.page.wait_for_selector(DRAWN, state="attached")
        return self.page

    def turn(self, address: str) -> Page:
        """Go on to another address of the open site, as a link does, and wait until it is drawn."""
        self.page.evaluate(TURN, address)
        self.page.wait_for_selector(DRAWN, state="attached")
        return self.page

    def shoot(self, name: str, *, whole: bool = True) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=whole, animations="disabled")


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[..., Window]]:
    """Opens windows on a site; at the end none of them may have had a fault."""
    opened: list[Window] = []

    def make(site: Site | str, *, width: int = 1440, height: int = 900, **settings: Any) -> Window:
        start = site if isinstance(site, str) else f"{site.folder.as_uri()}/"
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        opened.append(Window(context.new_page(), start))
        return opened[-1]

    yield make
    for one in opened:
        one.page.context.close()
    assert [fault for one in opened for fault in one.faults] == []


@pytest.fixture(scope="session")
def example() -> Manifest:
    """The example, and a unit test more, which `_results` lets fail."""
    made = compile_project(load_project(REPOSITORY)).manifest
    place = Location("tests/hours.yml", 3, 11)
    names = (("type", "string"), ("data", None))
    given = tuple(GivenRows(i.name, i.view, Rows(names), place) for i in made.nodes[_HOURLY].inputs)
    ends = ExpectedResult(place, Rows((("departures", "bigint"),)), late=1)
    steps = (UnitTestStep(StepKind.GIVEN, place, given), UnitTestStep(StepKind.RESTART, place))
    test = UnitTest(_FAILING, "late", _HOURLY, steps, ends, file=place.file, location=place)
    return replace(made, nodes={**made.nodes, test.id: test}, order=(*made.order, test.id))


@pytest.fixture(scope="session")
def flights(example: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The example's site, with a run and tables as a build leaves them."""
    tables = {m.id: _table(n) for n, m in enumerate(example.models) if m.materialized.value != "view"}
    target = tmp_path_factory.mktemp("runs")
    for _ in range(3):
        note_run(_results(example), None, target)
    history = read_history(target)
    rows = {"model.routes": ROWS}
    folder = tmp_path_factory.mktemp("flights")
    return written(folder, example, _results(example), tables=tables, history=history, rows=rows)


ROWS = TableRows(
    ("destination", "flights", "shares"),
    (("ATL", "17215", "[0.25, 0.5]"), ("ORD", None, "[]")),
    184,
    (
        ColumnProfile("destination", 0, 101, "ABQ", "XNA"),
        ColumnProfile("flights", 1, 90, "1", "17283"),
        ColumnProfile("shares", 0, None, None, None),
    ),
    ("pilot",),
)


def _table(seed: int) -> StoredTable:
    added = [(seed + 3) * (i % 7 + 1) for i in range(30)]
    commits = tuple(
        Snapshot(
            10**18 + i,
            NOW - timedelta(hours=30 - i),
            "append",
            rows,
            0,
            sum(added[: i + 1]),
            sum(added[: i + 1]) * 40,
            i,
            "r",
        )
        for i, rows in enumerate(added)
    )
    apart = (Snapshot(1, NOW, "append", 4, 0, 4, 400, 29, "r"),) if seed % 3 == 0 else ()
    return StoredTable("u", (("id", "string"),), commits, 30, sum(added), sum(added) * 40, 30, apart)


def _results(manifest: Manifest) -> dict[str, Any]:
    """A run in which all went well but one unit test."""
    happened: list[Any] = [RunStarted("run", "build", "dev", 3, NOW.isoformat())]
    for number, model in enumerate(manifest.models, 1):
        kind, status = model.materialized.value, Status.SUCCESS
        batches = range(8) if model.streaming else ()
        happened += [
            BatchCommitted(
                model.id,
                b,
                f"2013-03-0{b + 1}T10:00:00.000Z",
                b,
                1.0,
                rows_in=100 + b,
                rows_out=40 + b,
                late=b % 3,
                state_rows=5 + b,
            )
            for b in batches
        ]
        happened.append(
            ModelFinished(
                status,
                node=model.id,
                index=number,
                total=7,
                kind=kind,
                relation=str(model.relation),
                seconds=2.0,
                rows_in=828,
                rows_out=348,
                late=7,
                state_rows=12,
                batches=8,
                watermark="2013-03-08T10:00:00.000Z",
                note="the next window closes at 11:00",
                at=NOW.isoformat(),
            )
        )
    happened += [TestFinished(test.id, 1, 1, Status.PASS, 0.1, at=NOW.isoformat()) for test in manifest.tests]
    differ = "rows differ:\n  departures  expected 2, found 3"
    happened.append(TestFinished(_FAILING, 1, 1, Status.FAIL, 0.1, 1, differ, NOW.isoformat()))
    return as_dict(fold([*happened, RunFinished(20.0)]), manifest.project)
