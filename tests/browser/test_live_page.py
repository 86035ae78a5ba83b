"""The live page in a real browser: it follows what happens, says what is wrong and why, and stays quick."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from engine.compile import Manifest
from engine.docs.page_access import PageAccess
from engine.events import HeldInState, NodeState, Status
from engine.live.lag import Lag
from engine.live.live_server import serve
from engine.live.observer import Observer, observing
from tests.docs.build import written
from tests.live.sequences import batch, started, state, turn

HOURLY, AIRPORTS = "model.departures_hourly", "model.airports"
ACCESS = PageAccess("a-token-of-this-test-only", "the-session-of-this-test")
ODD = "<img src=x onerror=alert(1)>"


@dataclass
class Process:
    """A process that is observed, and the page that shows it."""

    observer: Observer
    address: str
    models: list[str]

    def happens(self, *events: Any) -> None:
        for event in events:
            self.observer.on_event(event)

    def ask(self, path: str, host: str | None = None, *, token: bool = True) -> tuple[int, str]:
        netloc = urlsplit(self.address).netloc
        connection = http.client.HTTPConnection(netloc, timeout=10)
        bearer = {"Authorization": f"Bearer {ACCESS.token}"} if token else {}
        connection.request("GET", path, headers=bearer | ({"Host": host} if host else {}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def process(tmp_path: Path, example: Manifest) -> Iterator[Process]:
    written(tmp_path / "docs", example)
    models = [model.id for model in example.models]
    with observing(tmp_path, {}) as observer, serve(observer, tmp_path / "docs", ACCESS) as server:
        process = Process(observer, server.link(), models)
        now = time.time()
        process.happens(started(*models, at=now - 3600))
        for number, model in enumerate(models):
            for back in range(8, 0, -1):
                at = now - back * (60 + number)
                process.happens(*turn(model, 9 - back, at=at, rows=100 * (number + back)))
        yield process


def fail(process: Process, message: str) -> None:
    process.happens(*turn(HOURLY, 9, at=time.time(), status=Status.ERROR, message=message))


def test_the_page_follows_what_happens_and_says_why(window, process: Process) -> None:
    watched = window(process.address)
    page: Page = watched.open("")
    expect(page).to_have_url(f"{watched.start}#/live")
    expect(page.locator(".live")).to_contain_text("Nothing needs attention.")
    fail(process, f"the broker is away {ODD}")
    row = page.locator("tr", has_text="departures_hourly")
    expect(row).to_contain_text(f"the broker is away {ODD}")
    expect(page.locator(".tile.bad")).to_contain_text("1")
    expect(page.locator(".box.bad", has_text="departures_hourly")).to_contain_text("backing off")
    process.observer.status.note_lags({HOURLY: (Lag("flights", "snapshots", 1234),)})
    expect(page.locator("g.flow")).to_have_text("1,234 snapshots")
    process.happens(*turn(HOURLY, 10, at=time.time()))
    process.observer.status.note_lags({HOURLY: (Lag("flights", "snapshots", 0),)})
    expect(page.locator(".live")).to_contain_text("Nothing needs attention.")
    expect(page.locator(".timeline")).to_contain_text("departures_hourly")
    expect(page.locator(".live-log li.error")).to_contain_text(ODD)


def test_a_models_page_has_charts_with_units_from_zero_and_its_turns(window, process: Process) -> None:
    process.happens(*turn(HOURLY, 20, at=time.time() - 5, rows=5000, late=3, bad={"github.events": 7}))
    process.happens(batch(HOURLY, number=21, bad_records={"github.events": 1}, bad_reasons={"github.events": ODD}))
    time.sleep(1.5)  # until the history is written
    page = window(process.address).open("#/live/departures_hourly")
    charts = page.locator(".live-chart")
    expect(charts).to_have_count(5)
    expect(charts.first).to_contain_text("rows per second")
    for chart in charts.all():
        assert chart.locator(".tick").first.text_content() == "0"
    expect(page.locator(".live")).to_contain_text(f"8 unreadable records of github.events, for example: {ODD}")
    expect(page.locator("table", has_text="Waited")).to_contain_text("5,000")
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")


def test_a_models_page_shows_what_its_query_holds_in_words_and_over_time(window, process: Process) -> None:
    held = (
        HeldInState("stateStoreSave", "open groups", "groups that later rows can still change", 12_345, 3_400_000),
        HeldInState(ODD, ODD, "", 2, 0),
    )
    process.happens(batch(HOURLY, number=30, rows_in=1, state_rows=12_347, held=held))
    time.sleep(1.5)  # until the history is written
    page = window(process.address).open("#/live/departures_hourly")
    table = page.locator("table", has_text="How many")
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(table.locator("tbody tr").first).to_contain_text("12,345")
    expect(table.locator("tbody tr").first).to_contain_text("3.4 MB")
    expect(table.locator("tbody tr").first).to_contain_text("groups that later rows can still change")
    expect(table.locator("tbody tr").last).to_contain_text(ODD)
    charts = page.locator(".live-chart")
    expect(charts).to_have_count(7)
    for title, unit, greatest in (("Held in state", "rows", "12,347"), ("Memory of state", "MB", "3.4")):
        chart = charts.filter(has_text=title)
        expect(chart).to_contain_text(unit)
        assert chart.locator(".tick").first.text_content() == "0"
        label = chart.locator("svg").get_attribute("aria-label")
        assert label is not None
        assert label.endswith(f"the greatest {greatest}")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # It follows the next micro-batch.
    process.happens(batch(HOURLY, number=31, rows_in=1, state_rows=0))
    expect(table).to_have_count(0)


def test_a_server_that_goes_is_reported(window, tmp_path: Path, example: Manifest) -> None:
    written(tmp_path / "docs", example)
    with observing(tmp_path, {}) as observer:
        with serve(observer, tmp_path / "docs", ACCESS) as server:
            address = server.link()
            observer.on_event(started(HOURLY, at=time.time()))
            watched = window(address)
            page = watched.open("#/live")
            expect(page.locator("dl.tiles")).to_contain_text("of 1 model")
        expect(page.locator("#told")).to_contain_text("The connection is lost", timeout=15_000)
        watched.faults.clear()  # the browser's own words about the lost connection


def test_answers_are_for_this_host_alone(process: Process) -> None:
    for path in ("/live/log", "/live/turns?hours=1", "/metrics", "/healthz", "/live/events"):
        assert process.ask(path, host="evil.example:80")[0] == 403
    assert process.ask("/live/turns?hours=x")[0] == 400
    assert process.ask("/live/../live_page.js")[0] == 404
    assert "headrace_model_rows_read_total" in process.ask("/metrics")[1]
    assert process.ask("/readyz") == (200, "ready\n")
    assert process.ask("/healthz") == (200, "healthy\n")
    fail(process, "no")
    assert process.ask("/healthz") == (503, "unhealthy\n")


def test_without_the_token_a_probe_gets_one_word_and_everything_else_nothing(process: Process) -> None:
    process.happens(batch(HOURLY, number=30, rows_in=1))
    fail(process, "value 4711 is out of range")
    for path in (
        "/",
        "/live/log",
        "/live/turns",
        "/live/series",
        "/live/states",
        "/live/events",
        "/metrics",
        "/app.js",
    ):
        status, text = process.ask(path, token=False)
        assert (status, "4711" in text, "departures" in text) == (403, False, False), path
    assert process.ask("/healthz", token=False) == (503, "unhealthy\n")
    assert process.ask("/readyz", token=False) == (200, "ready\n")
    assert process.ask("/healthz", host="evil.example:80", token=False)[0] == 403


def test_the_token_leaves_the_address_line_and_the_page_asks_with_a_cookie(window, process: Process) -> None:
    watched = window(process.address)
    page = watched.open("#/live")
    expect(page.locator("dl.tiles")).to_contain_text("models")
    assert page.url.endswith("/#/live")
    assert ACCESS.token not in page.url
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.locator("dl.tiles")).to_contain_text("models")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_pictures(window, process: Process, scheme: str, width: int, height: int) -> None:
    fail(process, "the broker kafka:9092 does not answer")
    process.happens(state(AIRPORTS, NodeState.RUNNING, "new files", time.time()))
    process.observer.status.note_lags({HOURLY: (Lag("flights", "snapshots", 12),)})
    time.sleep(1.5)
    watched = window(process.address, width=width, height=height, color_scheme=scheme)
    page = watched.open("#/live")
    expect(page.locator(".timeline")).to_be_visible()
    expect(page.locator("g.flow")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    watched.shoot(f"live-{scheme}-{width}")
    watched.turn("#/live/departures_hourly")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    watched.shoot(f"live-model-{scheme}-{width}")


LONGEST = """() => new Promise((done) => {
    let last = performance.now(), longest = 0;
    const end = last + 4000;
    const step = (now) => {
        longest = Math.max(longest, now - last);
        last = now;
        if (now < end) requestAnimationFrame(step); else done(longest);
    };
    requestAnimationFrame(step);
})"""


def test_the_status_of_a_thousand_models_is_sent_once_and_then_changes_alone(process: Process) -> None:
    models = [f"model.m{n}" for n in range(1000)]
    process.happens(started(*models, at=time.time()))
    netloc = urlsplit(process.address).netloc
    connection = http.client.HTTPConnection(netloc, timeout=10)
    connection.request("GET", "/live/events", headers={"Authorization": f"Bearer {ACCESS.token}"})
    answer = connection.getresponse()
    first = json.loads(_event(answer))
    assert len(first["nodes"]) == 1000
    process.happens(state("model.m7", NodeState.RUNNING, "new input", time.time()))
    second = json.loads(_event(answer))
    assert [node["node"] for node in second["nodes"]] == ["model.m7"]
    connection.close()


def _event(answer: http.client.HTTPResponse) -> str:
    line = answer.readline().decode()
    assert answer.readline() == b"\n"
    return line.removeprefix("data: ")
