"""The site in a real chromium: it opens, searches, leads to the sources, and is fit for everyone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.compile.nodes.manifest import Manifest
from engine.compile.selection.previous_state import load_previous
from engine.compile.selection.select_nodes import select
from engine.docs.page_access import page_access
from engine.docs.serve import serving
from engine.docs.site.column_trace import Columns, ColumnSpot, impact, trace
from engine.docs.site.differences import differences
from engine.errors import UsageError
from tests.browser.conftest import DRAWN
from tests.docs import build
from tests.docs.build import written

PAGES = {
    "overview": "#/",
    "graph": "#/graph",
    "focus": "#/graph?focus=model.flights",
    "model": "#/model/departures_hourly",
    "table": "#/model/routes",
    "source": "#/source/ops.departures",
    "column": "#/column/model/routes/late_share",
    "rows": "#/column/model/carriers/long_delays",
    "field": "#/column/source/ops.departures/data.departure_delay",
    "macro": "#/macro/share",
    "runs": "#/runs",
    "run": "#/runs/0",
    "nothing": "#/model/nothing",
}


@pytest.mark.nightly_except("overview", "graph", "model", "column")
@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_from_the_file_system(window, flights, name):
    one = window(flights)
    page = one.open(PAGES[name])
    assert page.locator("main h1").count() == 1
    assert page.title().endswith(" · flights")
    one.shoot(f"{name}-light")


@pytest.fixture
def address(flights) -> Iterator[str]:
    with serving(flights.folder, page_access()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.link()
        server.shutdown()
        thread.join()


def test_the_site_opens_from_the_server_too(window, address):
    one = window(address)
    one.open()
    for where in PAGES.values():
        if where != "#/":
            assert one.turn(where).locator("main h1").count() == 1
    assert one.open(PAGES["column"]).locator("main h1").count() == 1


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def test_a_column_is_followed_to_its_source_by_clicks(window, flights, example):
    page = window(flights).open("#/")
    page.locator("#nodes").get_by_role("link", name="routes").click()
    page.get_by_role("region", name="Columns of routes").get_by_role("link", name="late_share", exact=True).click()
    steps = page.locator(".steps > li")
    expect(steps).to_have_count(3)
    expect(steps.nth(2)).to_contain_text("round(avg(case when f.departure_delay >= 60 then 1.0 else 0.0 end), 3)")
    steps.nth(0).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("data.departure_delay")
    lost = impact(Columns(example), ColumnSpot("source.ops.departures", "data.departure_delay"))
    assert lost.breaks
    assert lost.stops
    expect(page.locator(".notice")).to_contain_text(
        f"{counted(len(lost.breaks), 'model')} would no longer compile, "
        f"{counted(len(lost.stops), 'model')} below would stop with {'it' if len(lost.breaks) == 1 else 'them'}"
    )
    page.locator(".crumbs").get_by_role("link", name="ops.departures").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ops.departures")


def test_a_unit_test_that_fails_is_seen_with_its_model(window, flights):
    page = window(flights).open("#/model/departures_hourly")
    expect(page.locator(".badges")).to_contain_text("1 test failing")
    shown = page.get_by_role("heading", name="Unit tests").locator("..")
    expect(shown).to_contain_text("with a restart; expects rows and late.")
    expect(shown.locator("pre")).to_have_text("rows differ:\n  departures  expected 2, found 3")
    expect(page.locator(".box.bad")).to_contain_text("1 test failing")


KINDS = ("model.", "source.", "exposure.")


def nodes(example: Manifest) -> int:
    return len(example.models) + len(example.sources) + len(example.exposures)


def shown(example: Manifest, *selection: str) -> int:
    """So many nodes of the site are selected."""
    return sum(node.startswith(KINDS) for node in select(example, selection).nodes)


def test_the_search_finds_models_columns_and_selections(window, flights, example):
    page = window(flights).open("#/")
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search models")
    expect(box).to_be_focused()
    box.fill("dep")
    expect(page.get_by_role("option").first).to_contain_text("departures_hourly")
    expect(page.get_by_role("option", name="flights.departure_delay")).to_be_visible()
    box.press("ArrowDown")
    box.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("departures_hourly")
    box.fill("+routes,config.materialized:table")
    box.press("Enter")
    tables, all_ = shown(example, "+routes,config.materialized:table"), nodes(example)
    assert 1 < tables < all_
    expect(page.get_by_role("status")).to_have_text(f"{tables} of {all_} nodes")
    box.fill("registration of the air")
    expect(page.locator("#found li").first).to_contain_text("description: Registration of the aircraft.")
    box.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("tailnum")
    box.fill("long_delay_minutes")
    expect(page.locator("#found li").first).to_contain_text("SQL: ")
    box.fill("no text has these words")
    expect(page.locator("#found li")).to_have_text("Nothing is called that, and no text has it.")
    box.fill("nope:x")
    expect(page.locator("#found li")).to_contain_text("unknown selection method 'nope:' here")
    box.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_the_search_ranks_names_first_and_says_why_they_fit(window, flights):
    page = window(flights).open("#/")
    box = page.get_by_role("combobox", name="Search models")
    box.fill("departurs_hourli")
    expect(page.locator("#found li").first).to_have_text("departures_hourlystreaming table · similar name")
    box.fill("dh")
    expect(page.locator("#found li").first).to_contain_text("initials")
    box.fill("late_share")
    expect(page.get_by_role("option", name="routes.late_share").locator("mark")).to_have_text("late_share")
    box.fill("flights")
    expect(page.locator("#found li", has_text="SQL: ").first).to_be_visible()
    notes = page.locator("#found li .under").all_inner_texts()
    texts = [note.startswith(("SQL: ", "description: ", "test: ", "unit test: ")) for note in notes]
    named = texts.index(True)
    assert named > 0
    assert not any(texts[:named])


def test_the_path_of_a_column_fits_a_window_of_1280_pixels(window, flights):
    page = window(flights, width=1280, height=800).open("#/column/model/routes/late_share")
    frame = page.get_by_role("region", name="Path of the column")
    expect(frame.locator(".stop")).to_have_count(3)
    assert frame.evaluate("(element) => element.scrollWidth - element.clientWidth") <= 0
    page.goto(page.url.split("#")[0] + "#/")
    streams = page.get_by_role("region", name="Streams")
    expect(streams).to_be_visible()
    assert streams.evaluate("(element) => element.scrollWidth - element.clientWidth") <= 0


def test_a_column_is_followed_in_the_graph(window, flights):
    page = window(flights).open("#/column/model/routes/late_share")
    page.get_by_role("link", name="Show in the graph").click()
    card = page.locator(".info")
    expect(card).to_contain_text("routes.late_share")
    expect(card).to_contain_text("round(avg(case when f.departure_delay >= 60 then 1.0 else 0.0 end), 3)")
    expect(page.locator("path.flowing.value")).not_to_have_count(0)
    expect(page.locator("path.flowing.rows")).not_to_have_count(0)
    expect(page.locator(".flows .flowing.value title").first).to_contain_text(" = ")
    page.locator('.list .row[aria-label^="flights.departure_delay"]').focus()
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading")).to_contain_text("departure_delay")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(page.locator(".flows .flowing")).to_have_count(0)


def test_the_card_lies_beside_the_graph_and_the_light_reaches_some_steps(window, flights, example):
    page = window(flights).open("#/graph?focus=model.flights")
    card, canvas = page.locator(".info"), page.locator(".canvas")
    expect(card).to_be_visible()
    lit = page.locator(".box.lit")
    expect(lit).to_have_count(shown(example, "+flights+"))
    left, right = canvas.bounding_box(), card.bounding_box()
    assert left["x"] + left["width"] <= right["x"] + 1
    page.get_by_label("Downstream").select_option("0")
    expect(lit).to_have_count(shown(example, "+flights"))
    page.get_by_label("Upstream").select_option("0")
    page.get_by_label("Downstream").select_option("1")
    expect(lit).to_have_count(shown(example, "flights+1"))
    card.get_by_role("link", name="Show only these").click()
    expect(page.locator(".box")).to_have_count(shown(example, "flights+1"))


def test_folders_are_groups_that_open_and_collapse(window, flights, example):
    page = window(flights).open("#/graph")
    page.get_by_label("Group by").select_option("folder")
    group = page.locator(".box.group", has_text="staging")
    expect(group).to_contain_text(f"{shown(example, 'path:models/staging')} nodes")
    expect(page.get_by_role("status")).to_contain_text("groups collapsed")
    before = page.locator(".box").count()
    group.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".info")).to_contain_text("Open this group")
    page.keyboard.press("Enter")
    expect(group).to_have_count(0)
    expect(page.locator(".box")).to_have_count(before - 1 + shown(example, "path:models/staging"))
    page.get_by_role("button", name="Collapse staging").first.click()
    expect(group).to_have_count(1)
    # The worst state of its nodes is the group's.
    expect(page.locator(".box.group.bad", has_text="marts")).to_contain_text("failing")


@pytest.mark.nightly
def test_the_search_keeps_the_keyboard_while_a_page_is_read(window, flights):
    page = window(flights).open("#/")
    page.evaluate(
        """() => new Promise((done) => {
          const turn = () => { document.querySelector(".search input").focus(); done(); };
          window.addEventListener("hashchange", turn, { once: true });
          window.location.hash = "#/model/flights";
        })"""
    )
    expect(page.get_by_role("heading", level=1)).to_have_text("flights")
    expect(page.locator(".search input")).to_be_focused()


def test_the_graph_is_narrowed_and_put_in_the_light(window, flights, example):
    one = window(flights)
    page = one.open("#/graph")
    boxes = page.locator(".box")
    expect(boxes).to_have_count(nodes(example))
    page.locator(".box", has_text="long_delays").click()
    above, below = shown(example, "+long_delays") - 1, shown(example, "long_delays+") - 1
    expect(page.locator(".box.lit")).to_have_count(above + 1 + below)
    panel = page.locator(".info")
    expect(panel).to_contain_text(f"{above} above, {below} below")
    one.shoot("graph-light", whole=False)
    panel.get_by_role("link", name="Show only these").click()
    expect(boxes).to_have_count(above + 1 + below)
    page.get_by_role("textbox", name="Selection").fill("tag:hourly")
    page.get_by_role("button", name="Select").click()
    expect(boxes).to_have_count(shown(example, "tag:hourly"))
    page.get_by_role("textbox", name="Selection").fill("")
    page.get_by_label("Any folder").select_option("staging")
    expect(boxes).to_have_count(shown(example, "path:models/staging"))
    page.get_by_label("Any folder").select_option("")
    page.get_by_label("Any tag").select_option("hourly")
    expect(boxes).to_have_count(shown(example, "tag:hourly"))
    page.get_by_label("Any tag").select_option("")
    page.get_by_label("Views").uncheck()
    views = shown(example, "config.materialized:view") + shown(example, "config.materialized:ephemeral")
    assert views
    expect(page.get_by_role("status")).to_have_text(f"{nodes(example) - views} of {nodes(example)} nodes")
    page.get_by_role("button", name="Show all").click()
    page.locator(".box", has_text="carriers").click()
    page.locator(".box", has_text="carriers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("carriers")


def test_the_graph_is_walked_with_the_keyboard(window, flights):
    page = window(flights).open("#/graph")

    def at() -> str:
        return page.evaluate("document.activeElement.getAttribute('aria-label') || ''").split(",")[0]

    page.locator(".canvas").focus()
    before = page.locator(".world").get_attribute("transform")
    page.keyboard.press("+")
    page.wait_for_function(
        "before => document.querySelector('.world').getAttribute('transform') !== before", arg=before
    )
    page.keyboard.press("0")
    page.keyboard.press("Tab")
    page.locator(".box", has_text="ops.departures").focus()
    page.keyboard.press("ArrowRight")
    assert at() in {"flights", "departures_hourly"}
    page.locator(".box", has_text="long_delays").focus()
    page.keyboard.press("ArrowLeft")
    assert at() == "flights"
    page.keyboard.press("Enter")
    expect(page.locator(".info")).to_contain_text("flights")
    page.keyboard.press("Escape")
    expect(page.locator(".info")).to_be_hidden()


def test_dragging_moves_the_graph_and_opens_nothing(window, flights):
    page = window(flights).open("#/graph")
    box = page.locator(".box", has_text="long_delays").bounding_box()
    before = page.locator(".world").get_attribute("transform")
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 80, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "before => document.querySelector('.world').getAttribute('transform') !== before", arg=before
    )
    moved = page.locator(".box", has_text="long_delays").bounding_box()
    assert abs(moved["x"] - box["x"] - 100) < 2
    expect(page.locator(".info")).to_be_hidden()


TRACES = """async () => {
    const index = await headrace.need("index");
    const columns = await headrace.columnsOf(index, headrace.graphOf(index));
    const name = ([node, column]) => [index.nodes[node].id, column];
    return columns.records.flatMap((record, node) => record.columns.map(([column]) => {
        const { steps, deciders } = headrace.trace(columns, [node, column]);
        const lost = headrace.impact(columns, [node, column]);
        const ids = (numbers) => numbers.map((number) => index.nodes[number].id);
        const rows = (found) => found.map((d) => [index.nodes[d.model].id, ...name(d.spot), d.kind]);
        return {
            start: name([node, column]),
            steps: steps.map((step) => [...name(step.spot), step.type, step.sql, step.origins.map(name)]),
            deciders: rows(deciders),
            values: lost.values.map(name), rows: rows(lost.rows), gone: lost.gone.map(name),
            breaks: ids(lost.breaks), stops: ids(lost.stops), tests: lost.tests.sort(),
        };
    }));
}"""


def test_every_column_leads_where_the_compiler_says(window, flights, example):
    found = window(flights).open("#/").evaluate(TRACES)
    columns = Columns(example)
    assert len(found) == sum(len(node.columns) for node in (*example.sources, *example.models))
    assert sum("late" in told["tests"] for told in found) > 1
    for told in found:
        spot = ColumnSpot(*told["start"])
        assert told == expected(columns, spot), spot


def expected(columns: Columns, spot: ColumnSpot) -> dict[str, object]:
    way, lost = trace(columns, spot), impact(columns, spot)

    def name(one: ColumnSpot) -> list[str]:
        return [one.node, one.column]

    def rows(deciders) -> list[list[str]]:
        return [[d.model, *name(d.spot), d.kind] for d in deciders]

    return {
        "start": name(spot),
        "steps": [[*name(s.spot), s.type or "", s.sql, [name(o) for o in s.origins]] for s in way.steps],
        "deciders": rows(way.deciders),
        "values": [name(s) for s in lost.values],
        "rows": rows(lost.rows),
        "gone": [name(s) for s in lost.gone],
        "breaks": list(lost.breaks),
        "stops": list(lost.stops),
        "tests": sorted(columns.manifest.nodes[t].name for t in lost.tests),
    }


def test_the_path_on_the_page_is_the_compilers(window, flights, example):
    """What a reader sees of every column of a model: each step, its text and its origins."""
    one = window(flights)
    one.open("#/")
    columns = Columns(example)
    for model in example.models:
        for column in model.columns:
            one.page.goto(f"{one.start}index.html#/column/model/{model.name}/{column.name}")
            expect(one.page.get_by_role("heading", level=1)).to_contain_text(column.name)
            expect(one.page.locator(".crumbs")).to_contain_text(model.name)
            way = trace(columns, ColumnSpot(model.id, column.name))
            shown = one.page.locator(".steps > li > a.origin").all_inner_texts()
            # Each origin stands before what is made of it.
            steps = {f"{example.nodes[s.spot.node].name}.{s.spot.column}": s for s in way.steps}
            assert sorted(shown) == sorted(steps)
            assert shown[-1] == f"{model.name}.{column.name}"
            for place, name in enumerate(shown):
                assert all(shown.index(f"{example.nodes[o.node].name}.{o.column}") < place for o in steps[name].origins)
            texts = one.page.locator(".steps .expression").all_inner_texts()
            assert texts == [steps[name].sql for name in shown if steps[name].spot.node.startswith("model.")]


SELECTIONS = [
    "flights", "marts.routes", "marts", "staging.*", "*", "*s", "f*", "?*", "r[ao]*", "+routes", "1+routes", "routes+", "flights+1",
    "@flights", "@busiest_hours", "2+carriers", "+carriers,tag:mart", "tag:hourly", "tag:*", "tag:mart tag:hourly", "path:models/marts",
    "path:models/marts/", "./models", "path:models/*/r*.sql", "file:routes.sql", "source:ops", "source:ops.departures+",
    "source:reference.*+1", "config.materialized:table", "config.materialized:view", "config.schema:flights",
    "resource_type:source", "resource_type:model", "name:flights", "flights routes", "flights,routes", "nothing", "+long_delays+",
    "config.output_mode:append", "routes.sql", "models/marts/routes.sql", "models/marts/",
]  # fmt: skip


def test_selections_are_the_command_lines(window, flights, example):
    """Of sources, models and exposures: data tests, which `@` may lead through, are not nodes of the site."""
    page = window(flights).open("#/")
    script = """async (texts) => {
        const index = await headrace.need("index");
        const graph = headrace.graphOf(index);
        return texts.map((text) => {
            try { return [...headrace.select(graph, text)].map((number) => index.nodes[number].id).sort(); }
            catch (error) { return error.constructor.name; }
        });
    }"""
    known = [sorted(i for i in select(example, [text]).nodes if i.startswith(KINDS)) for text in SELECTIONS]
    assert page.evaluate(script, SELECTIONS) == known
    assert sum(map(len, known)) > 80
    for wrong in ("methd:x", "+"):
        with pytest.raises(UsageError):
            select(example, [wrong])
        assert page.evaluate(script, [wrong]) == ["SelectionError"]


AXE = """(rules) => axe.run({ preload: false, resultTypes: ["violations"], ...(rules ? { runOnly: rules } : {}) }).then(
    ({ passes, violations }) => [passes.length, violations
        .filter((found) => ["serious", "critical"].includes(found.impact))
        .map((found) => [found.id, found.nodes[0].html])])"""
COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.mark.nightly_except("1440-light-None")
@pytest.mark.parametrize(
    ("width", "scheme", "rules"), [(1440, "light", None), (390, "light", None), (390, "dark", COLOURS)]
)
def test_no_serious_finding_about_accessibility(window, flights, width, scheme, rules):
    """By all rules of axe in light; in dark by those that look at colours, as nothing else differs.

    Colours do not depend on the width: the narrow window has all of them, and those of the cards.
    """
    one = window(flights, width=width, height=844, color_scheme=scheme, bypass_csp=True)
    page = one.open("#/nothing/at/all")
    page.evaluate(AXE_SCRIPT)
    for name, where in PAGES.items():
        one.turn(where)
        passed, found = page.evaluate(AXE, rules)
        assert (passed > (0 if rules else 20), found) == (True, []), name
        if name in {"overview", "graph", "model", "column"}:
            one.shoot(f"{name}-{scheme}-{width}")


@pytest.mark.nightly
def test_axe_finds_what_is_wrong(window, flights):
    one = window(flights, color_scheme="dark", bypass_csp=True)
    page = one.open("#/model/routes")
    page.evaluate(AXE_SCRIPT)
    page.evaluate("""() => {
        document.querySelector("h1").style.color = "#333";
        document.querySelector("#tools input").removeAttribute("aria-label");
        document.querySelector("#tools input").removeAttribute("placeholder");
    }""")
    assert {rule for rule, _ in page.evaluate(AXE, None)[1]} >= {"color-contrast"}
    assert [rule for rule, _ in page.evaluate(AXE, COLOURS)[1]] == ["color-contrast"]


def test_every_page_fits_a_phone(window, flights):
    one = window(flights, width=360, height=740)
    page = one.open("#/nothing/at/all")
    for name, where in PAGES.items():
        one.turn(where)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    page.get_by_text("Sources and models").first.click()
    expect(page.locator("#nodes").get_by_role("link", name="routes")).to_be_visible()


def test_a_page_prints_what_it_holds(window, flights):
    one = window(flights)
    page = one.open("#/model/departures_hourly")
    page.emulate_media(media="print")
    expect(page.get_by_role("searchbox")).to_have_count(0)
    assert not page.locator("#side").is_visible()
    for pane in page.locator(".pane pre").all():
        assert pane.is_visible()
        assert pane.locator(".t-keyword").count() > 2
    one.shoot("model-print")
    page.evaluate("addEventListener('afterprint', () => { window.printed = true; })")
    page.evaluate("""addEventListener("beforeprint", () => {
        window.paper = document.querySelector(".graph").getAttribute("viewBox");
    })""")
    assert len(page.pdf()) > 10_000
    page.wait_for_function("window.printed")
    # All three boxes and the gaps between them are on the paper, and the screen is as it was.
    assert float(page.evaluate("window.paper").split()[2]) > 3 * 224
    assert page.locator(".graph").first.get_attribute("viewBox") is None
    assert "scale" in page.locator(".world").first.get_attribute("transform")


@pytest.mark.nightly
def test_a_path_keeps_its_form_on_paper(window, flights):
    page = window(flights).open("#/column/model/routes/late_share")
    page.evaluate("""addEventListener("beforeprint", () => {
        const { style } = document.querySelector(".flow");
        window.paper = [parseFloat(style.width), Number(style.zoom)];
    })""")
    assert len(page.pdf()) > 10_000
    width, zoom = page.evaluate("window.paper")
    assert (width > 3 * 272, 0.4 < zoom < 1) == (True, True)
    page.wait_for_function("document.querySelector('.flow').style.zoom === ''")


def test_colours_can_be_chosen(window, flights):
    page = window(flights, color_scheme="light").open("#/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.locator("#theme")
    button.click()
    assert page.evaluate(ground) == light
    button.click()
    assert button.inner_text() == "Theme: dark"
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.wait_for_selector(DRAWN, state="attached")
    assert page.evaluate(ground) == dark


def test_the_policy_is_in_force(browser, flights):
    page = browser.new_page()
    page.goto(f"{flights.folder.as_uri()}/index.html")
    page.wait_for_selector(DRAWN, state="attached")
    tried = page.evaluate("""() => {
        const refused = [];
        const attempt = (name, action) => { try { action(); } catch { refused.push(name); } };
        attempt("html", () => { document.body.innerHTML = "<b>x</b>"; });
        attempt("script", () => { document.createElement("script").src = "data/index.js"; });
        attempt("policy", () => { trustedTypes.createPolicy("other", {}); });
        attempt("file", () => { headrace.need("../../x"); });
        const script = document.createElement("script");
        attempt("text", () => { script.textContent = "window.ran = true"; document.head.append(script); });
        return [refused, window.ran];
    }""")
    assert tried == [["html", "script", "policy", "file", "text"], None]
    page.close()


def test_runs_that_wrote_a_table_are_listed(window, flights):
    page = window(flights).open("#/model/departures_hourly")
    runs = page.get_by_role("region", name="Runs that wrote this table")
    expect(runs.locator("tbody tr")).to_have_count(1)


def test_long_names_have_two_lines_and_fit_a_phone(window, tmp_path):
    names = [f"data_quality__medical_claim_{end}" for end in ("line", "place")]
    folder = f"models/{'claims_preprocessing/' * 4}"
    nodes = [build.model(name, file=f"{folder}{name}.sql") for name in names]
    one = window(written(tmp_path, build.manifest(*nodes)), width=390)
    page = one.open("#/graph")
    lines = page.locator(".box .name").first.locator("tspan")
    expect(lines).to_have_text(["data_quality__", "medical_claim_line"])
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_rows_and_their_profile_are_shown(window, flights):
    page = window(flights).open("#/model/routes")
    rows = page.get_by_role("region", name="Rows", exact=True).locator("tbody tr")
    expect(rows).to_have_text(["ATL17215[0.25, 0.5]", "ORDNULL[]"])
    profile = page.get_by_role("region", name="Profile").locator("tbody tr")
    expect(profile).to_have_text(["destination0101ABQXNA", "flights190117283", "shares0" + "\N{EN DASH}" * 3])
    expect(page.get_by_role("heading", name="Profile of 184 rows")).to_be_visible()
    expect(page.get_by_text("Left out, as they may hold personal data: pilot")).to_be_visible()


def test_a_test_shows_how_its_last_runs_ended(window, flights):
    page = window(flights).open("#/model/departures_hourly")
    expect(page.get_by_role("img", name="last 3 runs: 3 pass").first).to_be_visible()


def test_a_run_shows_when_its_nodes_waited_and_ran(window, flights, example):
    page = window(flights).open("#/runs")
    page.get_by_role("region", name="Runs").get_by_role("link").first.click()
    rows = page.get_by_role("region", name="Timeline of the run").locator("tbody tr")
    expect(rows).to_have_count(len(example.models) + len(example.tests) + 1)
    hourly = rows.filter(has_text="departures_hourly").first
    expect(hourly).to_contain_text("828")
    expect(hourly).to_contain_text("2.0 s")
    expect(page.locator(".gantt .ran.critical")).not_to_have_count(0)
    entry = page.locator(".log > li").filter(has_text="lake.flights.departures_hourly").first
    expect(entry).to_contain_text("rows in: 828, rows out: 348, late rows: 7, micro-batches: 8")
    expect(entry).to_contain_text("read flights")
    expect(entry.get_by_role("link", name="flights")).to_have_attribute("href", "#/model/flights")


def test_differences_are_seen_on_the_graph_and_on_each_page(window, example, tmp_path):
    write_artifacts(example, tmp_path / "earlier")
    stored = tmp_path / "earlier" / "manifest.json"
    earlier = json.loads(stored.read_text())
    earlier["nodes"]["model.flights.routes"]["raw_code"] = "select 1 as one"
    del earlier["nodes"]["model.flights.routes"]["columns"]["late_share"]
    stored.write_text(json.dumps(earlier))
    now = replace(
        example,
        nodes={n: m for n, m in example.nodes.items() if n != "exposure.departures_board"},
        order=tuple(n for n in example.order if n != "exposure.departures_board"),
    )
    found = differences(now, load_previous(tmp_path / "earlier", must_exist=True))
    page = window(written(tmp_path / "docs", now, differences=found)).open("#/")
    page.get_by_role("link", name="Changes").click()
    expect(page.locator(".box.changed")).to_contain_text("routes")
    expect(page.locator(".box.removed")).to_contain_text("departures_board")
    expect(page.locator(".problems li.changed")).to_contain_text("Columns addedlate_share")
    expect(page.locator(".diff .minus").first).to_contain_text("select 1 as one")
    page.locator("#nodes").get_by_role("link", name="routes").click()
    expect(page.get_by_role("heading", name="Change", exact=True)).to_be_visible()
