"""Queries over tables, also as other databases write them: what compile says, and what Spark says of the same."""

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

from engine.compile.columns.find_columns import bind
from engine.compile.output.clause_checks import misplaced_calls
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.streaming.check_query import ALWAYS, check
from engine.compile.streaming.parse_statement import parse
from tests.compile.queries import BATCH, FOREIGN, Queries
from tests.fuzz.relations import RELATIONS
from tests.lab import LabSession
from tests.project.small_projects import compiled, line
from tests.projects import sources_yaml

SOURCES = sources_yaml(
    "s",
    o={
        "path": "o",
        "schema": "id string, ts timestamp, amount double, item struct<name string, price double>, tags array<string>",
    },
    c={"path": "c", "schema": "id string, at timestamp, url string"},
)
# What a table cannot hold is no fault of the query.
OF_TABLES = {"duplicate-name", "column-storage"}
ORACLE = json.loads((Path(__file__).parents[1] / "oracle" / "streaming_rules.json").read_text(encoding="utf-8"))
BOTH = pytest.mark.parametrize("queries", [pytest.param(BATCH, id="batch"), pytest.param(FOREIGN, id="foreign")])


def model(sql: str) -> str:
    return re.sub(r"\b(from|join|table) ([oc])\b", lambda m: f"{m[1]} {{{{ source('s', '{m[2]}') }}}}", sql)


def files(queries: list[str]) -> dict[str, str | bytes]:
    return {"sources/s.yml": SOURCES, **{f"models/m{i}.sql": model(sql) for i, sql in enumerate(queries)}}


@pytest.mark.slow
@BOTH
def test_what_spark_accepts_has_no_fault(queries: Queries, tmp_path: Path) -> None:
    errors = compiled(tmp_path, files([*queries.accepted])).manifest.errors
    found = [d for d in errors if d.code not in OF_TABLES]
    assert [f"{line(d)}: {queries.accepted[int((d.node or 'm0')[1:])]}" for d in found] == []
    assert len(queries.accepted) > 100


@pytest.mark.slow
@BOTH
def test_what_spark_refuses_is_a_fault_at_its_place(queries: Queries, tmp_path: Path) -> None:
    refused = [*queries.refused, *queries.failing]
    codes: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for found in compiled(tmp_path, files([marked.replace("»", "") for _, marked in refused])).manifest.diagnostics:
        # A character that cannot be seen is an error of the SQL, and a warning wherever it stands.
        if found.code == "trojan-source" or (queries is FOREIGN and found.level.value != "error"):
            continue
        assert found.hint, found
        file = str(found.location).partition(":")[0]
        codes.setdefault(file, []).append(found.code)
        first.setdefault(file, f"{found.code} {found.location}")
    expected = {
        (file := f"models/m{number}.sql"): f"{code} {file}:1:{model(marked).index('»') + 1}"
        for number, (code, marked) in enumerate(refused)
    }
    assert first == expected
    assert [found for found in codes.values() if queries is BATCH and len(found) > 1] == []
    assert len(refused) > 80


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


@pytest.mark.spark
@pytest.mark.nightly_cases("foreign")
@BOTH
def test_spark_says_so(queries: Queries, lab_session: LabSession) -> None:
    spark: Any = lab_session.spark
    # Two of the foreign ones end as errors of Java.
    refusals = (AnalysisException, ParseException) if queries is BATCH else Exception
    asked = [(sql, False) for sql in queries.accepted]
    asked += [(marked.replace("»", ""), True) for code, marked in queries.refused if code != "duplicate-name"]
    different = []
    with relations(spark):
        for sql, refused in asked:
            try:
                spark.sql(sql)
            except refusals:
                different += [] if refused else [sql]
            else:
                different += [sql] if refused else []
        for _, marked in queries.failing:
            frame = spark.sql(marked.replace("»", ""))
            with pytest.raises(Exception, match="key not found"):
                frame.collect()
    assert different == []


@pytest.mark.slow
def test_queries_that_spark_runs_as_streams_have_no_fault_either() -> None:
    """What holds for every query is asked of the oracle's queries, too."""
    inputs = {name: replace(columns, streaming=False, event_time="") for name, columns in RELATIONS.items()}
    asked = 0
    for record in ORACLE:
        sql = record["sql"]
        tree = parse(sql).tree if record["verdict"] != "rejected" and "atermark" not in sql.lower() else None
        if tree is None:
            continue
        asked += 1
        bound = bind(tree, inputs, {}, sql)
        columns = bound.columns
        assert [
            *misplaced_calls(QueryNodes.of_tree(tree), bound.noted.key_of),
            *columns.faults,
            *columns.unresolved,
        ] == [], sql
        assert [f for f in check(bound, "append") if f.code in ALWAYS] == [], sql
    assert asked > 120
