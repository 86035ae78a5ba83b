"""The columns of a frame beside those of a table, both as Iceberg stores them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.lake.schema_match import SchemaMatch, match
from engine.lake.table_layout import iceberg_schema
from engine.lake.table_writer import load
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def match_table(frame: DataFrame, relation: str) -> SchemaMatch:
    """Compare the columns of a frame, streaming or not, with those of an existing table."""
    session = frame.sparkSession
    table = load(session, relation).schema()
    return match(_stored(session, iceberg_schema(session, frame)), _stored(session, table))


def _stored(session: SparkSession, schema: Any) -> Mapping[str, Any]:
    """An Iceberg schema as Spark reads it: tinyint is int there, varchar is string."""
    convert = jvm_of(session).org.apache.iceberg.spark.SparkSchemaUtil.convert
    read: Mapping[str, Any] = json.loads(convert(schema).json())
    return read


def spelled(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    wanted = list(names)
    return frame if frame.columns == wanted else frame.toDF(*wanted)
