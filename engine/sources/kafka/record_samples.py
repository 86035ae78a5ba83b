"""A part of the records of topics: the newest of them, and the columns that are seen in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.sources.inferred_types import as_strings, kept, no_arrays
from engine.sources.spec import BAD, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Of so many records of each partition the newest time is looked for.
NEWEST = 1000
# Records that are looked at for columns.
SAMPLE = 1000


def newest(spec: SourceSpec, position: Mapping[str, Mapping[str, Any]]) -> SourceSpec:
    """The source from its newest records on.

    Args:
        spec: as it is declared.
        position: by topic, the first and the end offset of each partition, and the topic's id.
    """
    starts: dict[str, dict[str, int]] = {}
    for topic, found in position.items():
        partitions = {key: value for key, value in found.items() if key != "id"}
        starts[topic] = {partition: max(first, end - NEWEST) for partition, (first, end) in partitions.items()}
    settings = {key: value for key, value in spec.settings.items() if key != "starting_timestamp"}
    return replace(spec, settings={**settings, "starting_offsets": starts})


def as_text(spec: SourceSpec) -> SourceSpec:
    return replace(spec, schema="", settings={**spec.settings, "value": {"format": "string"}})


def of_json(session: SparkSession, source: str, texts: DataFrame) -> StructType:
    """The columns of some of the values of a source, which are JSON.

    Raises:
        RunError: `source-unreadable`, a record is an array.
    """
    rows = texts.where(f"{BAD} is null").select("value").limit(SAMPLE).collect()
    frame = session.createDataFrame([(row[0], "a record") for row in rows], "value string, place string")
    no_arrays(frame, source)
    lines = session.sparkContext.parallelize([row[0] for row in rows], 1)
    reader = session.read.options(inferTimestamp="true", mode="DROPMALFORMED")
    found = reader.json(lines).schema
    return kept(reader.schema(cast("StructType", as_strings(found))).json(lines), found, json=True)
