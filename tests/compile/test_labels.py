"""Tags, meta and descriptions of sources, tests, expectations and selectors are more than accepted: they have an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api.requests import Selection, choose
from engine.compile.artifacts.dbt_manifest import About, node_dict
from engine.compile.selection.select_nodes import select
from engine.docs.site.page_header import model_words
from engine.errors import ProjectError, UsageError
from tests.project.small_projects import ORDERS, clean, findings, line, only

SOURCES = """\
version: 2
sources:
  - name: shop
    description: The web shop.
    tags: [raw, shop]
    meta: {owner: sales, level: 1}
    tables:
      - name: orders
        format: json
        path: landing/orders
        schema: id string, ts timestamp
        tags: [orders, raw]
        meta: {level: 2}
        columns: {id: {tests: [{not_null: {tags: [slow], description: As agreed., meta: {by: us}}}]}}
      - name: customers
        format: csv
        path: landing/customers
        schema: id string
"""
FILES: dict[str, str | bytes] = {"sources/shop.yml": SOURCES, "models/a.sql": ORDERS}
UNIT_TEST = """\
unit_tests:
  - name: t
    model: a
    description: One order.
    tags: [slow]
    meta: {by: us}
    config: {tags: [late], meta: {of: here}}
    given: {shop.orders: [{id: x}]}
    expect: [{id: x}]
"""


def test_tags_of_a_source_select_its_tables_with_their_tests(tmp_path: Path) -> None:
    manifest = clean(tmp_path, FILES)
    test = "test.source_not_null_shop_orders_id.b73f418663"
    assert select(manifest, ["tag:shop"]).nodes == ["source.shop.customers", "source.shop.orders", test]
    assert select(manifest, ["tag:orders"]).nodes == ["source.shop.orders", test]
    assert select(manifest, ["tag:orders+"]).nodes == ["source.shop.orders", "model.a", test]
    assert select(manifest, ["tag:slow"]).nodes == [test]
    assert manifest.tests[0].tags == ("raw", "shop", "orders", "slow")


def test_manifest_json_has_what_is_said_about_a_source(tmp_path: Path) -> None:
    manifest = clean(tmp_path, FILES)
    record = node_dict(manifest.nodes["source.shop.orders"], About("shop"))
    assert record["source_description"] == "The web shop."
    assert record["tags"] == record["config"]["tags"] == ["raw", "shop", "orders"]
    assert record["config"]["meta"] == {"owner": "sales", "level": 2}
    assert record["meta"].items() >= {"owner": "sales", "level": 2}.items()
    test = node_dict(manifest.tests[0], About("shop"))
    assert (test["description"], test["meta"]) == ("As agreed.", {"by": "us"})


def test_the_config_of_a_unit_test_adds_to_what_is_beside_it(tmp_path: Path) -> None:
    (test,) = clean(tmp_path, {**FILES, "tests/t.yml": UNIT_TEST}).unit_tests
    assert (test.tags, test.meta) == (("slow", "late"), {"by": "us", "of": "here"})
    assert node_dict(test, About("shop"))["config"]["meta"].items() >= {"by": "us", "of": "here"}.items()


def test_a_unit_test_may_be_disabled_in_its_config_whose_keys_are_checked(tmp_path: Path) -> None:
    disabled = UNIT_TEST.replace("config: {", "config: {enabled: false, ")
    assert clean(tmp_path, {**FILES, "tests/t.yml": disabled}).unit_tests == ()
    found = only(findings(tmp_path, {**FILES, "tests/t.yml": UNIT_TEST.replace("config: {", "config: {bogus: 1, ")}))
    assert line(found) == "unknown-key tests/t.yml:7:14 the config of a unit test has no key 'bogus'"


def test_the_description_of_an_expectation_is_shown(tmp_path: Path) -> None:
    header = "/*---\nexpectations: [{name: named, check: id <> '', description: Ids are given by the shop.}]\n---*/\n"
    model = clean(tmp_path, {**FILES, "models/a.sql": header + ORDERS}).model("a")
    plain = clean(
        tmp_path, {**FILES, "models/a.sql": header.replace(", description: Ids are given by the shop.", "") + ORDERS}
    )
    assert "Ids are given by the shop." in " ".join(detail.text for detail in model_words(model))
    assert node_dict(model, About("shop"))["config"]["expectations"][0]["description"] == "Ids are given by the shop."
    assert model.fingerprint == plain.model("a").fingerprint


def test_a_singular_test_is_configured_like_a_generic_one(tmp_path: Path) -> None:
    text = "{{ config(name='no_ids', meta={'by': 'us'}, description='As agreed.') }}\nselect * from {{ ref('a') }} where id is null\n"
    (test,) = [t for t in clean(tmp_path, {**FILES, "tests/ids.sql": text}).tests if t.kind == "singular"]
    assert (test.name, test.meta, test.description) == ("no_ids", {"by": "us"}, "As agreed.")
    found = only(findings(tmp_path, {**FILES, "tests/ids.sql": text.replace("meta=", "mta=")}))
    assert line(found) == "unknown-key tests/ids.sql:1:1 the config of a test has no key 'mta'"
    assert found.hint == "Did you mean 'meta'?"


@pytest.mark.parametrize("file", ["sources/shop.yml", "tests/t.yml"])
def test_a_version_of_the_form_is_that_of_dbt(tmp_path: Path, file: str) -> None:
    text = {"sources/shop.yml": SOURCES, "tests/t.yml": f"version: 2\n{UNIT_TEST}"}[file]
    clean(tmp_path, {**FILES, file: text})
    found = only(findings(tmp_path, {**FILES, file: text.replace("version: 2", "version: 3")}))
    assert line(found) == f"bad-value {file}:1:10 'version' cannot be 3"


def test_a_source_has_settings_for_targets_that_exist(tmp_path: Path) -> None:
    text = SOURCES.replace("tags: [orders, raw]", "targets: {dve: {path: other}}")
    found = only(findings(tmp_path, {**FILES, "sources/shop.yml": text}))
    assert line(found) == "unknown-target sources/shop.yml:12:19 target 'dve' not found"
    assert found.hint == "Did you mean 'dev'?"


def test_a_window_that_is_a_number_is_not_a_window(tmp_path: Path) -> None:
    found = only(findings(tmp_path, {**FILES, "models/a.sql": f"/*---\nwindows: {{hour: 5}}\n---*/\n{ORDERS}"}))
    assert line(found) == "window-syntax models/a.sql:2:17 '5' is not a window"


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{rows: [{id: x}], csv: id}", "setting-conflict tests/t.yml:9:31 'rows' and 'csv' exclude each other"),
        (
            "{ordered: true, quarantined: 0}",
            "setting-needs tests/t.yml:9:14 'ordered' needs the rows that are expected",
        ),
    ],
)
def test_what_is_expected_is_given_once(tmp_path: Path, expect: str, message: str) -> None:
    text = UNIT_TEST.replace("[{id: x}]\n", f"{expect}\n").replace(
        "{shop.orders: " + expect + "\n", "{shop.orders: [{id: x}]}\n"
    )
    assert line(only(findings(tmp_path, {**FILES, "tests/t.yml": text}))) == message


def test_an_ephemeral_model_has_no_plan_to_show(tmp_path: Path) -> None:
    text = f"/*---\nmaterialized: ephemeral\nexplain: true\n---*/\n{ORDERS}"
    found = only(findings(tmp_path, {**FILES, "models/a.sql": text}))
    assert (
        line(found) == "bad-value models/a.sql:3:1 'explain' does not apply to an ephemeral model, which has no table"
    )


SELECTORS = """\
selectors:
  - {name: raw, description: What comes in, definition: 'tag:raw'}
  - {name: orders, definition: 'tag:orders', default: true}
