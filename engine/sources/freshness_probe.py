"""The newest part of a source: enough to find its newest time, without reading all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sources import KINDS, answers_of
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def newest(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    """The newest files of a folder, the newest records of a topic, all of anything else; None: there is nothing."""
    look = answers_of(spec.format).newest
    return look(session, spec, place) if look is not None else KINDS[spec.format].read_batch(session, spec, place)
