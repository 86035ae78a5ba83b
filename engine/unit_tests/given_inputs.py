"""The inputs of a model under test: fed streams, and static inputs with given rows.

The source of a unit test's streams: Spark's in-memory source, in the shape of the input that it replaces.

All inputs of a step are one micro-batch. A file or table for each step would cost more than the rest of the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from engine.compile import Input, Manifest, Model, Source, UnitTest
from engine.compile.nodes.manifest import Node
from engine.compile.nodes.unit_test_steps import Rows, StepKind
from engine.compile.test_nodes.unit_test_nodes import input_columns
from engine.compile.types import spark_types
from engine.lake.table_writer import literal
from engine.relations import quoted
from engine.runtime.inputs.register_inputs import register
from engine.runtime.quality.bad_records import Watched
from engine.sources import BAD, ORIGIN, Place, source_traits
from engine.spark.internals.handles import frame_of
from engine.spark.internals.queries import feed_at_once, memory_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


Columns = Sequence[tuple[str, str]]

_ROW = "__row"


def typed(session: SparkSession, rows: Rows, columns: Columns) -> DataFrame:
    """Return rows with these columns and types; missing cells are NULL.

    Values become part of the plan, so that no Spark job computes them.
    """
    from pyspark.sql import functions as f

    frame = session.sql(rows.sql) if rows.sql is not None else _values(session, rows)
    frame_columns = {name.lower() for name in frame.columns}
    cells = (
        (f.col(quoted(name)) if name.lower() in frame_columns else f.lit(None)).cast(kind).alias(name)
        for name, kind in columns
    )
    return frame.select(*cells)


def _values(session: SparkSession, rows: Rows) -> DataFrame:
    from pyspark.sql import functions as f

    if not rows.values or not rows.columns:
        return (
            session.sql("SELECT 1 AS __none WHERE false") if not rows.values else _empty_rows(session, len(rows.values))
        )
    texts = ", ".join(f"({literal(json.dumps(dict(row)))})" for row in rows.values)
    kind = ", ".join(f"{quoted(name)} {type_ or 'string'}" for name, type_ in rows.columns)
    frame = session.sql(f"SELECT * FROM VALUES {texts} AS t({_ROW})")  # noqa: S608 - quoted literals
    return frame.select(f.from_json(_ROW, kind, {"mode": "FAILFAST"}).alias(_ROW)).select(f"{_ROW}.*")


def _empty_rows(session: SparkSession, count: int) -> DataFrame:
    return session.sql("SELECT * FROM VALUES " + ", ".join(["(1)"] * count) + " AS t(__none)")  # noqa: S608 - no names


# A field of the record's origin: the event time of a row that flushes, where the watermark's column is computed.
FLUSH = "__flush"
_BAD_TYPE = "struct<reason: string, raw: binary>"
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of an input as its source or table gives them.

    Attributes:
        origin: name and type of the fields of `_metadata`.
        bad: it has the column that marks unreadable records, which no filter of the query passes.
    """

    columns: Columns
    origin: Columns = ()
    bad: bool = False

    @property
    def origin_type(self) -> str:
        return f"struct<{', '.join(f'{quoted(name)}: {kind}' for name, kind in self.origin)}>"

    @property
    def all(self) -> Columns:
        origin = [(ORIGIN, self.origin_type)] if self.origin else []
        return [*self.columns, *origin, *([(BAD, _BAD_TYPE)] if self.bad else [])]


def shape_of(item: Input, node: Node, columns: Columns, *, flushed: bool) -> Shape:
    types_by_name = dict(columns)
    origin = list(spark_types.fields(spark_types.normal(types_by_name.pop(ORIGIN, ""))) or ()) if item.metadata else []
    if flushed and item.watermark is not None and item.watermark.expression is not None:
        origin.append((FLUSH, "timestamp"))
    bad = isinstance(node, Source) and source_traits(node.spec.format).marks_bad
    return Shape(tuple((name, kind) for name, kind in types_by_name.items() if name != ORIGIN), tuple(origin), bad)


