"""The newest part of a source: enough to find its newest time, without reading all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.sources import KINDS
from engine.sources.files import file_formats, file_source, listing
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# By modification time. Late rows may come in a newer file than the newest row; not in so many.
FILES = 100
# Of each partition of a topic.
RECORDS = 1000


def newest(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    """The newest files of a folder, the newest records of a topic, all of anything else; None: there is nothing.

    Files that were archived after reading count as well.
    """
    if spec.format in file_source.FORMATS:
        return _files(session, spec, place)
    if spec.format == "kafka":
        return _records(session, spec, place)
    return KINDS[spec.format].read_batch(session, spec, place)


def _files(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    spec = file_source.with_connection(spec, place)
    archive = spec.settings.get("archive_path")
    found = listing.listed(session, spec, place)
    if archive and (place.root / str(archive)).exists():
        found += listing.listed(session, replace(spec, settings={**spec.settings, "path": archive}), place)
    newest_first = sorted((file for file in found if file.size), key=lambda file: file.modified, reverse=True)
    if not newest_first:
        return None
    paths = [_for_spark(file) for file in newest_first[:FILES]]
    return file_formats.read(session, session.read, spec, paths, place)


def _for_spark(file: listing.Listed) -> str:
    return listing.exactly(file.path) if isinstance(file.path, Path) else file.uri


def _records(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    kind = KINDS[spec.format]
    starts: dict[str, dict[str, int]] = {}
    for topic, found in kind.position(session, spec, place).items():
        partitions = {key: value for key, value in found.items() if key != "id"}
        starts[topic] = {partition: max(first, end - RECORDS) for partition, (first, end) in partitions.items()}
    settings = {key: value for key, value in spec.settings.items() if key != "starting_timestamp"}
    return kind.read_batch(session, replace(spec, settings={**settings, "starting_offsets": starts}), place)
