"""How new the rows of sources are, from the rows themselves."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Source, Target
from engine.errors import EngineError
from engine.lake.catalog import catalog_settings
from engine.plan.deployed.state_folder import table_state
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import CORE
from engine.runtime.inputs.watermark_lag import moment
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary, unreadable
from engine.secrets.scrubber import scrub
from engine.sources import BAD, KINDS, Place, source_traits
from engine.sources.spec import SourceSpec
from engine.state import checkpoint as spark_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("engine.runtime")


class FreshnessVerdict(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    ERROR = "error"
    FAILED = "runtime error"


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """What a look at a source found.

    `newest` None: no row, or it could not be read. `ahead`: how many rows have a time too far ahead of the clock to
    count (`max_future`); `farthest` the largest, as text in UTC. `waiting`: for Kafka, how many offsets each model has
    not read.
    """

    source: Source
    at: datetime
    newest: datetime | None = None
    seconds: float = 0.0
    error: str = ""
    ahead: int = 0
    farthest: str = ""
    waiting: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> FreshnessVerdict:
        bounds = self.source.freshness
        if self.newest is None or bounds is None:
            return FreshnessVerdict.FAILED
        age = (self.at - self.newest).total_seconds()
        if bounds.error_after and age > bounds.error_after.seconds:
            return FreshnessVerdict.ERROR
        return FreshnessVerdict.WARN if bounds.warn_after and age > bounds.warn_after.seconds else FreshnessVerdict.PASS


def check_freshness(
    sources: Sequence[Source], manifest: Manifest, target: Target, root: Path, target_dir: Path
) -> Iterator[SourceFreshness]:
    """Look at sources with bounds, one after the other.

    Raises SetupError: Spark cannot be had; what is wrong with a source is in its result.
    """
    place = target.place(root)
    reads = [source for source in sources if _committed_at(source) is None]
    jars = sorted({name for source in reads for name in KINDS[source.spec.format].jars(source.spec)})
    if reads:
        catalog_settings.prepare(target.catalog)
    with spark_session(target, target_dir, sets=(*CORE, *jars)) if reads else nullcontext() as spark:
        for source in sources:
            session = spark.newSession() if spark is not None else None
            freshness = _check_source(session, source, place)
            if session is not None and not freshness.error:
                freshness = replace(freshness, waiting=unread_by_model(session, manifest, target, source, place))
            yield freshness


def _committed_at(source: Source) -> Callable[[SourceSpec, Place], datetime | None] | None:
    from_rows = source.freshness is not None and source.freshness.loaded_at
    return None if from_rows else source_traits(source.spec.format).committed_at


def _check_source(session: SparkSession | None, source: Source, place: Place) -> SourceFreshness:
    begin, at = time.monotonic(), datetime.now(UTC)
    newest_time, error, ahead, farthest = None, "", 0, ""
    try:
        KINDS[source.spec.format].check(source.spec, place)
        committed_at = _committed_at(source)
        if committed_at is not None:
            newest_time = committed_at(source.spec, place)
        elif session is not None:
            newest_time, ahead, farthest = _newest(session, source, place)
        error = "" if newest_time else "there is no row that counts" if ahead else "there is no row"
    except EngineError as failure:
        error = failure.diagnostic.message
    except spark_exceptions() as failure:
        _log.exception("freshness of %s", source.name)
        file_fault = unreadable(failure)
        error = scrub(file_fault[0] if file_fault else summary(str(failure)))
    return SourceFreshness(source, at, newest_time, time.monotonic() - begin, error, ahead, farthest)


def _newest_part(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    """The newest files of a folder, the newest records of a topic, all of anything else; None: there is nothing."""
    read_newest = source_traits(spec.format).newest
    return (
        read_newest(session, spec, place)
        if read_newest is not None
        else KINDS[spec.format].read_batch(session, spec, place)
    )


def _newest(session: SparkSession, source: Source, place: Place) -> tuple[datetime | None, int, str]:
    """The newest time of the readable rows that count, how many are too far ahead, and the largest of their times."""
    from pyspark.sql import functions as f

    bounds, frame = source.freshness, _newest_part(session, source.spec, place)
    if frame is None or bounds is None:
        return None, 0, ""
    if BAD in frame.columns:
        frame = frame.where(f.col(BAD).isNull())
    if bounds.filter:
        frame = frame.where(f.expr(bounds.filter))
    time_of_row = f.expr(bounds.loaded_at).cast("timestamp")
    ahead = time_of_row > f.current_timestamp() + f.expr(f"interval '{bounds.max_future}'")
    (row,) = frame.agg(
        f.unix_micros(f.max(f.when(~ahead, time_of_row))).alias("newest"),
        f.count_if(ahead).alias("ahead"),
        f.max(f.when(ahead, time_of_row)).cast("string").alias("farthest"),
    ).collect()
    return None if row["newest"] is None else moment(row["newest"]), row["ahead"], row["farthest"] or ""


def unread_by_model(
    session: SparkSession, manifest: Manifest, target: Target, source: Source, place: Place
) -> dict[str, int]:
    """Return how many records of a source are not in a model's table yet, by model; empty where its kind cannot tell.

    A model that was never built waits for all. Raises EngineError: the source cannot be asked.
    """
    readers = [m for m in manifest.models if any(i.node == source.id and i.stream for i in m.inputs)]
    count_unread = source_traits(source.spec.format).waiting
    if count_unread is None or not readers:
        return {}
    position = KINDS[source.spec.format].position(session, source.spec, place)
    counts = {}
    for model in readers:
        folder = table_state(target, model)
        state = folder.load()
        stands = spark_checkpoint.standing(folder.checkpoint(state.generation)) if state else []
        counts[model.name] = count_unread(position, stands)
    return counts
