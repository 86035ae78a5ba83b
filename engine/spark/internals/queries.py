"""A running streaming query: its micro-batch, its sources, its clock and its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.spark.internals.handles import java_frame, java_query, java_session, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FIXES_ITS_END = "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow"
_ICEBERG = "org.apache.iceberg."
_STORES = "org.apache.spark.sql.execution.streaming.state.StateStore$"
_CLOCK = "triggerClock"


def recent_reports(query: StreamingQuery) -> Sequence[Any]:
    """The reports of the last micro-batches, in Java: their numbers can be asked for before one is decoded."""
    reports: Sequence[Any] = java_query(query).recentProgress()
    return reports


def last_report(query: StreamingQuery) -> str:
    return str(java_query(query).lastProgress().json())


def explained(query: StreamingQuery) -> str:
    return str(java_query(query).explainInternal(False))


def end_offsets(query: StreamingQuery) -> list[str | None]:
    """The end of each source in the micro-batch that a query is at, as Spark writes it into the checkpoint.

    Without it a checkpoint that something else has changed would be committed beside rows that do not belong to it.
    """
    running = java_query(query).streamingQuery()
    at = running.getLatestExecutionContext()
    offsets = at.endOffsets().toOffsetSeq(running.sources(), at.offsetSeqMetadata()).offsets()
    ends = (offsets.apply(index) for index in range(offsets.size()))
    return [str(end.get().json()) if end.isDefined() else None for end in ends]


def fix_ends(query: StreamingQuery) -> list[bool]:
    """Let each source end with what it has now, as the trigger availableNow does; whether it could.

    Without it a build over a source that grows while it runs never ends.
    """
    sources = java_query(query).streamingQuery().sources().distinct()
    return [_fixed(sources.apply(index)) for index in range(sources.size())]


def _fixed(source: Any) -> bool:
    names = {interface.getName() for interface in _interfaces(source.getClass())}
    if _FIXES_ITS_END not in names or source.getClass().getName().startswith(_ICEBERG):
        return False
    source.prepareForTriggerAvailableNow()
    return True


def _interfaces(kind: Any) -> list[Any]:
    return [*kind.getInterfaces(), *(_interfaces(above) if (above := kind.getSuperclass()) is not None else ())]


def set_clock(session: SparkSession, query: StreamingQuery, millis: int | None) -> None:
    """Set what `current_timestamp()` of the next micro-batch is; None: the machine's time.

    Spark takes the clock when it makes a query, and has no way to give one. The query is idle, before its first
    micro-batch. Without it unit tests cannot have a `now`.
    """
    util, inner = jvm_of(session).org.apache.spark.util, java_query(query).streamingQuery()
    clock = _clock_of(inner)
    if millis is not None:
        clock.set(inner, util.ManualClock(millis))
    elif "Manual" in str(clock.get(inner).getClass().getName()):
        clock.set(inner, util.SystemClock())


def _clock_of(query: Any) -> Any:
    kind = query.getClass()
    while kind is not None:
        for clock_field in kind.getDeclaredFields():
            if clock_field.getName() == _CLOCK or clock_field.getName().endswith(f"$${_CLOCK}"):
                clock_field.setAccessible(True)
                return clock_field
        kind = kind.getSuperclass()
    raise RuntimeError(f"this version of Spark has no {_CLOCK}")


def memory_stream(session: SparkSession, number: int, ddl: str) -> Any:
    """Spark's in-memory source, which PySpark has not: unit tests feed streams with it."""
    jvm = jvm_of(session)
    encoder = jvm.org.apache.spark.sql.Encoders.row(jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl))
    source = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
    return source(number, java_session(session), jvm.scala.Option.apply(1), encoder)


def feed_at_once(session: SparkSession, query: StreamingQuery, rows: Iterable[tuple[Any, DataFrame]]) -> None:
    """Give a running query rows of several in-memory sources, as one micro-batch.

    The lock of its progress is held meanwhile (measured: without it the query takes what is there first).
    """
    sequence = jvm_of(session).org.apache.spark.api.python.PythonUtils.toSeq
    ready = [(source, sequence(java_frame(frame).collectAsList())) for source, frame in rows]
    lock = java_query(query).streamingQuery().awaitProgressLock()
    lock.lock()
    try:
        for source, values in ready:
            source.addData(values)
    finally:
        lock.unlock()


def compact_stores(
    session: SparkSession, query: StreamingQuery, state: str, stores: Iterable[tuple[int, int, str]]
) -> None:
    """Run Spark's maintenance of some stores of a query that has ended, and close them.

    Spark runs it once a minute. Without it the checkpoint of builds that take less grows by every changelog, and each
    start reads all of them.
    """
    jvm = jvm_of(session)
    loaded = getattr(getattr(jvm, _STORES), "MODULE$")
    run = java_query(query).runId()
    for identifier in _store_ids(jvm.org.apache.spark.sql.execution.streaming.state, run, state, stores):
        if loaded.isLoaded(identifier):
            loaded.doMaintenanceAndUnload(identifier)


def _store_ids(package: Any, run: Any, state: str, stores: Iterable[tuple[int, int, str]]) -> Iterator[Any]:
    for operator, partition, name in stores:
        yield package.StateStoreProviderId(package.StateStoreId(state, operator, partition, name), run)
