"""Queries over tables: what compile says, and what Spark says of the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import bind
from engine.compile.output.clause_checks import misplaced
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.streaming import check, parse
from engine.compile.streaming.check_model import ALWAYS
from tests.compile.batch_queries import ACCEPTED, FAILING, REFUSED
from tests.fuzz.relations import RELATIONS
from tests.lab import LabSession
from tests.project.small_projects import compiled, findings, line

SOURCES = """\
sources:
  - name: s
    tables:
      - {name: o, format: json, path: o, schema: "id string, ts timestamp, amount double, item struct<name string, price double>, tags array<string>"}
      - {name: c, format: json, path: c, schema: "id string, at timestamp, url string"}
"""


def model(sql: str) -> str:
    return re.sub(r"\b(from|join|table) ([oc])\b", lambda m: f"{m[1]} {{{{ source('s', '{m[2]}') }}}}", sql)


def files(queries: list[str]) -> dict[str, str | bytes]:
    return {"sources/s.yml": SOURCES, **{f"models/m{i}.sql": model(sql) for i, sql in enumerate(queries)}}


@pytest.mark.slow
def test_what_spark_accepts_has_no_fault(tmp_path: Path):
    # What a table cannot hold is no fault of the query.
    of_tables = {"duplicate-name", "column-storage"}
    found = [d for d in compiled(tmp_path, files(ACCEPTED)).manifest.errors if d.code not in of_tables]
    assert [f"{line(d)}: {ACCEPTED[int((d.node or 'm0')[1:])]}" for d in found] == []
    assert len(ACCEPTED) > 100


@pytest.mark.slow
@pytest.mark.parametrize(("code", "marked"), REFUSED + FAILING)
def test_what_spark_refuses(code, marked, tmp_path: Path):
    found = findings(tmp_path, files([marked.replace("»", "")]))
    # A character that cannot be seen is an error of the SQL, and a warning wherever it stands.
    found = [d for d in found if d.code != "trojan-source"]
    assert [d.code for d in found] == ([code] if code else [])
    if found:
        assert str(found[0].location) == f"models/m0.sql:1:{model(marked).index('»') + 1}"
        assert found[0].hint


@contextmanager
def relations(spark: Any) -> Iterator[None]:
    """The relations of the queries, as views of one row."""
    item = "named_struct('name', 'x', 'price', 1.0D) as item"
    spark.sql(
        f"select 'a' as id, timestamp'2024-01-01' as ts, 1.0D as amount, {item}, array('x') as tags"
    ).createOrReplaceTempView("o")
    spark.sql("select 'a' as id, timestamp'2024-01-01' as at, 'u' as url").createOrReplaceTempView("c")
    yield
    for name in ("o", "c"):
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def spark(lab_session: LabSession) -> Iterator[Any]:
    with relations(lab_session.spark):
        yield lab_session.spark


@pytest.mark.spark
@pytest.mark.parametrize("sql", ACCEPTED)
def test_spark_accepts_it(sql: str, spark: Any):
    spark.sql(sql)


@pytest.mark.spark
@pytest.mark.parametrize("sql", [sql.replace("»", "") for code, sql in REFUSED if code != "duplicate-name"])
def test_spark_refuses_it(sql: str, spark: Any):
    with pytest.raises((AnalysisException, ParseException)):
        spark.sql(sql)


@pytest.mark.spark
@pytest.mark.parametrize("sql", [sql.replace("»", "") for _, sql in FAILING])
def test_spark_fails_at_it(sql: str, spark: Any):
    frame = spark.sql(sql)
    with pytest.raises(Exception, match="key not found"):
        frame.collect()


ORACLE = json.loads((Path(__file__).parents[1] / "oracle" / "streaming_rules.json").read_text(encoding="utf-8"))
STREAMED = [
    record["sql"] for record in ORACLE if record["verdict"] != "rejected" and "atermark" not in record["sql"].lower()
]


@pytest.mark.slow
def test_queries_that_spark_runs_as_streams_have_no_fault_either(tmp_path: Path):
    """What holds for every query is asked of the oracle's queries, too."""
    tables = {
        name: replace(known, streaming=False, watermark=None, delay=None, dedup=False)
        for name, known in RELATIONS.items()
    }
    inputs = {
        name: InputColumns(f"model.{name}", tuple((known.columns or {}).items())) for name, known in RELATIONS.items()
    }
    asked = 0
    for sql in STREAMED:
        tree = parse(sql).tree
        if tree is None:
            continue
        asked += 1
        bound = bind(tree, inputs, {}, sql)
        seen = bound.columns
        assert [*misplaced(QueryNodes.of(tree)), *seen.faults, *seen.unresolved] == [], sql
        assert [f for f in check(bound, tables, "append") if f.code in ALWAYS] == [], sql
    assert asked > 120
