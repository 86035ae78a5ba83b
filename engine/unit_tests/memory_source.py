"""The source of a unit test's streams: Spark's in-memory source, in the shape of the input that it replaces.

All inputs of a step are one micro-batch. A file or table for each step would cost more than the rest of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from engine.compile import Input, Source
from engine.compile.nodes.manifest import Node
from engine.compile.nodes.unit_test_steps import Rows
from engine.compile.types import spark_types
from engine.relations import quoted
from engine.sources import BAD, ORIGIN, source_traits
from engine.spark.internals.handles import frame_of
from engine.spark.internals.queries import feed_at_once, memory_stream
from engine.unit_tests.row_values import Columns, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A field of the record's origin: the event time of a row that flushes, where the watermark's column is computed.
FLUSH = "__flush"
_BAD_TYPE = "struct<reason: string, raw: binary>"
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of an input as its source or table gives them.

    `origin`: name and type of the fields of `_metadata`. `bad`: it has the column that marks unreadable records, which
    no filter of the query passes.
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
