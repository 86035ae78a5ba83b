"""The one writer of streaming tables: a foreachBatch function that marks every commit.

What the execution of a batch saw decides whether it is committed: rows that fail a `fail` expectation or records that
must not be skipped end the model, and a batch without rows commits nothing. The order is deleted keys, quarantine,
table, model.json, Spark's commit. After a crash the batch comes again, with the same id and rows; markers say what has
been written. A batch whose marker is in the table is computed into Spark's `noop` sink: returning early would leave its
state uncommitted and lose its watermark (STATE_STORE_COMMIT_VALIDATION_FAILED, measured).

The offsets that Spark computes a batch from, and those in its checkpoint, must be the same.

Rows of one batch that go to two tables come from one computation, as a batch that is computed again after a crash may
differ (a static side, the clock, state): it is written to its generation's `batches/` before the first commit, and all
outputs and replays read it there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from engine import kill_points
from engine.compile import Expectation, Model
from engine.errors import EngineError, StateError
from engine.events import Metrics
from engine.lake.commit_guard import ExpectedTable
from engine.local_paths import AS_IT_IS
from engine.runtime.quality import bad_records, expectations
from engine.runtime.quality.bad_records import Observed, TakenOut, Watched
from engine.runtime.quality.quarantine import Quarantine
from engine.runtime.sinks import Output
from engine.runtime.sinks.output import Appends
from engine.spark.internals import executions
from engine.spark.internals.queries import end_offsets
from engine.state import ModelState, TableState
from engine.state.checkpoint import digest_of, markers_of, with_digest
from engine.state.model_state import as_json
from engine.state.state_path import StatePath, content, remove_tree, spark_location, store_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


# Spark writes it last.
_SUCCESS_FILE = "_SUCCESS"
_COUNTS = "_counts.json"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    rows: DataFrame
    failed_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """The kept batches of a generation, one at most; those of another query (`fingerprint`) are not used."""

    folder: StatePath
    fingerprint: str

    def _path(self, batch: int) -> StatePath:
        return self.folder / f"{batch}-{self.fingerprint}"

    def store(self, frame: DataFrame, batch: int, counts: Mapping[str, int]) -> StoredBatch:
        """Write a batch, and read it from there; a kill in between leaves what `find` does not find.

        `frame`: the rows; the caller caches them: a stateful step that is computed twice counts late rows twice.
        `counts`: how many rows failed each expectation, by its name, those that were dropped among them.
        """
        path = self._path(batch)
        store_of(self.folder).put(path.name + _COUNTS, as_json(counts))
        # Hadoop takes a path as it is, and what is read for a pattern.
        frame.write.mode("overwrite").parquet(spark_location(path))
        kill_points.reach("kept", self.folder.parent.parent.name, batch, str(path))
        return StoredBatch(frame.sparkSession.read.options(**AS_IT_IS).parquet(spark_location(path)), dict(counts))

    def load(self, session: SparkSession, batch: int) -> StoredBatch | None:
        path = self._path(batch)
        if not (path / _SUCCESS_FILE).exists():
            return None
        rows = session.read.options(**AS_IT_IS).parquet(spark_location(path))
        counts = self.folder / (path.name + _COUNTS)
        try:
            return StoredBatch(rows, msgspec.json.decode(counts.read_text(encoding="utf-8"), type=dict[str, int]))
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            hint = "Restore the file from a backup: it counts the rows of a micro-batch that is not committed yet."
            raise StateError("state-unreadable", f"{counts} cannot be read: {error}", hint) from error

    def clear(self) -> None:
        remove_tree(self.folder, ignore_errors=True)


def repeatable(model: Model) -> bool:
    """Return whether a micro-batch that is computed again has the same rows.

    Not with a static side, nor where a stateful step depends on the order of its rows (dedup, the last digits of a
    sum).
    """
    all_streams = all(item.stream for item in model.inputs)
    return all_streams and not model.stateful and model.deterministic


_NO_OFFSET = "-"


def offsets_of_batch(checkpoint: StatePath, query: StreamingQuery, batch: int) -> bytes:
    """Return the content of `offsets/<n>`, which is there when the micro-batch is written.

    Raises StateError: `checkpoint-changed`: it is not there, or names other offsets than the micro-batch has.
    """
    path = checkpoint / "offsets" / str(batch)
    try:
        log_content = content(path)
    except OSError as error:
        raise _checkpoint_changed(path, f"cannot be read: {error.strerror or error}", batch) from error
    lines = log_content.decode(errors="replace").splitlines()
    if [_value(line) for line in lines[2:]] != [
        _value(_NO_OFFSET if text is None else text) for text in end_offsets(query)
    ]:
        raise _checkpoint_changed(path, "has other offsets than the micro-batch was computed from", batch)
    return log_content


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _checkpoint_changed(path: StatePath, fault: str, batch: int) -> StateError:
    message = f"{path} {fault}"
    hint = f"Nothing of micro-batch {batch} was written. Find the other writer of the checkpoint, and build again."
    return StateError("checkpoint-changed", message, hint)


# Spark calls the writer a moment before it has told who the query is.
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """What became of a micro-batch.

    `metrics`: as far as the writer knows them; bad records are by view. `replayed`: it had been written before a crash.
    """

    metrics: Metrics = field(default_factory=Metrics)
    snapshot: int | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What must be known of a batch before it is committed.

    `quarantine`: for rows that must not be lost. `stored_batches`: with several outputs that cannot be computed again.
    `batch_fault`: why a computed batch cannot be committed, because of its files. `refresh` is called after each batch,
    so that the next one sees static files as they are then.
    """

    watched_inputs: tuple[Watched, ...] = ()
    checks: tuple[Expectation, ...] = ()
    quarantine: Quarantine | None = None
    stored_batches: StoredBatches | None = None
    batch_fault: Callable[[int], EngineError | None] = lambda _: None
    refresh: Callable[[], None] = lambda: None


