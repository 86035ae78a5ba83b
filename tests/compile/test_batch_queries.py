"""Queries over tables: what compile says, and what Spark says of the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException

from tests.compile.batch_queries import ACCEPTED, REFUSED
from tests.lab import LabSession
from tests.project.helper import compiled, findings, line

SOURCES = """\
sources:
  - name: s
    tables:
      - {name: o, format: json, path: o, schema: "id string, ts timestamp, amount double, item struct<name string, price double>, tags array<string>"}
      - {name: c, format: json, path: c, schema: "id string, at timestamp, url string"}
"""


def model(sql: str) -> str:
    return re.sub(r"\b(from|join) ([oc])\b", lambda m: f"{m[1]} {{{{ source('s', '{m[2]}') }}}}", sql)


def files(queries: list[str]) -> dict[str, str | bytes]:
    return {"sources/s.yml": SOURCES, **{f"models/m{i}.sql": model(sql) for i, sql in enumerate(queries)}}


def test_what_spark_accepts_has_no_fault(tmp_path: Path):
    found = [d for d in compiled(tmp_path, files(ACCEPTED)).manifest.errors if d.code != "duplicate-name"]
    assert [f"{line(d)}: {ACCEPTED[int((d.node or 'm0')[1:])]}" for d in found] == []
    assert len(ACCEPTED) > 100


@pytest.mark.parametrize(("code", "marked"), REFUSED)
def test_what_spark_refuses(code, marked, tmp_path: Path):
    found = findings(tmp_path, files([marked.replace("»", "")]))
    assert [d.code for d in found] == ([code] if code else [])
    if found:
        assert str(found[0].location) == f"models/m0.sql:1:{model(marked).index('»') + 1}"
        assert found[0].hint


@pytest.fixture(scope="module")
def spark(lab_session: LabSession) -> Any:
    spark = lab_session.spark
    item = "named_struct('name', 'x', 'price', 1.0D) as item"
    spark.sql(f"select 'a' as id, timestamp'2024-01-01' as ts, 1.0D as amount, {item}, array('x') as tags").createOrReplaceTempView("o")
    spark.sql("select 'a' as id, timestamp'2024-01-01' as at, 'u' as url").createOrReplaceTempView("c")
    yield spark
    for name in ("o", "c"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
@pytest.mark.parametrize("sql", ACCEPTED)
def test_spark_accepts_it(sql: str, spark: Any):
    spark.sql(sql)


@pytest.mark.spark
@pytest.mark.parametrize("sql", [sql.replace("»", "") for code, sql in REFUSED if code != "duplicate-name"])
def test_spark_refuses_it(sql: str, spark: Any):
    with pytest.raises((AnalysisException, ParseException)):
        spark.sql(sql)
