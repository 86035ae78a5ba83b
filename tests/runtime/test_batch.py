"""Batch tables and views: built when what they read has changed."""

from __future__ import annotations

import pytest

from tests.lab import EVENTS, Lab

pytestmark = pytest.mark.spark

KINDS = "sources:\n  - name: ref\n    tables:\n      - name: kinds\n        format: csv\n        path: landing/kinds\n        schema: kind string, label string\n"


@pytest.fixture
def shop(lab: Lab) -> Lab:
    lab.write("sources/shop.yml", EVENTS)
    lab.write("sources/ref.yml", KINDS)
    lab.write("landing/kinds/k.csv", 'kind,label\npaid,"Paid, in ""full"""\nopen,Open\n')
    lab.model("events", "/*---\nstreams: [shop.events]\n---*/\nselect * from {{ source('shop', 'events') }}\n")
    lab.model(
        "by_kind",
        "select e.kind, k.label, count(*) as n from {{ ref('events') }} e "
        "left join {{ source('ref', 'kinds') }} k on k.kind = e.kind group by all",
    )
    lab.model("top_kind", "/*---\nmaterialized: view\n---*/\nselect max(n) as most from {{ ref('by_kind') }}")
    lab.model("of_view", "select most + 1 as more from {{ ref('top_kind') }}")
    lab.land("a", [{"id": 1, "kind": "paid"}, {"id": 2, "kind": "paid"}, {"id": 3, "kind": "open"}])
    return lab


def test_a_table_is_built_once_and_again_when_its_upstream_changed(shop: Lab) -> None:
    shop.build()
    assert sorted((r["kind"], r["label"], r["n"]) for r in shop.rows("by_kind")) == [
        ("open", "Open", 1),
        ("paid", 'Paid, in "full"', 2),
    ]
    before = shop.snapshots()
    again = shop.build()
    assert shop.snapshots() == before
    assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}
    shop.land("b", [{"id": 4, "kind": "open"}, {"id": 5, "kind": "open"}])
    shop.build()
    assert shop.snapshot("by_kind") != before["by_kind"]
    assert [r["more"] for r in shop.rows("of_view")] == [4]


def test_a_changed_file_of_a_static_source_rebuilds_the_table(shop: Lab) -> None:
    shop.build()
    before = shop.snapshots()
    shop.write("landing/kinds/k.csv", "kind,label\npaid,Settled\nopen,Open\n")
    result = shop.build()
    assert result.model("events")["status"] == "unchanged"
    assert shop.snapshot("events") == before["events"]
    assert {r["label"] for r in shop.rows("by_kind")} == {"Settled", "Open"}


def test_a_query_that_reads_the_clock_is_always_built(shop: Lab) -> None:
    shop.model("clock", "select current_timestamp() as at, count(*) as n from {{ ref('events') }}")
    shop.build()
    first = shop.snapshot("clock")
    shop.build()
    assert shop.snapshot("clock") != first


def test_a_changed_query_of_a_batch_table_or_view_is_built_anew(shop: Lab) -> None:
    shop.build()
    uuid = shop.table("by_kind").uuid  # type: ignore[union-attr]
    shop.model("by_kind", "select kind, count(*) as n, 1 as one from {{ ref('events') }} group by kind")
    shop.model("top_kind", "/*---\nmaterialized: view\n---*/\nselect min(n) as most from {{ ref('by_kind') }}")
    result = shop.build()
    assert result.model("by_kind")["status"] == result.model("top_kind")["status"] == "success"
    assert shop.table("by_kind").uuid == uuid  # type: ignore[union-attr]
    assert [r["more"] for r in shop.rows("of_view")] == [2]


