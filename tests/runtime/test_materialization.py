"""A model that is materialized as something else: rejected without a full refresh, and what a fresh build gives with it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import Lab, Result, event

pytestmark = pytest.mark.spark

SOURCE = "{{ source('shop', 'events') }}"
PLAIN = f"select id, at, kind, amount from {SOURCE}"
GROUPED = f"select kind, count(*) as n, sum(amount) as total from {SOURCE} group by kind"
BASE = f"/*---\nstreams: [shop.events]\n---*/\n{PLAIN}\n"
# By kind: header and query. Each gives other columns or rows than most others.
KINDS = {
    "view": ("materialized: view", GROUPED.replace(SOURCE, "{{ ref('base') }}")),
    "table": ("materialized: table\npartition_by: [kind]", PLAIN),
    "parts": (
        "materialized: table\noverwrite: partitions\npartition_by: [day]",
        f"select to_date(at) as day, count(*) as n from {SOURCE} group by 1",
    ),
    "append": ("streams: [shop.events]\nsort_by: [id]", PLAIN),
    "merged": (
        "streams: [shop.events]\nunique_key: id\nsequence_by: at\ndelete_when: kind = 'gone'\nformat_version: 3",
        PLAIN,
    ),
    "complete": ("streams: [shop.events]\noutput_mode: complete", GROUPED),
}
MATERIALIZED = {"view": "view", "table": "table", "parts": "table"}
ALSO = {("append", "complete"), ("complete", "merged"), ("merged", "append"), ("parts", "table")}


def kind_of(kind: str) -> str:
    return MATERIALIZED.get(kind, "streaming_table")


PAIRS = [pair for pair in itertools.permutations(KINDS, 2) if kind_of(pair[0]) != kind_of(pair[1]) or pair in ALSO]


def write(lab: Lab, name: str, kind: str) -> None:
    header, query = KINDS[kind]
    lab.model(name, f"/*---\n{header}\n---*/\n{query}\n")


def on_day(number: int, kind: str = "paid", day: int = 1) -> dict[str, Any]:
    return event(number, f"2024-05-{day:02}T10:05", kind, number / 4)


def seen(lab: Lab, name: str) -> tuple[list[str], list[str]]:
    """Columns and rows as a reader sees them."""
    frame = lab.session.spark.table(f"lake.{lab.schema}.{name}")  # type: ignore[union-attr]
    return [f"{c.name} {c.dataType.simpleString()}" for c in frame.schema], sorted(str(row) for row in frame.collect())


def laid_out(lab: Lab, name: str) -> tuple[Any, ...] | None:
    """How a table is partitioned, and its properties without those that name the model."""
    facts = lab.table(name)
    if facts is None:
        return None
    own = {"engine.model", "engine.generation", "current-snapshot-id"}
    return tuple(sorted((k, v) for k, v in facts.properties.items() if k not in own)), facts.columns


def found(result: Result, code: str) -> dict[str, tuple[str, str]]:
    events = [e for e in result.events if e["event"] == "Diagnosed" and e["code"] == code]
    return {e["node"]: (e["message"], e["hint"]) for e in events}


@pytest.mark.nightly
def test_from_each_kind_to_each_other(lab: Lab) -> None:
    lab.model("base", BASE)
    for before, after in PAIRS:
        write(lab, f"{before}_{after}", before)
    lab.land("a", [on_day(1), on_day(2, "gone"), on_day(3, "new", 2)])
    lab.land("b", [on_day(1, "paid", 3), on_day(4)])
    lab.build("--threads", "2")
    stood = {name: seen(lab, name) for name in (f"{a}_{b}" for a, b in PAIRS)}
    for before, after in PAIRS:
        write(lab, f"{before}_{after}", after)
    for kind in KINDS:
        write(lab, f"fresh_{kind}", kind)

    rejected = lab.run("build", "--threads", "2", "--exclude", "fresh_*")
    told = found(rejected, "model-changed")
    other = {f"{a}_{b}" for a, b in PAIRS if kind_of(a) != kind_of(b)}
    assert rejected.code == 1
    # Of a table another `overwrite` is another build of it.
    assert (
        set(told)
        == {f"{a}_{b}" for a, b in PAIRS} - {"table_parts", "parts_table"} - found(rejected, "table-schema").keys()
    )
    for before, after in PAIRS:
        name = f"{before}_{after}"
        if name in other:
            message, hint = told[name]
            assert f"it was a {kind_of(before)} and is now a {kind_of(after)}" in message
            assert f"engine build -f -s {name}" in hint
            assert seen(lab, name) == stood[name]

    result = lab.run("build", "-f", "--threads", "2")
    assert result.code == 0, result.text
    assert set(found(result, "materialization-changed")) == other
    wrong = {}
    for before, after in PAIRS:
        name, fresh = f"{before}_{after}", f"fresh_{after}"
        given, wanted = (seen(lab, name), laid_out(lab, name)), (seen(lab, fresh), laid_out(lab, fresh))
        if given != wanted:
            wrong[name] = (given, wanted)
    assert wrong == {}
    # What there was is gone: one generation, no staging table, no view of that name.
    # Spark adds the temporary views of the session.
    views = lab.session.spark.sql(f"show views in lake.{lab.schema}").collect()  # type: ignore[union-attr]
    names = {row["viewName"] for row in views if not row["isTemporary"]}
    assert names == {f"{a}_{b}" for a, b in PAIRS if b == "view"} | {"fresh_view"}
    for before, after in PAIRS:
        assert len(list((lab.state / f"{before}_{after}").glob("*/model.json"))) == 1
        assert lab.table(f"{before}_{after}__g2") is None

    # They go on as fresh ones do.
    assert {e["status"] for e in lab.build("--threads", "2").events if e["event"] == "ModelFinished"} == {"unchanged"}
    lab.land("c", [on_day(5), on_day(3, "paid", 4), on_day(4, "gone", 5)])
    lab.build("--threads", "2")
    assert {n: 1 for n in (f"{a}_{b}" for a, b in PAIRS) if seen(lab, n) != seen(lab, f"fresh_{n.split('_')[1]}")} == {}


def test_a_stream_of_a_table_that_was_a_view_meanwhile_says_that_it_was_replaced(lab: Lab) -> None:
    lab.model("base", BASE)
    write(lab, "rows", "append")
    reader = "/*---\nstreams: [rows]\n---*/\nselect id from {{ ref('rows') }}"
    lab.model("reader", reader)
    lab.land("a", [on_day(1), on_day(2)])
    lab.build()
    write(lab, "rows", "view")
    assert "stream-not-streamable" in lab.run("build", "-f").codes()
    (lab.root / "models/reader.sql").unlink()
    lab.build("-f", "-s", "rows")
    write(lab, "rows", "append")
    lab.build("-f", "-s", "rows")
    lab.model("reader", reader)
    stopped = lab.run("build", "-s", "reader")
    assert (stopped.code, stopped.codes()) == (1, ["upstream-replaced"])
    lab.build("-f", "-s", "reader")
    assert lab.ids("reader") == [1, 2]


def test_what_fails_leaves_what_there_was(lab: Lab) -> None:
    lab.model("base", BASE)
    for name in ("one", "two"):
        write(lab, name, "table" if name == "one" else "view")
    lab.land("a", [on_day(1), on_day(2)])
    lab.build()
    before = {name: seen(lab, name) for name in ("one", "two")}
    # A view that Spark does not take, and a table whose query fails at its rows.
    lab.model(
        "one",
        "/*---\nmaterialized: view\npre_hook: create temporary function made_up() returns int return 1\n---*/\nselect made_up() as id",
    )
    lab.model(
        "two", "/*---\nmaterialized: table\n---*/\nselect assert_true(id < 2) is null as ok, id from {{ ref('base') }}"
    )
    result = lab.run("build", "-f", "-s", "one two")
    assert result.code == 1
    assert {e["status"] for e in result.events if e["event"] == "ModelFinished"} == {"error"}
    assert {name: seen(lab, name) for name in before} == before


def test_a_view_of_somebody_else_is_not_replaced(lab: Lab) -> None:
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    for name in ("one", "two"):
        spark.sql(f"create view lake.{lab.schema}.{name} as select 7 as id")
    write(lab, "one", "table")
    write(lab, "two", "append")
    lab.land("a", [on_day(1)])
    for options in ((), ("-f",)):
        result = lab.run("build", *options)
        assert (result.code, result.codes()) == (1, ["name-taken", "name-taken"])
    assert {name: seen(lab, name)[1] for name in ("one", "two")} == {"one": ["Row(id=7)"], "two": ["Row(id=7)"]}


def test_a_protected_model_stays_what_it_is(lab: Lab) -> None:
    lab.model("one", "/*---\nmaterialized: view\n---*/\nselect 1 as id")
    lab.build()
    lab.model("one", "/*---\nmaterialized: table\nfull_refresh: false\n---*/\nselect 1 as id")
    assert lab.run("build", "-f").codes() == ["full-refresh-protected"]


def test_a_table_that_was_never_made_may_become_anything(lab: Lab) -> None:
    lab.model("one", "/*---\nmaterialized: table\n---*/\nselect assert_true(1 > 2) is null as ok")
    assert lab.run("build").code == 1
    lab.model("one", "/*---\nmaterialized: view\n---*/\nselect 1 as id")
    lab.build()
    assert seen(lab, "one")[1] == ["Row(id=1)"]


@pytest.mark.nightly
def test_a_kill_between_the_old_and_the_new_is_mended_by_the_next_full_refresh(lab: Lab) -> None:
    lab.model("base", BASE)
    pairs = [("view", "table"), ("view", "append"), ("table", "view"), ("append", "view")]
    names = {f"{before}_{after}" for before, after in pairs}
    for before, after in pairs:
        write(lab, f"{before}_{after}", before)
        write(lab, f"fresh_{after}", after)
    lab.land("a", [on_day(1), on_day(2)])
    lab.build()
    for before, after in pairs:
        write(lab, f"{before}_{after}", after)
    chosen = ("-s", " ".join(sorted(names)))
    with reached("exchanging", kill) as passed:
        assert lab.run("build", "-f", *chosen).code == 1
    assert set(passed) == names
    exists = lab.session.spark.catalog.tableExists  # type: ignore[union-attr]
    assert not any(exists(f"lake.{lab.schema}.{name}") for name in names)
    # What was begun is finished by the next build.
    lab.build(*chosen)
    for before, after in pairs:
        assert seen(lab, f"{before}_{after}") == seen(lab, f"fresh_{after}")
        assert len(list((lab.state / f"{before}_{after}").glob("*/model.json"))) == 1
    tables = lab.session.spark.sql(f"show tables in lake.{lab.schema}").collect()  # type: ignore[union-attr]
    assert not [row["tableName"] for row in tables if "__" in row["tableName"]]


@pytest.mark.nightly
def test_a_partition_column_that_is_gone_does_not_stop_a_merge(lab: Lab) -> None:
    for name in ("two", "three"):
        write(lab, name, "parts")
    lab.land("a", [on_day(1), on_day(2)])
    lab.build()
    header, query = KINDS["merged"]
    lab.model("two", f"/*---\n{header.replace('format_version: 3', 'format_version: 2')}\n---*/\n{query}")
    write(lab, "three", "merged")
    lab.build("-f")
    lab.land("b", [on_day(1, "paid", 2), on_day(2, "gone", 2), on_day(3)])
    lab.build()
    for name in ("two", "three"):
        assert sorted((row["id"], row["at"].day) for row in lab.rows(name)) == [(1, 2), (3, 1)]
