"""Building a history of full extracts: of the query as it is now, or of files that are extracts, one after another."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Manifest, Model, Source
from engine.compile.nodes.model_settings import Deletes, History
from engine.errors import Location, RunError, errors_at
from engine.events import Metrics, Outcome, Status
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, Way
from engine.runtime.batch.changed_inputs import read_markers
from engine.runtime.batch.history.change_log import ResultDifference, changed_rows, take_changes
from engine.runtime.batch.history.ended_versions import Extract, take_versions
from engine.runtime.batch.replace_table import positions, replace_table
from engine.runtime.context.ownership import descends_in
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.lifecycle import replaced_materialization
from engine.runtime.quality.bad_records import Watched
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support import explain
from engine.sources import OnBadRecord, listing
from engine.sources.listing import ExtractFile
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class _Building:
    run: Run
    session: SparkSession
    model: Model
    folder: TableState
    state: ModelState
    inputs: Mapping[str, Any]
    table: TableFacts | None
    earlier_columns: frozenset[str] | None
    notes: tuple[str, ...] = ()

    def take(self, manifest: Manifest, extract: Extract) -> Metrics:
        """Take an extract in one commit; `manifest` has the inputs as they are read for it."""
        watched_inputs = register(self.session, manifest, self.model, self.run.place, bounded=True)
        frame = table_setup.checked_frame(self.session, self.model)
        explain.log_plan(self.model, frame)
        return self.write(frame, watched_inputs, extract)

    def write(
        self,
        frame: DataFrame,
        watched_inputs: tuple[Watched, ...],
        extract: Extract,
        difference: ResultDifference | None = None,
    ) -> Metrics:
        """Write what an extract brings, in one commit; of a difference the frame has the rows that are added."""
        replaced_materialization.stands_as_view(self.run, self.session, self.model, self.table)
        model = self.model
        expected = None
        if self.table is not None:
            model = table_setup.as_spelled(model, [name for name, _ in self.table.columns])
            # Columns that the history adds are not the query's.
            frame, notes = table_setup.fitted(model, frame, self._query_columns())
            self.notes += notes
            relation = model.relation
            expected = ExpectedTable(model.name, self.table.uuid, self.table.snapshot, descends_in(self.run, relation))
        # Before the commit: a kill between commit and record must leave a table that is known to be ours.
        self.state = replace(self.state, phase=Phase.BUILDING, inputs={})
        self.folder.save(self.state)

        def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
            return take_extract(with_query_spelling(model, rows), rows, extract, markers, expected, difference)

        input_markers = read_markers(self.inputs)
        replaced_table = replace_table(
            self.run, model, frame, _failing(model, watched_inputs), commit, markers=input_markers
        )
        kill_points.reach("committed", model.name, None, model.relation.sql)
        self.table = self.run.lake.table(model.relation.schema, model.relation.name)
        current_table = self.table
        self.state = replace(
            self.state,
            uuid=current_table.uuid if current_table else None,
            snapshot=current_table.snapshot if current_table else None,
            columns=tuple(frame.columns),
        )
        return replaced_table.metrics

    def _query_columns(self) -> frozenset[str]:
        """The columns that the query gave before; those of the history, which it never gives, are not among them."""
        earlier_columns = (
            self.earlier_columns if self.earlier_columns is not None else frozenset(map(str.lower, self.state.columns))
        )
        return earlier_columns - set(self.model.write.history.columns)


def build_history(
    run: Run,
    session: SparkSession,
    model: Model,
    folder: TableState,
    state: ModelState,
    inputs: Mapping[str, Any],
    table: TableFacts | None,
    earlier_columns: frozenset[str] | None,
    choice: RefreshChoice | None = None,
) -> Outcome:
    """Take what a history has not taken: the query as it is now, or each file that is an extract, in order.

    `table`: to which versions or changes are added; None: the table is created.
    `choice`: what of the query's result has to be compared; None: all of it.

    Raises:
        RunError: see `take_versions` and `take_changes`.
        RunError: `extract-order`: a file is of a time that was taken before.
    """
    building = _Building(run, session, model, folder, state, inputs, table, earlier_columns)
    source = extract_source(run.manifest, model)
    totals = Metrics()
    if source is None:
        totals = _take_result(building, choice)
    else:
        taken_extracts = dict(state.extracts) if table is not None else {}
        with errors_at(source.location):
            files = listing.waiting(session, source.spec, run.place, taken_extracts)
        for file in files:
            totals = _add_metrics(
                totals, building.take(_reading_only(run.manifest, source, file), Extract(file.at, f"'{file.name}'"))
            )
            taken_extracts = listing.with_taken(taken_extracts, file)
            building.state = replace(building.state, extracts=taken_extracts)
            folder.save(building.state)
        if not files and building.table is None:
            message = f"'{source.spec.name}' has no files: there is no extract to begin with"
            raise RunError("extract-empty", message, "Land the first extract, then build again.", node=model.name)
    current_table = run.lake.table(model.relation.schema, model.relation.name)
    metadata_marks = current_table.shape if current_table is not None else {}
    snapshot = current_table.snapshot if current_table is not None else None
    # Only changes are looked for from a snapshot of the input: that of another history may expire.
    follows = model.write.history is History.CHANGES and source is None
    pinned = follows and positions(run, model) == inputs
    published_state = replace(
        building.state, phase=Phase.PUBLISHED, inputs=inputs, made=metadata_marks, snapshot=snapshot, pinned=pinned
    )
    folder.save(published_state)
    note = "; ".join(building.notes)
    return Outcome(Status.SUCCESS, note=note, snapshot_id=snapshot, **totals.numbers())


def _take_result(building: _Building, choice: RefreshChoice | None) -> Metrics:
    extract = Extract(time.time_ns() // 1000, "the query's result", of_build=True)
    run, session, model = building.run, building.session, building.model
    if building.table is None or choice is None or choice.way is not Way.CHANGES:
        return building.take(run.manifest, extract)
    with ExitStack() as stack:
        changed = changed_rows(run, session, model, choice, stack)
        if changed is None:
            return building.take(run.manifest, extract)
        building.notes = (changed.note,)
        return building.write(changed.difference.added, (), extract, changed.difference)


def take_extract(
    model: Model,
    rows: DataFrame,
    extract: Extract,
    markers: Mapping[str, str],
    expected: ExpectedTable | None,
    difference: ResultDifference | None = None,
) -> Commit | None:
    if model.write.history is History.CHANGES:
        return take_changes(model, rows, extract, markers, expected, difference)
    return take_versions(model, rows, extract, markers, expected)


def extract_source(manifest: Manifest, model: Model) -> Source | None:
    """The source of a model whose files are extracts; None: it reads all of its inputs in full.

    Raises RunError: `setting-conflict`: there are several.
    """
    nodes = (manifest.nodes[item.node] for item in model.inputs)
    sources = {node.id: node for node in nodes if isinstance(node, Source) and "full_extracts" in node.spec.settings}
    if len(sources) > 1:
        names = ", ".join(f"'{source.spec.name}'" for source in sources.values())
        message = f"{names} have 'full_extracts', and a history takes the files of one source in order"
        hint = "Keep a history for each of them, and join these."
        raise RunError("setting-conflict", message, hint, node=model.name, location=Location(model.file))
    return next(iter(sources.values()), None)


def with_query_spelling(model: Model, rows: DataFrame) -> Model:
    column_names = {name.lower(): name for name in rows.columns}
    placed = table_setup.as_spelled(model, rows.columns)
    compared = tuple(column_names.get(name.lower(), name) for name in model.write.check)
    return replace(placed, write=replace(placed.write, check=compared))


def _reading_only(manifest: Manifest, source: Source, file: ExtractFile) -> Manifest:
    settings = {**source.spec.settings, "path": file.path}
    node = replace(source, spec=replace(source.spec, settings=settings))
    return replace(manifest, nodes={**manifest.nodes, source.id: node})


def _failing(model: Model, watched_inputs: tuple[Watched, ...]) -> tuple[Watched, ...]:
    """The inputs, whose bad records end a build where their keys would be taken for deleted ones."""
    if model.write.deletes is not Deletes.CLOSE:
        return watched_inputs
    return tuple(replace(item, policy=OnBadRecord.FAIL) for item in watched_inputs)


def _add_metrics(first: Metrics, second: Metrics) -> Metrics:
    return replace(
        second,
        rows_out=(first.rows_out or 0) + (second.rows_out or 0),
        rows_updated=(first.rows_updated or 0) + (second.rows_updated or 0),
    )