"""


def chosen(root: Path, selection: Selection) -> tuple[str | None, list[str]]:
    choice = choose(clean(root, FILES), selection, root, root / "target")
    return choice.selector, choice.nodes


@pytest.mark.slow
def test_the_default_selector_counts_where_nothing_is_selected(tmp_path: Path) -> None:
    (tmp_path / "selectors.yml").write_text(SELECTORS)
    named, nodes = chosen(tmp_path, Selection())
    assert (named, nodes[0], len(nodes)) == ("orders", "source.shop.orders", 2)
    assert chosen(tmp_path, Selection(select=["a"])) == (None, ["model.a"])
    assert "model.a" in chosen(tmp_path, Selection(exclude=["tag:orders"]))[1]
    assert chosen(tmp_path, Selection(selector="raw"))[0] is None
    (tmp_path / "selectors.yml").unlink()
    assert "model.a" in chosen(tmp_path, Selection())[1]


def test_descriptions_of_selectors_help_to_find_one(tmp_path: Path) -> None:
    (tmp_path / "selectors.yml").write_text(SELECTORS)
    with pytest.raises(UsageError) as caught:
        chosen(tmp_path, Selection(selector="incoming"))
    assert caught.value.diagnostic.hint == "Known: orders, raw. (raw: What comes in)"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("definition: 'tag:raw'", "definition: 'tag:raw', default: true", "3:55: error: 'raw' and 'orders' are both the default selector"),
        ("name: raw", "name: orders", "3:12: error: two selectors have the name 'orders'"),
        ("default: true", "defualt: true", "3:46: error: a selector has no key 'defualt'"),
        ("name: raw, ", "", "2:5: error: a selector needs 'name' and 'definition'"),
        ("selectors:", "selector:", "1:1: error: selectors.yml has no key 'selector'"),
    ],
)  # fmt: skip
def test_a_selector_file_is_checked_in_whole(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "selectors.yml").write_text(SELECTORS.replace(old, new))
    with pytest.raises(ProjectError) as caught:
        chosen(tmp_path, Selection())
    assert message in str(caught.value)
