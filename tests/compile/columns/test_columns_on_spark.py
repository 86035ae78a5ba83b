"""Names and types against Spark itself: the fixtures, every function's own examples, whole projects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException
from sqlglot.errors import SqlglotError

from engine.compile import Model, compile_project
from engine.compile.columns import InputColumns, QueryColumns
from engine.compile.columns.find_columns import columns_of
from engine.compile.pipeline import parse_model
from engine.compile.templates import confined_process
from engine.compile.types.builtin_functions import BUILTIN
from engine.project import LoadedProject, load_project
from tests.compile.columns.cases import found_in, read_cases, tables
from tests.lab import REPOSITORY, LabSession
from tests.project.small_projects import write

pytestmark = pytest.mark.spark
Schema = list[tuple[str, str]]


@dataclass
class Score:
    """How many types agreed, were unknown to us, and which differ."""

    equal: int = 0
    unknown: int = 0
    unnamed: int = 0
    different: list[str] = field(default_factory=list)

    def compare(self, sql: str, ours: QueryColumns, theirs: Schema) -> None:
        if ours.unresolved or ours.faults:
            self.different.append(f"{sql}: {ours.unresolved} {ours.faults}")
        if ours.columns is None:
            self.unknown += len(theirs)
            return
        if len(ours.columns) != len(theirs):
            self.different.append(f"{sql}: {len(ours.columns)} columns, Spark has {len(theirs)}")
            return
        for column, (name, type_) in zip(ours.columns, theirs, strict=True):
            self.unnamed += not column.named
            if column.named and column.name != name:
                self.different.append(f"{sql}: '{column.name}', Spark says '{name}'")
            if column.type is None:
                self.unknown += 1
            elif column.type != type_:
                self.different.append(f"{sql}: {name} is {column.type}, Spark says {type_}")
            else:
                self.equal += 1


def schema_of(frame: Any) -> Schema:
    return [(column.name, column.dataType.simpleString()) for column in frame.schema]


@pytest.fixture(scope="module")
def spark(lab_session: LabSession) -> Iterator[Any]:
    """The shared session, with empty views of what the fixtures read."""
    session = lab_session.spark
    known = {name: table.columns for name, table in tables().items() if table.columns is not None}
    for name, columns in known.items():
        schema = ", ".join(f"`{column}` {type_}" for column, type_ in columns)
        session.createDataFrame([], schema).createOrReplaceTempView(name)
    yield session
    for name in known:
        session.catalog.dropTempView(name)


def test_the_fixtures_are_what_spark_says(spark: Any):
    score = Score()
    for case in read_cases():
        if not case.name.startswith(("unknown", "windows")):
            score.compare(case.sql, found_in(case.sql), schema_of(spark.sql(case.sql)))
    assert score.different == []
    assert score.unknown == 0
    assert score.equal > 450


def examples(spark: Any) -> Iterator[str]:
    """The first query that Spark shows in the description of each of its functions."""
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        if re.fullmatch(r"\w+", name):
            text = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
            yield from re.findall(r"^\s*> (SELECT .*?);\s*$", text, re.MULTILINE | re.DOTALL | re.IGNORECASE)[:1]


@pytest.mark.nightly
def test_every_function_returns_what_spark_says(spark: Any):
    score = Score()
    for sql in dict.fromkeys(examples(spark)):
        try:
            theirs, ours = schema_of(spark.sql(sql)), found_in(sql, {})
        except (AnalysisException, ParseException, Py4JJavaError, SqlglotError):
            continue
        score.compare(sql, ours, theirs)
    assert score.different == []
    assert score.equal > 440
    assert score.unknown < 25


MISTAKES = """
select carier from flights
select f.nothing from flights f
select flights.carrier from flights f
select data.orgin from departures
select d.data.plane.tial from departures d
select departure_delay as delay from flights where delay > 1
select 1 from flights f join weather w on f.origin = w.orgin
with a as (select carrier as c from flights) select carrier from a
select transform(legs, l -> l.mile) from departures
select 1 from flights f where exists (select 1 from weather w where w.origin = f.orign)
select x from flights f lateral view explode(array(nothing)) e as x
select w.origin from flights f left semi join weather w on w.origin = f.origin
select s.b from (select struct(carrier as a) as s from flights)
select carrier from flights order by nothing
select count(*) as n from flights group by carrier having m > 1
select sum(price) over (partition by nothing) from flights
select window.begin from flights group by window(scheduled_at, '1 hour')
select a, b from (select carrier, origin from flights) as t(a, c)
with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select m from r
select * from flights f join weather w using (origin) where f.temp > 1
""".strip().splitlines()


@pytest.mark.parametrize("sql", MISTAKES)
def test_spark_does_not_find_the_name_either(spark: Any, sql: str):
    (missing,) = found_in(sql).unresolved
    with pytest.raises(AnalysisException) as raised:
        spark.sql(sql)
    code = raised.value.getCondition()
    assert code.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")), code
    assert missing.name.rsplit(".", 1)[-1] in raised.value.getMessage()


def test_what_iceberg_makes_of_types(spark: Any):
    ours = found_in(
        "select tiny, small, array(struct(small as s, tiny as t)) as l, map(tiny, small) as m, real from numbers"
    )
    spark.sql("create namespace if not exists lake.columns")
    spark.sql(
        "create table lake.columns.kept using iceberg as"
        " select tiny, small, array(struct(small as s, tiny as t)) as l, map(tiny, small) as m, real from numbers"
    )
    try:
        stored = ours.as_input("model.kept", in_table=True)
        assert list(stored.columns or ()) == schema_of(spark.table("lake.columns.kept"))
    finally:
        spark.sql("drop table lake.columns.kept")


# Whole projects: the SQL that runs, on empty inputs


WINDOW_MODELS = {
    "hours": """/*---
streams: {shop.orders: {watermark: ts delay 1 hour}}
windows: {hour: "tumbling(ts, 1 hour)"}
---*/
select hour, hour.start, hour.end as till, date(hour.start) as day, count(*) as n, count(*)
from {{ source('shop', 'orders') }}
group by hour
""",
    "by_alias": """/*---
streams: {shop.orders: {watermark: ts delay 1 hour}}
windows: {w: "sliding(ts, 1 hour, 10 minutes)"}
---*/
select w.start as s, id, sum(amount) as total from {{ source('shop', 'orders') }} group by s, id
""",
    "sessions": """/*---
streams: {shop.orders: {watermark: cast(item.name as timestamp) as at delay 1 hour}}
windows: {visit: "session(at, 5 minutes)"}
---*/
select visit.end, orders.id, max(item.price) as p, max(at) as at from {{ source('shop', 'orders') }} group by all
""",
    "days": """/*---
materialized: table
windows: {day: "tumbling(s, 1 day)"}
---*/
with a as (select s, total from {{ ref('by_alias') }})
select day.start as d, sum(a.total) from a group by day
""",
    "small": """/*---
materialized: table
---*/
select cast(1 as tinyint) as t, named_struct('s', 1S) as st, h.* from {{ ref('hours') }} h
""",
    "reads_small": """/*---
materialized: table
---*/
select t, st.s, {{ ref('small') }}.till, `count(1)` from {{ ref('small') }}
""",
}


@pytest.fixture
def parsed_models(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, Any]]:
    """Text and tree of each model that is compiled."""
    seen: dict[str, tuple[str, Any]] = {}
    parse = parse_model.parse

    def recording(rendered: Any, node: str, *others: Any) -> Any:
        query = parse(rendered, node, *others)
        seen[node] = (rendered.text, query)
        return query

    # In another process nothing would be recorded here.
    monkeypatch.setattr(confined_process, "run_confined", lambda work, *arguments: work(*arguments))
    monkeypatch.setattr(parse_model, "parse", recording)
    return seen


def check_project(spark: Any, project: LoadedProject, parsed_models: dict[str, tuple[str, Any]]) -> Score:
    manifest = compile_project(project, env={}).manifest
    assert manifest.errors == ()
    known = {s.id: InputColumns(s.id, tuple((c.name, c.type) for c in s.columns)) for s in manifest.sources}
    for source in manifest.sources:
        schema = ", ".join(f"`{c.name}` {c.type}" for c in source.columns)
        spark.createDataFrame([], schema).createOrReplaceTempView(f"all_{source.id.replace('.', '_')}")
    score = Score()
    for model in manifest.models:
        text, query = parsed_models[model.name]
        # An ephemeral model is inside the SQL, and the parsed text names it.
        inputs = {f"@ref {name}": known[f"model.{name}"] for name in model.inlined}
        for item in model.inputs:
            kind = "ref" if item.node.startswith("model.") else "source"
            added = ()
            if item.watermark and item.watermark.expression:
                added = ((item.watermark.column, item.watermark.expression),)
            inputs[f"@{kind} {item.name}"] = InputColumns(item.node, known[item.node].columns, added)
        ours = columns_of(query.tree, inputs, model.windows, text)
        frame = spark.sql(_on_views(spark, model))
        score.compare(f"{model.name}: {model.sql}", ours, schema_of(frame))
        stored = model.materialized != "view"
        known[model.id] = ours.as_input(model.id, in_table=stored)
        columns = [f"`{c.name}`" if c.named else "" for c in ours.columns or ()]
        assert all(columns), model.name
        types = ", ".join(f"`{name}` {type_}" for name, type_ in known[model.id].columns or ())
        spark.createDataFrame([], types).createOrReplaceTempView(f"all_model_{model.name}")
    return score


def _on_views(spark: Any, model: Model) -> str:
    sql = model.sql
    for item in model.inputs:
        frame = spark.table(f"all_{item.node.replace('.', '_')}")
        if item.watermark and item.watermark.expression:
            frame = frame.withColumn(item.watermark.column, _expression(item.watermark.expression))
        short = item.name.rsplit(".", 1)[-1]
        view = item.view.strip("`") if "`.`" not in item.view else short
        frame.createOrReplaceTempView(view)
        sql = sql.replace(item.view, f"`{view}`")
    return sql


def _expression(sql: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(sql)


def test_the_example_project(spark: Any, parsed_models: dict[str, tuple[str, Any]]):
    score = check_project(spark, load_project(REPOSITORY), parsed_models)
    assert score.different == []
    assert (score.unknown, score.unnamed) == (0, 0)
    assert score.equal > 30


def test_a_project_with_windows(spark: Any, parsed_models: dict[str, tuple[str, Any]], tmp_path: Path):
    files: dict[str, str | bytes] = {f"models/{name}.sql": text for name, text in WINDOW_MODELS.items()}
    score = check_project(spark, load_project(write(tmp_path, files)), parsed_models)
    assert score.different == []
    assert (score.unknown, score.unnamed) == (0, 0)


def test_the_names_of_all_functions(lab_session: LabSession) -> None:
    listed = {row[0] for row in lab_session.spark.sql("show functions").collect()}
    names = {name for name in listed if re.fullmatch(r"[a-z_]\w*", name)}
    assert names - BUILTIN == set()
    assert len(BUILTIN - names) < 20
