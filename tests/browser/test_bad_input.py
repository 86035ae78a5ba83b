"""Texts that would be code, names of every kind, projects that are too big or broken."""

from __future__ import annotations

import random
import time

import pytest
from playwright.sync_api import expect

from engine.compile.nodes.manifest import Column
from engine.errors import Diagnostic, Location
from tests.browser.conftest import Window
from tests.docs.build import hourly, manifest, model, source, written
from tests.docs.test_safety import EVIL, evil, evil_results, evil_stores


def test_texts_that_would_be_code_are_shown_as_texts(window, tmp_path):
    one: Window = window(written(tmp_path, evil(), evil_results(), **evil_stores()))
    page = one.open("#/")
    expect(page.get_by_role("heading", level=1)).to_have_text(" ".join(EVIL.split()))
    places = page.evaluate("[...document.querySelectorAll('#nodes a')].map((a) => a.getAttribute('href'))")
    assert len(places) == 5
    for where in ("#/graph", *places):
        one.open(where)
        page.wait_for_timeout(100)
        assert page.locator("main script, main img, main iframe, main style").count() == 0
        assert page.evaluate(
            "[...document.querySelectorAll('a')].every((a) => /^(#|https?:|mailto:)/.test(a.getAttribute('href')))"
        )
    one.open(next(place for place in places if place.startswith("#/model/%3C")))
    expect(page.locator(".title .prose").first).to_contain_text("[x](javascript:alert(3))")
    expect(page.locator("th a", has_text="__proto__")).to_have_count(2)
    # The search is typed into at once, also while the next page is still read.
    page.locator("th a", has_text="__proto__").last.click()
    page.keyboard.press("/")
    page.keyboard.type("</scr")
    expect(page.get_by_role("option").first).to_contain_text("</script>")
    expect(page.get_by_role("heading", level=1)).to_have_text("__proto__")
    one.shoot("evil", whole=False)


def test_a_description_has_some_markdown_and_safe_links_only(window, tmp_path):
    text = (
        "Rows of **every** `flight`, see [the *docs*](https://example.org/a?b=1&c) or https://example.org/x.\n\n- one\n- two [bad](JavaScript:alert(1))\n\n"
        "<b>no</b> [data](data:text/html,x) [rel](//evil.example) [vb](vbscript:x)"
    )
    page = window(written(tmp_path, manifest(model("a", description=text)))).open("#/model/a")
    prose = page.locator(".title .prose")
    assert prose.locator("a").evaluate_all("(links) => links.map((a) => [a.getAttribute('href'), a.rel])") == [
        ["https://example.org/a?b=1&c", "noopener noreferrer nofollow"],
        ["https://example.org/x", "noopener noreferrer nofollow"],
    ]
    expect(prose.locator("strong")).to_have_text("every")
    expect(prose.locator("code")).to_have_text("flight")
    expect(prose.locator("li")).to_have_count(2)
    for kept in ("<b>no</b>", "[bad](JavaScript:alert(1))", "[data](data:text/html,x)", "[rel](//evil.example)"):
        expect(prose).to_contain_text(kept)


NAMES = [
    "航班",
    "עברית",
    "العربية",
    "naïve",
    "a b",
    "x/../y",
    "#",
    "%41",
    "?x=1",
    "🛫🛬",
    "'\"<>",
    "日本語の長い名前" * 9,
    "\u202eevil",
    "constructor",
    "__proto__",
]


def test_names_in_every_script_are_linked_and_found(window, tmp_path):
    columns = tuple(Column(name, "", "string") for name in NAMES)
    nodes = [model(name, columns=columns) for name in NAMES]
    one = window(written(tmp_path, manifest(*nodes, model("reader", *(n.id for n in nodes)))))
    page = one.open("#/graph")
    expect(page.locator(".box")).to_have_count(len(NAMES) + 1)
    # The site writes out what would turn the direction of a line.
    for name in (name.replace("\u202e", r"\u202e") for name in NAMES):
        one.page.evaluate("(name) => { window.location.hash = headrace.hrefOf({ kind: 'table', name }); }", name)
        expect(page.locator("h1 bdi")).to_have_text(" ".join(name.split()))
        one.page.evaluate(
            "(name) => { window.location.hash = headrace.hrefOfColumn({ kind: 'table', name }, name); }", name
        )
        expect(page.locator(".crumbs")).to_contain_text(" ".join(name.split()))
        expect(page.locator("h1 bdi")).to_have_text(" ".join(name.split()))
    one.open("#/graph")
    one.shoot("names", whole=False)


@pytest.mark.nightly
def test_a_table_of_five_thousand_columns_opens_at_once(window, tmp_path):
    columns = tuple(Column(f"column_{i}", "What it is.", "string") for i in range(5000))
    one = window(
        written(tmp_path, manifest(source(columns=columns), model("wide", "source.ops.events", columns=columns)))
    )
    begin = time.monotonic()
    page = one.open("#/model/wide")
    assert time.monotonic() - begin < 5
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(200)
    page.get_by_role("button", name="Show all 5,000 columns").click()
    expect(rows).to_have_count(5000)
    page.keyboard.press("/")
    page.keyboard.type("column_4321")
    page.get_by_role("option", name="wide.column_4321").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("column_4321")


def test_a_model_that_does_not_compile_is_shown_with_its_mistakes(window, tmp_path):
    place = Location("models/daily.sql", 4, 2)
    found = Diagnostic("sql-syntax", "the SQL cannot be read", "Look there.", node="daily", location=place)
    broken = model("daily", "model.hourly", raw_sql="select from", sql="", broken=True)
    one = window(written(tmp_path, manifest(source(), hourly(), broken, found=(found,))))
    page = one.open("#/")
    expect(page.locator(".problems li")).to_contain_text("the SQL cannot be read")
    expect(page.locator(".box.bad")).to_contain_text("does not compile")
    page.locator(".problems").get_by_role("link", name="daily").click()
    expect(page.locator(".notice")).to_have_text("This does not compile. What could be found out is shown.")
    expect(page.locator(".pane pre").first).to_have_text("select from")
    one.shoot("broken")


