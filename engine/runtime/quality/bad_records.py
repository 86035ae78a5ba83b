"""What an execution saw of the bad records of its inputs.

Bad records that a build takes out: too many are an error before anything is committed, all others a warning.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.errors import Diagnostic, Level, RunError
from engine.sources import OnBadRecord, listing, mark_bad_records
from engine.sources.spec import BadRecordLimit
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals import executions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MAX_EXAMPLES = 3
_MAX_LENGTH = 200
# All that can be wrong with rows that are dropped.
_NO_TIME = "the event time is NULL"


@dataclass(frozen=True, slots=True)
class Watched:
    """An input whose bad records are counted.

    `name`: of the input, as models call it; two may have the same one, through an ephemeral model. `once`: each record
    is read once; the static side of a stream is re-read in each micro-batch. `limit`: how many a build takes out before
    it is an error.
    """

    name: str
    view: str
    policy: OnBadRecord
    once: bool
    limit: BadRecordLimit = field(default_factory=BadRecordLimit)

    @property
    def observation(self) -> str:
        return f"bad records of {self.view}"


@dataclass(frozen=True, slots=True)
class Observed:
    """What an execution saw of an input.

    `dropped` rows have no event time; `read` are records, bad and good; `skipped` are not rows, and not among those
    read. `reason`: one of those for which its records were taken out, without values of records.
    """

    bad: int = 0
    dropped: int = 0
    read: int = 0
    reason: str = ""
    skipped: int = 0

    @property
    def taken_out(self) -> int:
        return self.bad + self.dropped


def observed(session: SparkSession, execution: Any, watched_inputs: Iterable[Watched]) -> dict[str, Observed]:
    metrics_by_name = executions.observed(execution)
    return {
        item.view: _observed(session, execution, item, metrics_by_name.get(item.observation)) for item in watched_inputs
    }


def _observed(session: SparkSession, execution: Any, item: Watched, metrics: Mapping[str, Any] | None) -> Observed:
    if metrics is None:
        # The optimiser found that the query needs no row of this input; its records count all the same.
        frame = executions.observed_frame(session, execution, item.observation)
        row = frame.agg(*mark_bad_records.metrics(frame)).first() if frame is not None else None
        metrics = row.asDict() if row is not None else {}
    counts = (
        mark_bad_records.COUNT, mark_bad_records.DROPPED_COUNT, mark_bad_records.RECORDS, mark_bad_records.SKIPPED_COUNT
    )  # fmt: skip
    bad, dropped, read, skipped = (int(metrics.get(name) or 0) for name in counts)
    return Observed(bad, dropped, read, metrics.get(mark_bad_records.REASON) or _NO_TIME, skipped)


def _records(session: SparkSession, execution: Any, item: Watched) -> DataFrame | None:
    frame = executions.observed_frame(session, execution, item.observation)
    return mark_bad_records.bad_records(frame, item.name) if frame is not None else None


def skipped_records(watched_inputs: Iterable[Watched], observations: Mapping[str, Observed]) -> int:
    """How many records of inputs that are read once are not rows."""
    return sum(observations[item.view].skipped for item in watched_inputs if item.once)


def by_name(watched_inputs: Iterable[Watched], counts: Mapping[str, int]) -> dict[str, int]:
    counts_by_name: Counter[str] = Counter()
    for item in watched_inputs:
        counts_by_name[item.name] += counts.get(item.view, 0)
    return {name: count for name, count in counts_by_name.items() if count}


def reasons_by_name(watched_inputs: Iterable[Watched], reasons: Mapping[str, str]) -> dict[str, str]:
    return {item.name: reasons[item.view] for item in reversed(tuple(watched_inputs)) if item.view in reasons}


def to_quarantine(
    session: SparkSession, execution: Any, watched_inputs: Iterable[Watched], observations: Mapping[str, Observed]
) -> Iterator[DataFrame]:
    for item in watched_inputs:
        if item.policy is OnBadRecord.QUARANTINE and item.once and observations[item.view].bad:
            records = _records(session, execution, item)
            if records is not None:
                yield records


def refused(
    session: SparkSession,
    execution: Any,
    watched_inputs: Iterable[Watched],
    observations: Mapping[str, Observed] | None = None,
) -> RunError | None:
    """The error that ends a model at bad records of an input with `fail`, with the first of them.

    `observations`: what it saw of each view; None: they are counted now, as the execution did not come to its end.
    """
    for item in watched_inputs:
        if item.policy is not OnBadRecord.FAIL or (observations is not None and not observations[item.view].bad):
            continue
        records = _records(session, execution, item)
        if records is None:
            continue
        count = observations[item.view].bad if observations is not None else records.count()
        if count:
            return error(item.name, count, _lines(records))
    return None


def first_lines(session: SparkSession, execution: Any, item: Watched) -> list[str]:
    records = _records(session, execution, item)
    return _lines(records) if records is not None else []


def _lines(records: DataFrame) -> list[str]:
    return [
        _line(r["reason"], json.loads(r["origin"]), r["raw"], r["row"]) for r in records.limit(_MAX_EXAMPLES).collect()
    ]


@contextmanager
def explained(session: SparkSession, execution: Callable[[], Any], watched_inputs: Iterable[Watched]) -> Iterator[None]:
    """Turn Spark's error at the first bad record of an input with `fail` into one that reports all of them."""
    try:
        yield
    except spark_exceptions() as failure:
        first = from_text(str(failure))
        if first is None:
            raise
        raise refused(session, execution(), watched_inputs) or first from None


