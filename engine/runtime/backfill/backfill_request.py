"""`engine backfill`: the range that is asked for, and the input that a stream has read, as batches.

What has landed since is left to the stream: it would be in the table twice. How far each source was read is in Spark's
checkpoint: its log of files, Kafka's offsets, the snapshot of a table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.compile import Input, Model, Source
from engine.errors import Location, StateError, UsageError, near
from engine.lake.changes.read_files import forget_tasks, read_tasks
from engine.lake.table_facts import TableFacts
from engine.lake.table_writer import load
from engine.plan.actions.file_checks import number, some_files
from engine.plan.history_edits import not_recomputed
from engine.plan.source_changes import StreamSource
from engine.plan.tables.upstream_tables import Upstream, recorded_start
from engine.relations import quoted
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.source_file_check import modified
from engine.runtime.inputs.stream_sources import read_upstreams
from engine.sources import KINDS, SourceSpec, file_traits, listing, source_traits, table_traits
from engine.spark.internals.handles import each
from engine.state import ModelState
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import accepted_times, logged, reaches
from engine.state.state_path import StatePath

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


REJECTED = "backfill-rejected"


def rejected(model: Model, message: str, hint: str = "") -> StateError:
    """Return why rows of a model cannot be computed again; without a hint a full refresh is what is left."""
    hint = hint or f"To compute all rows from the input that is left: engine build -f -s {model.name}"
    return StateError(REJECTED, message, hint, node=model.name, location=Location(model.file))


@dataclass(frozen=True, slots=True)
class ReadInput:
    """Gives the rows that a stream has read; the last micro-batch is committed, `streams` in order of its offsets."""

    run: Run
    model: Model
    state: ModelState
    session: SparkSession
    checkpoint: StatePath
    batch: int
    streams: Sequence[StreamSource]
    stack: ExitStack

    def rows(self, item: Input) -> DataFrame | None:
        """Return the rows of an input that is read as a stream; None: it is a static one.

        Raises StateError: `backfill-rejected`, `source-gap`: not all of them can be read again.
        """
        if not item.stream:
            return None
        node = self.run.manifest.nodes[item.node]
        spec = node.spec if isinstance(node, Source) else None
        traits = source_traits(spec.format) if spec is not None else None
        if spec is None or traits is None or traits.is_table:
            return self._table(item, spec)
        lines = [line for line, stream in enumerate(self.streams) if stream.node == item.node]
        if traits.reads_files:
            return self._files(spec, lines)
        if traits.records_between is not None:
            return self._records_between(spec, lines, traits.records_between)
        raise rejected(self.model, f"records of '{item.name}' (format {spec.format}) cannot be re-read")

    def _files(self, spec: SourceSpec, lines: Sequence[int]) -> DataFrame:
        times = self._agreed(spec.name, [self._logged_times(self.streams[line].number) for line in lines])
        elsewhere = {uri for uri in times if listing.local(uri) is None}
        remote_times = listing.times_now(elsewhere, [spec], self.run.place) if elsewhere else {}
        changed_files = []
        for uri, read_time in times.items():
            path = listing.local(uri)
            # Of other file systems Spark finds out what is gone.
            is_listed = path is not None or remote_times is not None
            if is_listed and (modified(path) if path is not None else (remote_times or {}).get(uri)) != read_time:
                changed_files.append(uri)
        if changed_files:
            names = some_files(changed_files, self.run.place.root)
            message = (
                f"{number(len(changed_files), 'file')} of '{spec.name}' changed or gone since they were read: {names}"
            )
            hint = "Put them back as they were (with their modification times), and run the command again."
            raise rejected(self.model, message, hint)
        return file_traits(spec).read(self.session, spec, self.run.place, times)

    def _logged_times(self, source: int) -> dict[str, int]:
        accepted = accepted_times(self.checkpoint.parent)
        files = logged(self.checkpoint, source, to=reaches(self.checkpoint, source, self.batch))
        return {uri: accepted.get(uri, file.modified) for file in files for uri in [local_paths.decoded(file.uri)]}

    def _records_between(self, spec: SourceSpec, lines: Sequence[int], bounded: Callable[..., SourceSpec]) -> DataFrame:
        offsets = spark_checkpoint.offset_lines(self.checkpoint, self.batch)
        end = self._agreed(spec.name, [offsets[line] or {} for line in lines])
        begin = self._agreed(spec.name, [self._beginning(self.streams[line].number) for line in lines])
        try:
            bounded_spec = bounded(self.session, spec, self.run.place, begin, end)
        except StateError as error:
            diagnostic = error.diagnostic
            raise StateError.from_diagnostics([diagnostic.at(Location(self.model.file), self.model.name)]) from error
        return KINDS[spec.format].read_batch(self.session, bounded_spec, self.run.place)

    def _beginning(self, source: int) -> dict[str, Any]:
        path = self.checkpoint / "sources" / str(source) / "0"
        try:
            # A version line, and JSON (Spark class HDFSMetadataLog).
            offsets: dict[str, Any] = json.loads(path.read_text(encoding="utf-8", errors="replace").splitlines()[-1])
        except (OSError, ValueError, IndexError) as error:
            raise rejected(self.model, f"{path}, which records where the stream began, cannot be read") from error
        return offsets

    def _agreed(self, name: str, per_stream: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What two streams of one source have read: they end at different places in the middle of a build only."""
        if not per_stream or any(entries != per_stream[0] for entries in per_stream):
            hint = f"Build it first: engine build -s {self.model.name}"
            raise rejected(self.model, f"it is not known how far '{name}' was read", hint)
        return per_stream[0]

    def _table(self, item: Input, spec: SourceSpec | None) -> DataFrame:
        upstream = next(candidate for candidate in read_upstreams(self.run, self.model) if candidate.node == item.node)
        snapshot = self._snapshot(upstream)
        name = ".".join(map(quoted, upstream.table))
        frame = self.session.table(name)
        if snapshot is None:
            frame = frame.where("false")
        elif snapshot != upstream.facts.snapshot:
            table, read_name = load(self.session, name), f"{upstream.full}#read-{uuid.uuid4().hex}"
            tasks = list(each(table.newScan().useSnapshot(snapshot).planFiles()))
            self.stack.callback(forget_tasks, self.session, table, read_name)
            # As the columns are now: those of the snapshot may have had other names.
            frame = read_tasks(self.session, table, tasks, read_name) if tasks else frame.where("false")
        return table_traits(spec).as_declared(frame, spec, self.run.place) if spec is not None else frame

    def _snapshot(self, upstream: Upstream) -> int | None:
        start, facts = recorded_start(self.state, upstream), upstream.facts
        if start.uuid != facts.uuid or (start.at is not None and start.seed is None):
            message = f"'{self.model.name}' has not read {upstream.full} from its first row on"
            raise rejected(self.model, message)
        ids = [snapshot.id for snapshot in facts.history]
        offsets = [
            o for o in spark_checkpoint.source_offsets(self.checkpoint, self.batch) if o.get("snapshot_id") in ids
        ]
        reached = {int(offset["snapshot_id"]) for offset in offsets}
        if len(reached) > 1 or any(_is_partly_read(facts, offset) for offset in offsets):
            hint = f"Build it first: engine build -s {self.model.name}"
            raise rejected(self.model, f"'{self.model.name}' has read {upstream.full} in part", hint)
        if not reached and start.snapshot is None and any(self._read_offsets(upstream)):
            raise rejected(self.model, f"it is not known how far {upstream.full} was read")
        return next(iter(reached), start.snapshot)

    def _read_offsets(self, upstream: Upstream) -> list[Mapping[str, Any]]:
        lines = spark_checkpoint.offset_lines(self.checkpoint, self.batch)
        input_lines = [
            lines[n] for n, stream in enumerate(self.streams) if stream.node == upstream.node and n < len(lines)
        ]
        return [offset for offset in input_lines if offset is not None and offset.get("snapshot_id", -1) != -1]