@dataclass(slots=True)
class Feed:
    """An input of a running query; `last` are the rows that were given last."""

    session: SparkSession
    item: Input
    shape: Shape
    stream: Any = field(init=False)
    last: DataFrame | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.shape.all)
        self.stream = memory_stream(self.session, next(_NUMBERS), ddl)

    def frame(self) -> DataFrame:
        return frame_of(self.session, self.stream.toDF())

    def rows(self, given_rows: Rows) -> DataFrame:
        types_by_name = tuple((n, self.shape.origin_type if n == ORIGIN else kind) for n, kind in given_rows.columns)
        self.last = typed(self.session, replace(given_rows, columns=types_by_name), self.shape.all)
        return self.last

    def flushing(self, at: str) -> DataFrame | None:
        """Return rows with a far event time: an empty one, and the last ones given, which a filter lets pass."""
        from pyspark.sql import functions as f

        watermark = self.item.watermark
        if watermark is None:
            return None
        frame = typed(self.session, Rows(values=({},)), self.shape.all)
        frame = frame.unionByName(self.last) if self.last is not None else frame
        time = f.lit(at).cast("timestamp")
        if watermark.expression is not None:
            fields = (f.col(ORIGIN)[name].alias(name) for name, _ in self.shape.origin if name != FLUSH)
            return frame.withColumn(ORIGIN, f.struct(*fields, time.alias(FLUSH)))
        name = next((n for n, _ in self.shape.columns if n.lower() == watermark.column.lower()), watermark.column)
        return frame.withColumn(name, time)


def add(query: Any, rows: Iterable[tuple[Feed, DataFrame]], session: SparkSession) -> None:
    """Feed rows of several inputs to a running query as one micro-batch."""
    feed_at_once(session, query, ((feed.stream, frame) for feed, frame in rows))


@dataclass(frozen=True, slots=True)
class FedModel:
    """A model whose inputs are registered in a session; bad records of `watched` inputs are counted."""

    model: Model
    feeds: Mapping[str, Feed]
    watched: tuple[Watched, ...]


def feed_inputs(session: SparkSession, manifest: Manifest, model: Model, test: UnitTest, root: Path) -> FedModel:
    """Register the inputs of a model for a unit test; an input without given rows is empty."""
    flushed = any(step.kind is StepKind.FLUSH for step in test.steps)
    static = {rows.view: rows.rows for rows in test.static}
    shapes = {i.view: _shape(i, manifest, _given_rows(test, i.view), flushed=flushed) for i in model.inputs}
    if not model.streaming:
        static |= {rows.view: rows.rows for step in test.steps for rows in step.given}
    is_fed = model.streaming
    feeds = {i.view: Feed(session, i, shapes[i.view]) for i in model.inputs if i.stream and is_fed}

    def instead(item: Input) -> DataFrame:
        if item.view in feeds:
            return feeds[item.view].frame()
        return typed(session, static.get(item.view, Rows()), shapes[item.view].all)

    names = {}
    for number, item in enumerate(model.inputs):
        if not item.stream and item.node.startswith("model."):
            # A table is named in the SQL by its own name; here a view stands for it.
            view = f"__static_{number}"
            instead(item).createOrReplaceTempView(view)
            names[item.view] = f"`{view}`"
    inputs = tuple(_flushable(item) for item in model.inputs) if flushed else model.inputs
    model = replace(model, sql=model.sql_with(names), slots=(), inputs=inputs)
    watched = register(session, manifest, model, Place(root), bounded=not model.streaming, instead=instead)
    return FedModel(model, feeds, watched)


def _given_rows(test: UnitTest, view: str) -> Iterable[Rows]:
    steps = (rows for step in test.steps for rows in step.given)
    return [rows.rows for rows in (*test.static, *steps) if rows.view == view]


def _shape(item: Input, manifest: Manifest, given_rows: Iterable[Rows], *, flushed: bool) -> Shape:
    return shape_of(item, manifest.nodes[item.node], _columns(item, manifest, given_rows), flushed=flushed)


def _columns(item: Input, manifest: Manifest, given_rows: Iterable[Rows]) -> Columns:
    types_by_name: dict[str, str | None] = dict(input_columns(item, manifest.nodes))
    for rows in given_rows:
        for name, kind in rows.columns:
            types_by_name[name] = types_by_name.get(name) or kind
    watermark = item.watermark
    if watermark is not None and watermark.expression is None and not types_by_name:
        types_by_name[watermark.column] = "timestamp"
    return tuple(
        (name, (spark_types.normal(kind) if kind else None) or "string") for name, kind in types_by_name.items()
    )


def _flushable(item: Input) -> Input:
    """Make the computed event time of an input give way to that of a flush."""
    watermark = item.watermark
    if watermark is None or watermark.expression is None:
        return item
    expression = f"coalesce(_metadata.{FLUSH}, {watermark.expression}\n)"
    return replace(item, watermark=replace(watermark, expression=expression))
