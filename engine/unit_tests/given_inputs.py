"""The inputs of a model under test: streams that are fed, and static sides that are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.compile import Input, Manifest, Model, UnitTest
from engine.compile.nodes.unit_test_steps import Rows, StepKind
from engine.compile.test_nodes.unit_test_nodes import input_columns
from engine.compile.types import spark_types
from engine.runtime.inputs.register_inputs import register
from engine.runtime.quality.bad_records import Watched
from engine.sources import Place
from engine.unit_tests.memory_source import FLUSH, Feed, Shape, shape_of
from engine.unit_tests.row_values import Columns, typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Fed:
    """A model whose inputs are registered in a session.

    Attributes:
        model: with the names of the views in its SQL.
        watched: the inputs whose bad records are counted.
    """

    model: Model
    feeds: Mapping[str, Feed]
    watched: tuple[Watched, ...]


def feed_inputs(session: SparkSession, manifest: Manifest, model: Model, test: UnitTest, root: Path) -> Fed:
    """Register the inputs of a model for a unit test; what the test gives no rows has none."""
    flushed = any(step.kind is StepKind.FLUSH for step in test.steps)
    static = {rows.view: rows.rows for rows in test.static}
    shapes = {i.view: _shape(i, manifest, _given(test, i.view), flushed=flushed) for i in model.inputs}
    if not model.streaming:
        static |= {rows.view: rows.rows for step in test.steps for rows in step.given}
    fed = model.streaming
    feeds = {i.view: Feed(session, i, shapes[i.view]) for i in model.inputs if i.stream and fed}

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
    return Fed(model, feeds, watched)


def _given(test: UnitTest, view: str) -> Iterable[Rows]:
    steps = (rows for step in test.steps for rows in step.given)
    return [rows.rows for rows in (*test.static, *steps) if rows.view == view]


def _shape(item: Input, manifest: Manifest, given: Iterable[Rows], *, flushed: bool) -> Shape:
    return shape_of(item, manifest.nodes[item.node], _columns(item, manifest, given), flushed=flushed)


def _columns(item: Input, manifest: Manifest, given: Iterable[Rows]) -> Columns:
    known: dict[str, str | None] = dict(input_columns(item, manifest.nodes))
    for rows in given:
        for name, kind in rows.columns:
            known[name] = known.get(name) or kind
    mark = item.watermark
    if mark is not None and mark.expression is None and not known:
        known[mark.column] = "timestamp"
    return tuple((name, (spark_types.normal(kind) if kind else None) or "string") for name, kind in known.items())


def _flushable(item: Input) -> Input:
    """An input whose computed event time gives way to that of a flush."""
    mark = item.watermark
    if mark is None or mark.expression is None:
        return item
    expression = f"coalesce(_metadata.{FLUSH}, {mark.expression}\n)"
    return replace(item, watermark=replace(mark, expression=expression))
