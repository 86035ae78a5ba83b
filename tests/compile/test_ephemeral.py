"""Ephemeral models: their SQL stands inside that of the models that read them, with its streams."""

from __future__ import annotations

import pytest

from tests.project.small_projects import clean, findings, only, sql

CLEAN = sql("""
    /*---
    materialized: ephemeral
    streams: {shop.orders: {watermark: ts delay 10 minutes}}
    ---*/
    select id, ts, amount * 2 as doubled from {{ source('shop', 'orders') }} where amount > 0
""")
COUNTS = sql("""
    /*---
    streams: [cleaned]
    windows: {hour: "tumbling(ts, 1 hour)"}
    ---*/
    select hour.start as at, sum(cleaned.doubled) as doubled from {{ ref('cleaned') }} group by hour
""")
FILES = {"models/cleaned.sql": CLEAN, "models/counts.sql": COUNTS}


def test_the_text_the_inputs_and_the_lineage_of_a_streamed_one(tmp_path):
    manifest = clean(tmp_path, FILES)
    cleaned, counts = manifest.model("cleaned"), manifest.model("counts")
    assert counts.sql.split("from ", 1)[1] == (
        "(\nselect id, ts, amount * 2 as doubled from `__cleaned__shop__orders` AS `orders` where amount > 0\n) "
        "AS `cleaned` group by window(ts, '1 hours')"
    )
    (item,) = counts.inputs
    assert (item.node, item.view, item.stream, item.through) == (
        "source.shop.orders", "`__cleaned__shop__orders`", True, "cleaned",
    )  # fmt: skip
    assert item.watermark is not None
    assert item.watermark.column == "ts"
    assert counts.depends_on == ("model.cleaned",)
    assert cleaned.depends_on == ("source.shop.orders",)
    assert [(o.node, o.column) for o in counts.columns[1].origins] == [("model.cleaned", "doubled")]
    assert [(o.node, o.column) for o in cleaned.columns[2].origins] == [("source.shop.orders", "amount")]
    assert (counts.stateful, cleaned.streaming, cleaned.in_catalog) == (True, False, False)
    assert manifest.order.index("model.cleaned") < manifest.order.index("model.counts")


@pytest.mark.slow
def test_its_meaning_is_part_of_that_of_its_readers(tmp_path):
    before = clean(tmp_path, FILES).model("counts").fingerprint
    assert clean(tmp_path, {"models/cleaned.sql": CLEAN + "-- a comment\n"}).model("counts").fingerprint == before
    changed = {"models/cleaned.sql": CLEAN.replace("> 0", "> 1")}
    assert clean(tmp_path, changed).model("counts").fingerprint != before


def test_one_inside_another(tmp_path):
    outer = "/*---\nmaterialized: ephemeral\nstreams: [cleaned]\n---*/\nselect id, doubled from {{ ref('cleaned') }}\n"
    reader = "/*---\nstreams: [outside]\n---*/\nselect o.id from {{ ref('outside') }} o\n"
    manifest = clean(tmp_path, {**FILES, "models/outside.sql": outer, "models/reader.sql": reader})
    model = manifest.model("reader")
    assert [(i.name, i.through) for i in model.inputs] == [("shop.orders", "cleaned")]
    assert model.sql.count("(\nselect") == 2
    assert model.sql.endswith(") o")


def test_in_a_batch_model_and_in_a_view(tmp_path):
    files = {
        "models/people.sql": "select * from {{ source('shop', 'customers') }}",
        "models/named.sql": "/*---\nmaterialized: ephemeral\n---*/\nselect id, upper(name) as name from {{ ref('people') }}",
        "models/seen.sql": "/*---\nmaterialized: view\n---*/\nselect name from {{ ref('named') }} where named.id > 'a'",
    }
    seen = clean(tmp_path, files).model("seen")
    assert seen.sql == (
        "select name from (\nselect id, upper(name) as name from `lake`.`main`.`people`\n) AS `named` where named.id > 'a'"
    )


READERS = [
    ("select id from {{ ref('cleaned') }}",
     "stream-unlisted models/b.sql:1:16 'cleaned' is ephemeral and reads streams, but is not listed as a stream"),
    ("/*---\nstreams: {cleaned: {watermark: ts delay 1 hour}}\n---*/\nselect id from {{ ref('cleaned') }}",
     "bad-value models/b.sql:2:11 'watermark' cannot be set for the ephemeral model 'cleaned'"),
    ("/*---\nstreams: [still]\n---*/\nselect id from {{ ref('still') }}",
     "stream-not-streamable models/b.sql:2:11 'still' is listed as a stream, but is ephemeral and reads none"),
    ("/*---\nmaterialized: view\n---*/\nselect id from {{ ref('still') }}",
     "bad-value models/b.sql:4:16 a view cannot read the files of source 'shop.customers'"),
    ("/*---\nmaterialized: ephemeral\n---*/\nselect * from {{ this }}",
     "bad-value models/b.sql:4:15 an ephemeral model has no table of its own ({{ this }})"),
    ("/*---\ncolumns: {id: {tests: [{relationships: {to: still, field: id}}]}}\n---*/\nselect id from {{ ref('still') }}",
     "bad-value models/b.sql:2:25 the test 'relationships' reads the ephemeral model 'still', which has no table"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "expected"), READERS)
def test_how_it_cannot_be_read(tmp_path, reader, expected):
    still = "/*---\nmaterialized: ephemeral\n---*/\nselect id from {{ source('shop', 'customers') }}"
    found = only(findings(tmp_path, {**FILES, "models/still.sql": still, "models/b.sql": reader}))
    assert f"{found.code} {found.location} {found.message}" == expected
    assert found.hint


def test_a_fault_in_one_is_told_once_and_where_it_stands(tmp_path):
    found = only(findings(tmp_path, {**FILES, "models/cleaned.sql": CLEAN.replace("amount > 0", "amuont > 0")}))
    assert f"{found.code} {found.location}" == "unknown-column models/cleaned.sql:5:80"


def test_the_rules_of_streams_see_through_it(tmp_path):
    again = sql("""
        /*---
        streams: [sums]
        output_mode: update
        unique_key: n
        ---*/
        select n, count(*) as c from {{ ref('sums') }} group by n
    """)
    sums = COUNTS.replace("streams: [cleaned]", "materialized: ephemeral\nstreams: [cleaned]").replace(
        "sum(cleaned.doubled) as doubled", "count(*) as n"
    )
    found = findings(tmp_path, {**FILES, "models/sums.sql": sums, "models/again.sql": again})
    assert [(d.node, d.is_error) for d in found if d.is_error] == [("again", True)]