def test_a_cycle_is_drawn(window, tmp_path):
    one = window(
        written(
            tmp_path,
            manifest(model("a", "model.c"), model("b", "model.a"), model("c", "model.b"), model("d", "model.d")),
        )
    )
    page = one.open("#/graph")
    expect(page.locator(".box")).to_have_count(4)
    expect(page.locator(".link")).to_have_count(4 + 2)
    page.locator(".box", has_text="b").first.click()
    one.open("#/model/d")
    one.open("#/graph?select=%2Ba")


def test_an_empty_project_has_pages(window, tmp_path):
    one = window(written(tmp_path, manifest()))
    expect(one.open("#/").locator("main")).to_contain_text("The project has no sources and no models.")
    one.open("#/graph")


def test_without_its_data_the_site_says_so(browser, tmp_path):
    site = written(tmp_path, manifest(model("a")))
    for path in (site.folder / "data").iterdir():
        path.unlink()
    page = browser.new_page()
    page.goto(f"{site.folder.as_uri()}/index.html")
    expect(page.locator("main")).to_contain_text("The data of this site cannot be read")
    page.close()


def big():
    rng = random.Random(3)
    columns = tuple(Column(f"c{i}", "", "string") for i in range(8))
    nodes = [source(f"s{i}", columns=columns) for i in range(60)]
    ids = [node.id for node in nodes]
    for i in range(1000):
        reads = {rng.choice(ids[-300:]) for _ in range(rng.choice((1, 1, 2, 3)))}
        made = model(f"m{i}", *sorted(reads), columns=columns, file=f"models/f{i % 25}/m{i}.sql", tags=(f"t{i % 9}",))
        nodes.append(made)
        ids.append(made.id)
    return manifest(*nodes)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    return written(tmp_path_factory.mktemp("big"), big())


@pytest.mark.nightly
def test_a_thousand_models_open_quickly_and_move_smoothly(window, thousand):
    one = window(thousand)
    page = one.open("#/graph")
    one.shoot("thousand", whole=False)
    drawn = page.evaluate("performance.getEntriesByType('navigation')[0].duration")
    ready = page.evaluate("performance.now()")
    # The aim is a second on an idle machine (benchmarks/docs.py); here there is room for a busy one.
    assert (drawn, ready) < (5000, 5000)
    frames = page.evaluate("""async () => {
        const canvas = document.querySelector(".canvas");
        canvas.setPointerCapture = () => {};
        canvas.hasPointerCapture = () => true;
        const fire = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, bubbles: true }));
        const times = [];
        for (const zoom of [0, 9]) {
            for (let i = 0; i < zoom; i += 1) canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -75, ctrlKey: true, clientX: 700, clientY: 400, bubbles: true, cancelable: true }));
            fire("pointerdown", 500, 300);
            for (let i = 0; i < 40; i += 1) {
                fire("pointermove", 500 + i * 5, 300 + i * 3);
                const begin = performance.now();
                await new Promise(requestAnimationFrame);
                times.push(performance.now() - begin);
            }
            fire("pointerup", 700, 420);
        }
        return times.sort((a, b) => a - b);
    }""")
    assert frames[len(frames) // 2] < 60


def test_a_thousand_models_fit_ten_megabytes(thousand):
    assert sum(path.stat().st_size for path in thousand.folder.rglob("*") if path.is_file()) < 10_000_000


@pytest.mark.nightly
def test_a_thousand_models_are_searched_and_narrowed(window, thousand):
    page = window(thousand).open("#/graph?select=2%2Bm500%2B2")
    assert 1 < page.locator(".box").count() < 200
    page.keyboard.press("/")
    page.keyboard.type("m999")
    page.get_by_role("option", name="m999 table").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("m999")
    expect(page.locator("#nodes a[aria-current]")).to_have_text("m999")


@pytest.mark.nightly
def test_a_node_on_the_canvas_is_put_in_the_light(window, thousand):
    page = window(thousand).open("#/graph")
    page.get_by_label("Group by").select_option("")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("canvas.far")).to_be_visible()
    expect(page.locator(".box")).to_have_count(0)
    place = page.evaluate("""() => {
        const frame = document.querySelector(".canvas").getBoundingClientRect();
        const { view, layout } = headrace.shown;
        const [left, middle] = layout.places.get(500);
        return [frame.left + view.x + (left + 100) * view.scale, frame.top + view.y + middle * view.scale];
    }""")
    page.mouse.click(*place)
    expect(page.locator(".info")).to_contain_text("above")
    expect(page.locator(".minimap")).to_be_hidden()
    page.get_by_role("button", name="Readable size").click()
    expect(page.locator(".box.chosen .name")).to_be_visible()
    expect(page.locator(".minimap")).to_be_visible()
    page.keyboard.press("Escape")


@pytest.mark.nightly
def test_a_node_out_of_sight_is_reached_with_the_keyboard(window, thousand):
    page = window(thousand).open("#/graph")
    page.get_by_role("button", name="Zoom in").click(click_count=12)
    page.wait_for_timeout(100)
    box = page.locator(".box").first
    box.focus()
    start = page.evaluate("document.activeElement.dataset.id")
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        for _ in range(6):
            page.keyboard.press(key)
    assert page.evaluate("document.activeElement.classList.contains('box')")
    assert page.evaluate("document.activeElement.isConnected")
    assert start is not None
