"""Recreating a batch table in full or by partitions, and its quarantine before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.compile import Model, Source
from engine.compile.nodes.model_settings import Overwrite
from engine.errors import Location, StateError, errors_at
from engine.events import Diagnosed, Metrics
from engine.lake import table_writer as lake
from engine.lake.commits import Commit
from engine.lake.staging_branch import stage_replacement
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import same_partitions
from engine.plan.refresh.batch_inputs import batch_positions
from engine.runtime.context.run_context import Run
from engine.runtime.quality import bad_records, expectations
from engine.runtime.quality.bad_records import Watched
from engine.runtime.quality.quarantine import quarantine_of, quarantines
from engine.runtime.sinks import table_setup
from engine.sources import KINDS
from engine.spark.internals import executions
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Committing = Callable[["DataFrame", Mapping[str, str]], Commit | None]


def committing(model: Model, table: TableFacts | None, branch: str | None = None) -> Committing:
    """What commits the rows of a batch table, once, beside those of `table`; no commit if no partition is touched."""
    relation, options = model.relation.sql, model.write.write_options
    if model.write.overwrite is Overwrite.TABLE or table is None:
        layout = table_setup.layout(model, 1)
        if branch is not None:
            return lambda rows, markers: stage_replacement(rows, relation, layout, markers, options)
        return lambda rows, markers: lake.replace(rows, relation, layout, markers, options)

    def partitions(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        if not same_partitions(lake.load(rows.sparkSession, relation), table_setup.layout(model, 1)):
            message = f"{model.relation} is not partitioned as 'partition_by' declares"
            hint = f"Only whole partitions can be replaced; rebuild the table: engine build -f -s {model.name}"
            raise StateError("table-schema", message, hint, node=model.name, location=Location(model.file))
        return lake.overwrite_partitions(lake.stage(fitted, relation, options), markers, branch)

    return partitions


@dataclass(frozen=True, slots=True)
class Replaced:
    """A batch table that was built: the commit (None: it has no new row), and what was counted on the way."""

    commit: Commit | None
    metrics: Metrics = field(default_factory=Metrics)


def replace_table(
    run: Run,
    model: Model,
    frame: DataFrame,
    watched_inputs: Sequence[Watched],
    commit: Committing,
    markers: Mapping[str, str] | None = None,
) -> Replaced:
    """Replace the rows of a batch table by what the query gives now, as `commit` does, and those of its quarantine.

    The quarantine is committed first; after a kill in between both are recreated. `markers` are beside those of the
    run.

    Raises:
        RunError: `bad-record` or `expectation-failed`; nothing was written.
    """
    markers = {**run.markers(model, ModelState(str(model.relation))), **(markers or {})}
    if not watched_inputs and not model.expectations:
        commit_made = commit(frame, markers)
        return Replaced(commit_made, commit_made.counted(Metrics()) if commit_made else Metrics())
    session, checks = frame.sparkSession, model.expectations
    table = quarantine_of(run, model) if quarantines(model, watched_inputs) else None
    rows = expectations.checked_rows(frame, model, run.manifest).persist()
    execution = executions.of_frame(rows)
    try:
        with bad_records.explained(session, lambda: execution, watched_inputs):
            rows.count()
        observations = bad_records.observed(session, execution, watched_inputs)
        failed_counts = expectations.counted(execution, checks)
        refusal = bad_records.refused(session, execution, watched_inputs, observations)
        refusal = refusal or expectations.refused(execution, checks, failed_counts)
        if refusal is None:
            refusal = bad_records.TakenOut().refused(session, execution, watched_inputs, observations)
        if refusal is not None:
            raise refusal
        parts = list(bad_records.to_quarantine(session, execution, watched_inputs, observations))
        if expectations.parted(checks, failed_counts):
            parts.append(expectations.failing(rows, checks))
        aside = table.replace(session, parts, markers) if table and (parts or table.facts) else 0
        commit_made = commit(expectations.passing(rows, checks), markers)
    finally:
        rows.unpersist()
    counted = Metrics(
        skipped=bad_records.skipped_records(watched_inputs, observations),
        bad_records=bad_records.by_name(
            watched_inputs, {view: observation.bad for view, observation in observations.items()}
        ),
        bad_reasons=bad_records.reasons_by_name(
            watched_inputs, {view: observation.reason for view, observation in observations.items() if observation.bad}
        ),
        failed_checks={name: count for name, count in failed_counts.items() if count},
        quarantined=aside,
    )
    for warning in bad_records.warnings(model.name, watched_inputs, counted.bad_records):
        run.emit(Diagnosed(warning))
    return Replaced(commit_made, commit_made.counted(counted) if commit_made else counted)


def positions(run: Run, model: Model) -> dict[str, Any]:
    def of_source(source: Source) -> Mapping[str, Any]:
        kind = KINDS[source.spec.format]
        with errors_at(source.location):
            kind.check(source.spec, run.place)
            return kind.position(run.spark, source.spec, run.place)

    def of_table(node: Model) -> TableFacts | None:
        return run.lake.table(node.relation.schema, node.relation.name)

    return batch_positions(run.manifest, model, of_source, of_table)