def test_failing_tests_skip_what_depends_and_let_the_rest_go_on(shop: Lab) -> None:
    shop.model(
        "events",
        "/*---\nstreams: [shop.events]\ncolumns:\n  kind: {tests: [unique]}\n  id: {tests: [{unique: {severity: warn}}, not_null]}\n---*/\n"
        "select * from {{ source('shop', 'events') }}\n",
    )
    shop.model("alone", "select count(*) as n from {{ source('ref', 'kinds') }}")
    result = shop.run("build")
    assert result.code == 1
    ended = {e["node"]: e["status"] for e in result.events if e["event"] in {"ModelFinished", "TestFinished"}}
    assert ended["test.unique_events_kind.37605d4e8c"] == "fail"
    assert ended["test.unique_events_id.4692eeec09"] == "pass"
    assert ended["model.alone"] == "success"
    assert {ended[f"model.{m}"] for m in ("by_kind", "top_kind", "of_view")} == {"skipped"}
    (summary,) = [e for e in result.events if e["event"] == "Summary"]
    assert (summary["ERROR"], summary["SKIP"], summary["TOTAL"]) == (1, 3, 8)
    shop.land("b", [{"id": 1, "kind": "x"}])
    warned = shop.run("test", "-s", "test_name:unique,events")
    assert {e["node"]: e["status"] for e in warned.events if e["event"] == "TestFinished"} == {
        "test.unique_events_kind.37605d4e8c": "fail",
        "test.unique_events_id.4692eeec09": "pass",
    }


def test_a_failing_model_skips_what_depends_on_it_and_names_the_place(shop: Lab) -> None:
    shop.model("by_kind", "select kind,\n       cast(raise_error('no') as int) as n\nfrom {{ ref('events') }}")
    result = shop.run("build")
    assert result.code == 1
    assert result.model("by_kind")["status"] == "error"
    assert result.model("of_view")["status"] == "skipped"
    assert result.model("events")["status"] == "success"
    shop.model("by_kind", "select kind,\n       cast(to_number(kind, 'XX') as int) as n\nfrom {{ ref('events') }}")
    result = shop.run("build")
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (found["code"], found["file"], found["line"], found["column"]) == (
        "query-failed",
        "models/by_kind.sql",
        2,
        13,
    )
    assert "Traceback" not in result.text


def test_show_runs_the_query_and_prints_stored_tables(shop: Lab) -> None:
    shop.build()
    assert shop.run("show", "by_kind", "--table", "--output", "json").code == 0
    stored = shop.run("show", "by_kind", "--table", "--output", "csv")
    assert "paid" in stored.out
    shop.land("b", [{"id": 9, "kind": "paid"}])
    live = shop.run("show", "events", "--output", "json", "--limit", "100")
    assert len(live.events) == 0 or len(live.out.splitlines()) == 4
    inline = shop.run("show", "--inline", "select count(*) as n from {{ ref('events') }}", "--output", "json")
    assert inline.out.strip() == '{"n": 3}'


def test_show_says_how_many_rows_it_leaves_out_and_sorts_them(shop: Lab) -> None:
    shop.build()
    ids = "select id from {{ ref('events') }}"
    for what, rest in ((("--table", "events"), "2 of 3 rows"), (("--inline", ids), "The first 2 rows")):
        text = shop.run("show", *what, "-n", "2", "--sort", "id desc").out
        assert [line.split()[1] for line in text.splitlines()[2:4]] == ["3", "2"]
        assert f"{rest}; -n or --all shows more." in text
        text = shop.run("show", *what, "--all", "--sort", "id").out
        assert [line.split()[1] for line in text.splitlines()[2:5]] == ["1", "2", "3"]
        assert "shows more" not in text
        wrong = shop.run("show", *what, "--sort", "idd")
        assert (wrong.code, "column 'idd' not found" in wrong.text) == (2, True)


def test_show_writes_files(shop: Lab) -> None:
    from pyarrow import parquet

    shop.build()
    file = shop.root / "rows.parquet"
    shown = shop.run("show", "events", "--table", "--all", "--sort", "id", "--output", "parquet", "--out", str(file))
    assert (shown.code, f"Wrote 3 rows to {file}" in shown.out) == (0, True)
    assert parquet.read_table(file).column("id").to_pylist() == [1, 2, 3]
    assert shop.run("show", "events", "--table", "--output", "csv", "--out", str(shop.root / "rows.csv")).code == 0
    assert (shop.root / "rows.csv").read_text().splitlines()[0].startswith("id,")
    assert shop.run("show", "events", "--table", "--output", "parquet").code == 2
    assert shop.run("show", "events", "--output", "parquet", "--out", str(file)).code == 2
    assert shop.run("show", "events", "--table", "--out", str(shop.root / "none" / "rows.txt")).code == 1


