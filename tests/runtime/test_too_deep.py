"""Deep expressions: what Spark can run runs, and what is too deep for Java's stack is told as that, at its place."""

from __future__ import annotations

from typing import Any

import pytest

from engine.compile import compile_project
from engine.project import load_project
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from tests.lab import Lab

pytestmark = pytest.mark.spark
SUM = " + ".join(["amount"] * 600)


@pytest.mark.nightly
def test_a_sum_of_600_terms_runs(lab: Lab) -> None:
    lab.model(
        "streamed", f"/*---\nstreams: [shop.events]\n---*/\nselect {SUM} as x from {{{{ source('shop', 'events') }}}}"
    )
    lab.model("batch", f"select {SUM} as x from {{{{ source('shop', 'events') }}}}")
    lab.land("a", [{"id": 1, "at": "2024-05-01T10:05:00Z", "amount": 0.5}])
    manifest = compile_project(load_project(lab.root)).manifest
    assert [column.type for model in manifest.models for column in model.columns] == ["double", "double"]
    result = lab.run("build")
    assert result.code == 0, result.text
    assert lab.rows("streamed") == lab.rows("batch") == [{"x": 300.0}]


def test_a_stack_that_overflows_is_told_at_the_deepest_place(lab: Lab) -> None:
    lab.model("deep", f"select id,\n  {SUM} as x\nfrom {{{{ source('shop', 'events') }}}}\nwhere id > 1")
    model = compile_project(load_project(lab.root)).manifest.model("deep")
    spark: Any = lab.session.spark  # type: ignore[union-attr]
    # A regular expression overflows at once, where a sum takes Spark a while.
    deep = "repeat('ab', 1000000) rlike '^(a|b)*$' as x"
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().selectExpr(deep)
    failing = {
        "query": lambda: spark.sql(f"select {deep}").collect(),
        "parser": lambda: spark.sql("select " + " + ".join(["1"] * 20_000)),
        "stream": lambda: stream.writeStream.format("noop").trigger(once=True).start().awaitTermination(),
    }
    for name, work in failing.items():
        with pytest.raises(spark_exceptions()) as raised:
            work()
        (found,) = diagnose(raised.value, model)
        assert (found.code, str(found.location)) == ("query-too-deep", "models/deep.sql:2:3"), name
        assert "-Xss" in (found.hint or "")