def error(name: str, count: int, lines: Iterable[str]) -> RunError:
    lines = list(lines)
    several = "a record" if count == 1 else f"{count:,} records"
    message = f"{several} of {name} cannot be read: {'; '.join(lines)}"
    hint = (
        "Correct the records or the schema and build again: the same records are read. Or set on_bad_record: "
        "quarantine (they go to <model>__quarantine) or drop (they are counted)."
    )
    if any(" is NULL" in line for line in lines):
        hint += " For rows without an event time only: 'on_null: drop' in the watermark, or 'where .. is not null'."
    return RunError("bad-record", message, hint)


def from_text(text: str) -> RunError | None:
    raised_fault = mark_bad_records.raised(text)
    if raised_fault is None:
        return None
    reason, origin = raised_fault
    return error(str(origin.get("source", "a source")), 1, [_line(reason, origin, None)])


def _line(reason: str, origin: Mapping[str, Any], raw: bytes | None, row: str | None = None) -> str:
    record_text = bytes(raw).decode("utf-8", errors="replace") if raw else row
    where = place(origin, raw)
    text = f"{where}: {reason}" if where else reason
    return (
        f"{text} ({record_text[:_MAX_LENGTH]}{'...' if len(record_text) > _MAX_LENGTH else ''})"
        if record_text
        else text
    )


def place(origin: Mapping[str, Any], raw: bytes | None) -> str:
    """Where a record came from, for people: a file with its line, or topic, partition and offset; empty: not known."""
    if "topic" in origin:
        return f"topic {origin['topic']}, partition {origin.get('partition')}, offset {origin.get('offset')}"
    if isinstance(origin.get("file_path"), str):
        return _file(origin["file_path"], raw)
    return ", ".join(f"{key} {value}" for key, value in origin.items() if key != "source")


def _file(uri: str, raw: bytes | None) -> str:
    path = listing.local(local_paths.decoded(uri))
    if path is None:
        return uri
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if raw and line.rstrip(b"\r\n") == bytes(raw):
                    return f"{path}:{number}"
    except OSError:
        pass
    return str(path)


@dataclass(slots=True)
class TakenOut:
    bad: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)

    def refused(
        self,
        session: SparkSession,
        execution: Any,
        watched_inputs: Iterable[Watched],
        observations: Mapping[str, Observed],
    ) -> RunError | None:
        """The error of an input with too many bad records, those of an uncommitted execution included."""
        for item in watched_inputs:
            observation = observations[item.view]
            if item.policy is OnBadRecord.FAIL or not observation.bad:
                continue
            bad, read = observation.bad + self.bad.get(item.view, 0), observation.read + self.records.get(item.view, 0)
            if item.limit.exceeded(bad, read):
                return _error(item, bad, read, first_lines(session, execution, item))
        return None

    def add(self, watched_inputs: Iterable[Watched], observations: Mapping[str, Observed]) -> None:
        """Count what was committed; the static side of a stream is read again by each micro-batch."""
        for item in watched_inputs:
            if item.policy is not OnBadRecord.FAIL and item.once:
                self.bad[item.view] = observations[item.view].bad + self.bad.get(item.view, 0)
                self.records[item.view] = observations[item.view].read + self.records.get(item.view, 0)


def _error(item: Watched, bad: int, read: int, lines: list[str]) -> RunError:
    limit = f"more than max_bad_records: {item.limit}" if str(item.limit) else "all that the build has read"
    message = f"{bad:,} of {read:,} records of {item.name} cannot be read, {limit}: {'; '.join(lines)}"
    hint = (
        "Correct the schema or the records and build again: the same records are read. Or let them be taken out: "
        "'max_bad_records: 100%' (or a number) in the source."
    )
    return RunError("too-many-bad-records", message, hint)


def warnings(model: str, watched_inputs: Iterable[Watched], bad: Mapping[str, int]) -> tuple[Diagnostic, ...]:
    policies = {item.name: item.policy for item in watched_inputs}
    return tuple(_warning(model, name, count, policies.get(name)) for name, count in bad.items() if count)


def _warning(model: str, name: str, count: int, policy: OnBadRecord | None) -> Diagnostic:
    several = "1 record" if count == 1 else f"{count:,} records"
    is_quarantined = policy is OnBadRecord.QUARANTINE
    outcome = f"{'was' if count == 1 else 'were'} {'quarantined' if is_quarantined else 'dropped'}"
    message = f"{several} of {name} could not be read and {outcome}"
    hint = (
        f"See why: engine show {model}__quarantine --table."
        if is_quarantined
        else "'on_bad_record: quarantine' keeps them."
    )
    return Diagnostic("bad-records", message, hint, Level.WARNING, node=model)
