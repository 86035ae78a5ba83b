"""The inputs of a model under test: fed streams, and static inputs with given rows."""

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
