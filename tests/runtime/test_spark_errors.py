"""Errors of Spark: whatever they carry along, they become one finding of one model, and the rest of the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Model, compile_project
from engine.errors import Diagnostic
from engine.project import load_project
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from tests.lab import Lab

pytestmark = pytest.mark.spark


def model(root: Path, lab: Lab) -> Model:
    lab.model("m", "/*---\ntitle: Numbers\n---*/\nselect id,\n  1 / (id - 1) as x\nfrom range(3)")
    return compile_project(load_project(root)).manifest.model("m")


def failing(spark: Any, query: str) -> dict[str, Callable[[], Any]]:
    """By the context that PySpark's exception has: what raises it."""
    from pyspark.sql import functions as f

    numbers = spark.range(3)
    return {
        "sql": lambda: spark.sql(query).collect(),
        "sql of an expression": lambda: numbers.where(f.expr("1 / (id - 1) > 0")).collect(),
        "sql that cannot be parsed": lambda: spark.sql("select id,\n  from from"),
        "dataframe": lambda: numbers.select(f.lit(1) / (f.col("id") - 1)).collect(),
        "dataframe, analysed": lambda: numbers.select(~f.col("id")),
        "none": lambda: spark.table("lake.nowhere.nothing"),
        "none, of Java": lambda: spark._jvm.java.lang.Integer.parseInt("x"),
        "none, of Py4J": lambda: spark._jvm.java.util.ArrayList().get(5),
        "of a stream": lambda: _streamed(spark),
    }


def _streamed(spark: Any) -> None:
    from pyspark.sql import functions as f

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    query = rows.select(f.raise_error(f.lit("no"))).writeStream.format("noop").trigger(once=True).start()
    query.awaitTermination()


def test_every_kind_of_query_context_gives_one_finding(lab: Lab) -> None:
    made = model(lab.root, lab)
    spark = lab.session.spark  # type: ignore[union-attr]
    found: dict[str, Diagnostic] = {}
    contexts = {}
    for name, work in failing(spark, made.sql).items():
        with pytest.raises(spark_exceptions()) as raised:
            work()
        asked = getattr(raised.value, "getQueryContext", list)() or []
        contexts[name] = [context.contextType().name for context in asked]
        (found[name],) = diagnose(raised.value, made)
    assert contexts["sql"] == contexts["sql of an expression"] == ["SQL"]
    assert contexts["dataframe"] == contexts["dataframe, analysed"] == ["DataFrame"]
    assert contexts["none"] == contexts["none, of Java"] == []
    assert {finding.code for finding in found.values()} == {"query-failed"}
    assert all(finding.message and "\n" not in finding.message for finding in found.values())
    places = {name: finding.location for name, finding in found.items()}
    assert {place.file for place in places.values() if place} == {"models/m.sql"}
    assert str(places["sql"]) == "models/m.sql:5:3"
    assert {str(place) for name, place in places.items() if not name.startswith("sql")} == {"models/m.sql:1:1"}
    assert str(places["sql of an expression"]) == "models/m.sql:1:1"


# Compile does not know its type.
UNTYPED = "from_json('{}', schema_of_json('{\"v\": 1}')).v as v"
FORMS = {
    "unknown_type": ("", "expectations: [{name: whole, check: v}]", f"id, {UNTYPED}"),
    "deletes": ("unique_key: id\nsequence_by: at", "delete_when: v", f"id, at, {UNTYPED}"),
    "of_a_row": ("unique_key: id\nsequence_by: at", "delete_when: cast(kind as int) = 1", "id, at, kind"),
}  # fmt: skip


def test_a_model_that_spark_rejects_fails_alone(lab: Lab) -> None:
    for name, (settings, condition, columns) in FORMS.items():
        header = "\n".join(filter(None, ["streams: [shop.events]", settings, condition]))
        lab.model(name, f"/*---\n{header}\n---*/\nselect {columns} from {{{{ source('shop', 'events') }}}}")
    lab.model("good", "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}")
    lab.land("a", [{"id": 1, "at": "2024-05-01T10:05:00Z", "kind": "paid"}])
    result = lab.run("build")
    assert result.code == 1, result.text
    assert not result.err
    ended = {e["node"]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
    assert ended == {"model.good": "success", **{f"model.{name}": "error" for name in FORMS}}
    found = {e["node"]: (e["code"], e["message"]) for e in result.events if e["event"] == "Diagnosed"}
    assert found["unknown_type"] == ("condition-syntax", "the check of 'whole' (v) is bigint, not boolean")
    assert found["deletes"] == ("condition-syntax", "'delete_when' (v) is bigint, not boolean")
    assert found["of_a_row"][0] == "query-failed"
    assert lab.rows("good") == [{"id": 1}]


def test_an_error_that_nobody_expected_ends_one_model(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.runtime import run_batch

    def broken(session: Any, model: Model) -> None:
        if model.name == "bad":
            raise LookupError("a fault of the engine")
        before(session, model)

    before = run_batch.hooks.run_pre_hook
    monkeypatch.setattr(run_batch.hooks, "run_pre_hook", broken)
    lab.model("bad", "select 1 as id")
    lab.model("below", "select * from {{ ref('bad') }}")
    lab.model("good", "select 2 as id")
    result = lab.run("build")
    assert result.code == 1
    ended = {e["node"]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
    assert ended == {"model.bad": "error", "model.below": "skipped", "model.good": "success"}
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (found["code"], found["message"]) == ("internal-error", "internal error: LookupError: a fault of the engine")
    assert "LookupError" in (lab.root / "target/logs/engine.log").read_text(encoding="utf-8")
