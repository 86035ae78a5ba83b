"""Recreating a batch table, and its quarantine before it; what must not be ends it before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.events import Diagnosed, Metrics
from engine.lake.commits import Commit
from engine.runtime.context.run_context import Run
from engine.runtime.quality import bad_records, expectations, too_many_bad_records
from engine.runtime.quality.bad_records import Watched
from engine.runtime.quality.quarantine import quarantine_of, quarantines
from engine.runtime.sinks.commit_batch_table import Committing
from engine.spark.internals import executions
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Replaced:
    """A batch table that was built: the commit (None: it has no new row), and what was counted on the way."""

    commit: Commit | None
    metrics: Metrics = field(default_factory=Metrics)


def replace_table(
    run: Run,
    model: Model,
    frame: DataFrame,
    watched: Sequence[Watched],
    commit: Committing,
    markers: Mapping[str, str] | None = None,
) -> Replaced:
    """Replace the rows of a batch table by what the query gives now, as `commit` does, and those of its quarantine.

    The quarantine is committed first. A kill between the commits leaves a table that is not up to date, so that
    both are recreated. `markers` are of the commit, beside those of the run.

    Raises:
        RunError: `bad-record` or `expectation-failed`; nothing was written.
    """
    markers = {**run.markers(model, ModelState(str(model.relation))), **(markers or {})}
    if not watched and not model.expectations:
        done = commit(frame, markers)
        return Replaced(done, done.counted(Metrics()) if done else Metrics())
    session, checks = frame.sparkSession, model.expectations
    table = quarantine_of(run, model) if quarantines(model, watched) else None
    rows = expectations.checked_rows(frame, model, run.manifest).persist()
    execution = executions.of_frame(rows)
    try:
        with bad_records.explained(session, lambda: execution, watched):
            rows.count()
        seen = bad_records.observed(session, execution, watched)
        failed = expectations.counted(execution, checks)
        refusal = bad_records.refused(session, execution, watched, seen)
        refusal = refusal or expectations.refused(execution, checks, failed)
        if refusal is None:
            refusal = too_many_bad_records.TakenOut().refused(session, execution, watched, seen)
        if refusal is not None:
            raise refusal
        parts = list(bad_records.to_quarantine(session, execution, watched, seen))
        if expectations.parted(checks, failed):
            parts.append(expectations.failing(rows, checks))
        aside = table.replace(session, parts, markers) if table and (parts or table.facts) else 0
        done = commit(expectations.passing(rows, checks), markers)
    finally:
        rows.unpersist()
    counted = Metrics(
        bad_records=bad_records.by_name(watched, {view: one.bad for view, one in seen.items()}),
        bad_reasons=bad_records.reasons_by_name(watched, {view: one.reason for view, one in seen.items() if one.bad}),
        failed_checks={name: count for name, count in failed.items() if count},
        quarantined=aside,
    )
    for warning in too_many_bad_records.warnings(model.name, watched, counted.bad_records):
        run.emit(Diagnosed(warning))
    return Replaced(done, done.counted(counted) if done else counted)
