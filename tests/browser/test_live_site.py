"""A served page loads itself again when the site is written again, and the reader stays where he was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.compile import Manifest, Model
from engine.docs.page_access import page_access
from engine.docs.serve import serving
from tests.browser.conftest import DRAWN
from tests.docs.build import written


class Live:
    """A site that is served, and written again with other descriptions."""

    def __init__(self, folder: Path, project: Manifest) -> None:
        self.folder, self.project = folder, project
        self.number = 0
        self.write("first")

    def write(self, words: str) -> None:
        node = self.project.nodes["model.departures_hourly"]
        assert isinstance(node, Model)
        nodes = {**self.project.nodes, node.id: replace(node, description=words)}
        written(self.folder, replace(self.project, nodes=nodes))
        self.number += 1

    def version(self) -> str:
        return f"v{self.number}"


@pytest.fixture
def live(tmp_path: Path, example: Manifest) -> Live:
    return Live(tmp_path / "docs", example)


@pytest.fixture
def address(live: Live) -> Iterator[str]:
    with serving(live.folder, page_access(), version=live.version) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.link()
        server.shutdown()
        thread.join()


def loaded_again(page: Page, live: Live, words: str) -> None:
    """Write the site, and wait until the page has loaded it."""
    live.write(words)
    page.wait_for_selector(f'script[data-version="{live.version()}"]', state="attached")
    page.wait_for_selector(DRAWN, state="attached")


def test_a_page_shows_what_was_written_last_at_its_place(window, live: Live, address: str) -> None:
    page = window(address, height=400).open("#/model/departures_hourly")
    expect(page.locator("main")).to_contain_text("first")
    page.locator("#nodes details").first.locator("summary").click()
    shut = page.locator("#nodes details").first
    expect(shut).not_to_have_attribute("open", "")
    page.evaluate("window.scrollTo(0, 450)")
    page.wait_for_timeout(300)
    top = page.evaluate("window.scrollY")
    assert top > 300
    loaded_again(page, live, "second")
    expect(page.locator("main")).to_contain_text("second")
    page.wait_for_timeout(200)
    assert page.evaluate("window.scrollY") == top
    assert page.evaluate("window.location.hash") == "#/model/departures_hourly"
    expect(page.locator("#nodes details").first).not_to_have_attribute("open", "")


def test_the_node_and_the_part_of_the_graph_stay(window, live: Live, address: str) -> None:
    page = window(address).open("#/graph")
    page.locator(".box", has_text="departures_hourly").first.click()
    expect(page.locator(".info h2")).to_have_text("departures_hourly")
    page.get_by_role("button", name="Zoom in").click()
    page.locator(".graph svg, svg.graph").first.hover()
    page.mouse.wheel(-1000, 0)  # what is in the light goes out of sight
    page.wait_for_timeout(200)
    world = page.locator("svg > g").first.get_attribute("transform")
    loaded_again(page, live, "second")
    expect(page.locator(".info h2")).to_have_text("departures_hourly")
    page.wait_for_timeout(200)
    assert page.locator("svg > g").first.get_attribute("transform") == world


@pytest.mark.nightly
def test_who_searches_is_not_interrupted(window, live: Live, address: str) -> None:
    page = window(address).open("#/")
    page.keyboard.press("/")
    page.keyboard.type("dep")
    before = live.version()
    live.write("second")
    page.wait_for_timeout(2500)
    expect(page.get_by_role("combobox", name="Search models")).to_have_value("dep")
    assert page.locator(f'script[data-version="{before}"]').count() == 1
    page.get_by_role("combobox", name="Search models").fill("")
    page.wait_for_selector(f'script[data-version="{live.version()}"]', state="attached")


def test_a_page_of_the_file_system_asks_for_nothing(window, live: Live) -> None:
    page = window(f"{live.folder.as_uri()}/").open("#/")
    assert page.locator("script[src='live.js']").count() == 0