def test_fail_fast_starts_nothing_after_a_failure(shop: Lab) -> None:
    shop.model(
        "events",
        "/*---\nstreams: [shop.events]\n---*/\n"
        "select id, kind, to_number(kind, 'XX') as n from {{ source('shop', 'events') }}\n",
    )
    shop.model("z_last", "select 1 as one")
    result = shop.run("build", "-x", "--threads", "1")
    assert result.code == 1
    assert result.model("z_last")["status"] == "skipped"


STEADY = """
select e.version, e.uuid, 'now' as moment, count(*) as n
from (select id as version, kind as uuid from {{ ref('events') }}) e where e.uuid <> 'now' group by all
"""


def test_words_do_not_make_a_table_another_each_time_and_the_clock_of_a_view_does(shop: Lab) -> None:
    shop.model("steady", STEADY)
    shop.model("ticking", "/*---\nmaterialized: view\n---*/\nselect n, now() as at from {{ ref('by_kind') }}")
    shop.model("over_view", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('ticking') }}")
    shop.model("of_clock", "select max(at) as at from {{ ref('over_view') }}")
    shop.build()
    before = shop.snapshots()
    again = shop.build()
    assert again.model("steady")["status"] == again.model("ticking")["status"] == "unchanged"
    assert shop.snapshot("steady") == before["steady"]
    assert again.model("of_clock")["status"] == "success"
    assert shop.snapshot("of_clock") != before["of_clock"]


def test_a_view_follows_the_columns_of_what_it_reads_and_is_recreated_when_it_is_gone(shop: Lab) -> None:
    spark, orders = shop.session.spark, f"lake.{shop.schema}.orders"  # type: ignore[union-attr]
    shop.model("orders", "select 1 as id")
    shop.model("every", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('orders') }}")
    shop.model("below", "select * from {{ ref('every') }}")
    chosen = ("-s", "every below")
    shop.build("-s", "+below")
    assert {shop.build(*chosen).model(name)["status"] for name in ("every", "below")} == {"unchanged"}

    spark.sql(f"alter table {orders} add column label string")
    changed = shop.build(*chosen)
    assert {changed.model(name)["status"] for name in ("every", "below")} == {"success"}
    assert shop.rows("below") == [{"id": 1, "label": None}]

    spark.sql(f"drop view lake.{shop.schema}.every")
    again = shop.build(*chosen)
    assert again.model("every")["status"] == "success"
    assert again.model("below")["status"] == "unchanged"
    assert spark.table(f"lake.{shop.schema}.every").columns == ["id", "label"]


def test_what_stands_on_a_table_follows_the_columns_that_it_gains(shop: Lab) -> None:
    spark = shop.session.spark  # type: ignore[union-attr]
    streamed = "/*---\nstreams: [shop.events]\non_schema_change: append_columns\n---*/\nselect {} from {{{{ source('shop', 'events') }}}}"
    shop.model("events", streamed.format("id, kind, struct(id as n) as inside"))
    shop.model("every", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('events') }}")
    shop.model("again", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('every') }}")
    shop.model("below", "select * from {{ ref('again') }}")
    shop.model("counted", "select count(*) as n from {{ ref('events') }}")
    shop.model("above", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('below') }}")
    names = ("every", "again", "below", "above")
    shop.build()
    # No new rows: only the columns of the table change, one of them in a struct.
    for columns in (
        "id, kind, struct(id as n) as inside, amount",
        "id, kind, struct(id as n, kind as k) as inside, amount",
    ):
        shop.model("events", streamed.format(columns))
        changed = shop.build()
        assert {changed.model(name)["status"] for name in names} == {"success"}
        table = spark.table(f"lake.{shop.schema}.events").schema.simpleString()
        assert {spark.table(f"lake.{shop.schema}.{name}").schema.simpleString() for name in names} == {table}
    assert set(shop.rows("below")[0]) == {"id", "kind", "inside", "amount"}
    assert {shop.build().model(name)["status"] for name in names} == {"unchanged"}