def _is_partly_read(table: TableFacts, offset: Mapping[str, Any]) -> bool:
    snapshot = next(candidate for candidate in table.history if candidate.id == offset["snapshot_id"])
    files = snapshot.summary.get("total-data-files" if offset.get("scan_all_files") else "added-data-files", "0")
    position = offset.get("position")
    return snapshot.operation == "append" and isinstance(position, int) and position < int(files)


# By the type of a column as PyIceberg prints it, what begins a literal of Spark's.
_TIMES = {"timestamptz": "TIMESTAMP", "timestamp": "TIMESTAMP_NTZ", "date": "DATE"}
# In microseconds.
_DAY = 86_400_000_000
_FORM = "Write a date or a time in UTC: 2026-05-01 or '2026-05-01 10:30:00'."


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Rows whose time is in a range.

    `kind`: what begins a literal of its type. `begin`: the first time, in UTC. `end`: behind the last one; None: open.
    """

    column: str
    kind: str
    begin: datetime
    end: datetime | None

    @property
    def condition(self) -> str:
        """The condition over the columns of the table, as SQL; NULL is outside."""
        name = quoted(self.column)
        upper = f" AND {name} < {self._literal(self.end)}" if self.end is not None else ""
        return f"({name} >= {self._literal(self.begin)}{upper})"

    def _literal(self, at: datetime) -> str:
        if self.kind == "DATE":
            return f"{self.kind} '{at:%Y-%m-%d}'"
        # A `pre_hook` may give the session another time zone.
        zone = "+00:00" if self.kind == "TIMESTAMP" else ""
        return f"{self.kind} '{at:%Y-%m-%d %H:%M:%S.%f}{zone}'"

    @property
    def day(self) -> str:
        micros = f"unix_micros({quoted(self.column)})"
        if self.kind == "TIMESTAMP":
            return f"date_from_unix_date(cast(({micros} - pmod({micros}, {_DAY})) div {_DAY} as int))"
        return f"to_date({quoted(self.column)})"

    def __str__(self) -> str:
        upper = f" to {_time_text(self.end)}" if self.end is not None else ""
        return f"{self.column} from {_time_text(self.begin)}{upper} (UTC)"


def _time_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M:%S}"


def check_model(model: Model) -> None:
    """Check that the rows of a model can be computed by themselves, each from its input.

    Raises:
        UsageError: it is not a streaming table.
        StateError: `backfill-rejected`.
    """
    name = model.name
    if not model.streaming:
        hint = f"A build computes it: engine build -s {name}"
        raise UsageError("usage", f"'{name}' is not a streaming table (materialized: {model.materialized.value})", hint)
    if (reason := not_recomputed(model)) is not None:
        raise rejected(model, reason)


def read_range(model: Model, table: TableFacts, column: str | None, begin: str, end: str | None) -> TimeRange:
    """Return the range that a command names.

    `column`: that has the time; None: that of the watermark, of the partitions, or the only one.

    Raises UsageError: it is not a range of times of one column.
    """
    kinds = {name: _TIMES[kind] for name, kind in table.columns if kind in _TIMES}
    name = _named_column(model, kinds, column) if column is not None else _default_column(model, kinds)
    first, last = _time("--from", begin), _time("--to", end) if end is not None else None
    if last is not None and last <= first:
        raise UsageError("usage", f"the range from {begin} to {end} is empty", "--to is after --from.")
    if kinds[name] == "DATE" and any(at is not None and at.time() != time() for at in (first, last)):
        raise UsageError("usage", f"'{name}' is a date", "Write dates: --from 2026-05-01 --to 2026-05-02.")
    return TimeRange(name, kinds[name], first, last)


def _named_column(model: Model, kinds: dict[str, str], column: str) -> str:
    column_name = next((name for name in kinds if name.lower() == column.lower()), None)
    if column_name is None:
        hint = near(column, kinds) or f"Its columns of times: {', '.join(kinds) or 'none'}."
        raise UsageError("unknown-column", f"{model.relation} has no date or timestamp column '{column}'", hint)
    return column_name


def _default_column(model: Model, kinds: dict[str, str]) -> str:
    spelled = {name.lower(): name for name in kinds}
    marks = [item.watermark.column for item in model.inputs if item.stream and item.watermark is not None]
    for names in (marks, [part.column for part in model.write.partition_by], list(kinds)):
        matching = {spelled[name.lower()] for name in names if name.lower() in spelled}
        if len(matching) == 1:
            return matching.pop()
    hint = f"Name the column: --column {next(iter(kinds), 'NAME')}"
    if not kinds:
        hint = f"To compute all rows again: engine build -f -s {model.name}"
    raise UsageError("usage", f"{model.relation} has {'several' if kinds else 'no'} columns of dates or times", hint)


def _time(option: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("usage", f"{option} {text!r} is not a date or a time", _FORM) from None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def day_after(at: datetime) -> datetime:
    return datetime.combine(at.date() + timedelta(days=1), time())
