"""The documentation's site in a real chromium: it fits narrow and wide windows, in light and dark, finds words and loads nothing from elsewhere."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.lab import REPOSITORY

pytestmark = pytest.mark.nightly

PAGES = ["index", "docs/tutorial", "docs/reference/project", "docs/comparison", "docs/errors", "docs/concepts"]


@pytest.fixture(scope="module")
def documentation(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("documentation") / "site"
    subprocess.run([sys.executable, "-m", "scripts.site.build", str(folder)], cwd=REPOSITORY, check=True)
    return folder


@pytest.mark.parametrize("width", [390, 1280, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window(window, documentation, width, scheme):
    one = window(f"{documentation.as_uri()}/", width=width, color_scheme=scheme)
    for name in PAGES:
        one.page.goto(f"{one.start}{name}.html")
        assert one.page.locator("article h1").count() == 1
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        images = "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
        assert one.page.evaluate(images), name
        # Rows of tables may be scrolled.
        hidden = "[...document.querySelectorAll('article pre')].filter(p => p.scrollWidth > p.clientWidth + 1)"
        lines = one.page.evaluate(f"{hidden}.map(p => p.textContent)")
        assert [text for text in lines if not any(line[:1] in "|+│" for line in text.split("\n") if line)] == [], name
    one.shoot(f"documentation-{scheme}-{width}", whole=False)


class Quiet(SimpleHTTPRequestHandler):
    def do_GET(self):
        # A browser asks for an icon by itself.
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *args):
        pass


def test_the_search_finds_pages(window, documentation):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(documentation)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        one = window(f"http://127.0.0.1:{server.server_port}/")
        one.page.goto(f"{one.start}index.html")
        one.page.locator("input[name=q]").first.fill("watermark-held")
        one.page.locator("input[name=q]").first.press("Enter")
        expect(one.page.locator("#search-results li a", has_text="Troubleshoot").first).to_be_visible()
        expect(one.page.locator("#search-results p.context").first).to_be_visible()
        one.page.wait_for_load_state("networkidle")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_search_of_a_site_on_disk_shows_where_words_are_and_no_design_notes(window, documentation):
    one = window(f"{documentation.as_uri()}/")
    one.page.goto(f"{one.start}search.html?q=watermark-held")
    expect(one.page.locator("#search-results p.context", has_text="One of several inputs").first).to_be_visible()
    one.page.goto(f"{one.start}search.html?q=spliced")
    expect(one.page.locator("#search-results", has_text="did not match")).to_be_visible()


def test_what_is_typed_is_copied(window, documentation):
    one = window(f"{documentation.as_uri()}/")
    one.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.goto(f"{one.start}docs/getting-started.html")
    one.page.locator("button.copy").nth(1).click()
    expect(one.page.locator("button.copy").nth(1)).to_have_text("Copied")
    assert one.page.evaluate("navigator.clipboard.readText()") == "engine init shop\ncd shop\nengine ls"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(window, documentation, scheme):
    one = window(f"{documentation.as_uri()}/", color_scheme=scheme)
    one.page.goto(f"{one.start}docs/tutorial.html")
    one.page.evaluate(AXE_SCRIPT)
    found = one.page.evaluate(
        "axe.run('article', {runOnly: ['color-contrast', 'image-alt', 'link-name', 'heading-order']})"
    )
    assert [(rule["id"], node["html"]) for rule in found["violations"] for node in rule["nodes"]] == []