@dataclass(slots=True)
class BatchWriter:
    """Writes micro-batches; called by Spark, one batch at a time, in a thread of its own.

    Give it to `foreachBatch`, then tell it the query: `writer.query.set_result(query)`. Without `rules` nothing is
    rejected; without `output` rows are appended. `markers` gives what a commit carries, by batch id. At the start of
    the query, `reached` is the newest batch whose marker is in the table (None: none is), `snapshots` has that of each
    batch, and `base` is the table's; a generation that has written nothing commits onto it. `error`: what went wrong in
    here; Spark wraps it beyond recognition.
    """

    relation: str
    markers: Callable[[int], Mapping[str, str]]
    folder: TableState
    state: ModelState
    reached: int | None
    snapshots: Mapping[int, int]
    rules: Rules = field(default_factory=Rules)
    output: Output | None = None
    base: int | None = None
    descends: Callable[[int, int], bool] = lambda _, __: False
    query: Future[StreamingQuery] = field(default_factory=Future)
    taken_out: TakenOut = field(default_factory=TakenOut)
    written_batches: dict[int, WrittenBatch] = field(default_factory=dict)
    error: BaseException | None = None
    checkpoint: StatePath | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        try:
            offsets = self._offsets(batch)
            result = self._write(frame, batch, markers_of(offsets))
            ends = with_digest(self.state.ends, batch, digest_of(offsets))
            self.record(batch=batch, snapshot=result.snapshot or self.state.snapshot, ends=ends)
            self.written_batches[batch] = result
            if self.rules.stored_batches is not None:
                self.rules.stored_batches.clear()
            self.rules.refresh()
            kill_points.reach("ended", self.relation, batch)
        except BaseException as error:
            self.error = error
            raise

    def record(self, **changes: object) -> None:
        """Change model.json; the main thread and Spark's call this."""
        batch = changes.get("batch")
        number = batch if isinstance(batch, int) else None
        if number is not None:
            kill_points.reach("committed", self.relation, number)
        with self._guard:
            self.state = replace(self.state, **changes)  # type: ignore[arg-type]
            self.folder.save(self.state)
        kill_points.reach("started" if number is None else "recorded", self.relation, number)

    def _offsets(self, batch: int) -> bytes:
        return offsets_of_batch(self._checkpoint(), self.query.result(_START_SECONDS), batch)

    def _checkpoint(self) -> StatePath:
        if self.checkpoint is None:
            self.checkpoint = self.folder.checkpoint(self.state.generation)
        return self.checkpoint

    def _write(self, frame: DataFrame, batch: int, offsets: Mapping[str, str]) -> WrittenBatch:
        kill_points.reach("computing", self.relation, batch)
        if self.reached is not None and batch <= self.reached:
            compute_only(frame)
            return WrittenBatch(snapshot=self.snapshots.get(batch), replayed=True)
        stored_batch = (
            self.rules.stored_batches.load(frame.sparkSession, batch) if self.rules.stored_batches is not None else None
        )
        if stored_batch is not None:
            # Computed again for its state; its rows are those of the first time.
            compute_only(frame)
            return self._commit(stored_batch.rows, batch, offsets, stored_batch)
        if self.rules.stored_batches is None and not expectations.splits(self.rules.checks):
            return self._commit(frame, batch, offsets)
        # Several outputs take rows of it, and it is computed once.
        cached = frame.persist()
        try:
            return self._commit(cached, batch, offsets)
        finally:
            cached.unpersist()

    def _commit(
        self, frame: DataFrame, batch: int, offsets: Mapping[str, str], stored_batch: StoredBatch | None = None
    ) -> WrittenBatch:
        """Write a batch and commit it, unless what it holds forbids that; `stored_batch`: where its rows are from."""
        rules, output = self.rules, self.output or Appends(self.relation)
        session, query = frame.sparkSession, self._query_id()
        with bad_records.explained(session, self._execution, rules.watched_inputs):
            prepared = output.prepare(expectations.passing(frame, rules.checks), query)
        try:
            execution = self._execution()
            observations = bad_records.observed(session, execution, rules.watched_inputs)
            failed_counts = _failed_counts(stored_batch, execution, rules.checks)
            refusal: EngineError | None = bad_records.refused(session, execution, rules.watched_inputs, observations)
            refusal = (
                refusal or expectations.refused(execution, rules.checks, failed_counts) or rules.batch_fault(batch)
            )
            refusal = refusal or prepared.refusal
            if refusal is None:
                refusal = self.taken_out.refused(session, execution, rules.watched_inputs, observations)
            if refusal is not None:
                prepared.discard()
                raise refusal
            parted = expectations.parted(rules.checks, failed_counts)
            if (parted or prepared.several) and rules.stored_batches is not None and stored_batch is None:
                prepared.discard()
                safe = rules.stored_batches.store(frame, batch, failed_counts)
                return self._commit(safe.rows, batch, offsets, safe)
            markers = {**self.markers(batch), **offsets}
            prepared.first(batch, markers)
            failing = expectations.failing(frame, rules.checks) if parted else None
            more_rows = [rows for rows in (failing, prepared.quarantined) if rows is not None]
            quarantined = self._quarantine(session, batch, observations, more_rows)
            commit = prepared.commit(markers, self._expected(markers["model"]))
            self.taken_out.add(rules.watched_inputs, observations)
        finally:
            prepared.close()
        metrics = Metrics(
            skipped=bad_records.skipped_records(rules.watched_inputs, observations),
            bad_records={view: observation.taken_out for view, observation in observations.items()},
            bad_reasons={
                view: observation.reason for view, observation in observations.items() if observation.taken_out
            },
            failed_checks=failed_counts,
            quarantined=quarantined,
        )
        return WrittenBatch(commit.counted(metrics), commit.snapshot) if commit else WrittenBatch(metrics)

    def _expected(self, model: str) -> ExpectedTable:
        """What the table must be for the next commit; nobody has written to it since but others."""
        last = self.base if self.state.snapshot is None else self.state.snapshot
        return ExpectedTable(model, self.state.uuid, last, self.descends)

    def _query_id(self) -> str:
        return str(self.query.result(_START_SECONDS).id)

    def _execution(self) -> Any:
        return executions.of_batch(self.query.result(_START_SECONDS))

    def _quarantine(
        self, session: SparkSession, batch: int, observations: Mapping[str, Observed], more_rows: Sequence[DataFrame]
    ) -> int:
        table, markers = self.rules.quarantine, self.markers(batch)
        if table is None:
            return 0
        query = self._query_id()
        earlier_commit = table.wrote(query, batch)
        if earlier_commit is not None and earlier_commit.marker("fingerprint") == markers["fingerprint"]:
            return int(earlier_commit.summary.get("added-records", 0))
        parts = list(bad_records.to_quarantine(session, self._execution(), self.rules.watched_inputs, observations))
        parts += more_rows
        if earlier_commit is not None:
            # The model was changed between the outputs of the batch: all of it follows the new rules.
            return table.redo(session, parts, batch, query, markers, earlier_commit)
        return table.append(session, parts, batch, query, markers) if parts else 0


def _failed_counts(
    stored_batch: StoredBatch | None, execution: Any, checks: tuple[Expectation, ...]
) -> Mapping[str, int]:
    if stored_batch is None:
        return expectations.counted(execution, checks)
    if all(check.name in stored_batch.failed_counts for check in checks):
        return stored_batch.failed_counts
    # Without marks in its rows only what was computed again can tell.
    return (
        expectations.counts_of(stored_batch.rows, checks)
        if expectations.splits(checks)
        else (expectations.counted(execution, checks))
    )


def compute_only(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def rules_of(
    model: Model, watched_inputs: tuple[Watched, ...], quarantine: Quarantine | None, batches: StatePath
) -> Rules:
    """Return what must be known of a batch before its commit; `batches` keeps those that cannot be computed again."""
    several = expectations.splits(model.expectations) or model.write.delete_when is not None
    stored_batches = StoredBatches(batches, model.fingerprint) if several and not repeatable(model) else None
    return Rules(watched_inputs, model.expectations, quarantine, stored_batches)
