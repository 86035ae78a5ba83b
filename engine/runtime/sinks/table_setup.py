"""Making the tables of streaming models: an empty table and the state of its generation, together.

What the project says of a model and its columns, written to its table (`persist_docs`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model, Relation
from engine.compile.nodes.model_settings import OnSchemaChange
from engine.compile.output.contract import declared_faults
from engine.compile.output.storable_types import GivenColumn, storable_faults
from engine.errors import Diagnostic, Level, Location, RunError, StateError
from engine.events import Diagnosed
from engine.lake import table_writer as lake
from engine.lake.comments import comment_table, comment_view
from engine.lake.schema_match import SchemaMatch, duplicate_names, shown_path
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import TableLayout
from engine.plan.actions.descriptions import changed_properties, comments_of, table_comment, table_properties
from engine.plan.deployed import generations, state_folder
from engine.plan.tables.column_checks import column_fault, dropped_columns
from engine.relations import quoted
from engine.runtime.context import ownership
from engine.runtime.quality.expectations import check_conditions
from engine.runtime.sinks.deleted_keys import match_table, with_spelling
from engine.runtime.sinks.history_output import with_validity
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.runtime.context.run_context import Run


def layout(model: Model, generation: int) -> TableLayout:
    write = model.write
    return TableLayout(
        write.partition_by,
        write.sort_by,
        table_properties(model, generation),
        table_comment(model),
    )


def make(model: Model, relation: Relation, generation: int, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a new generation; what an earlier attempt left behind goes first.

    The returned state is `building`, and saved before the table is made: a kill in between is seen by the next start.

    Raises:
        StateError: `name-taken`: the staging table's name is somebody else's; nothing was changed.
    """
    if relation != model.relation:
        ownership.drop_beside(frame.sparkSession, model, folder, relation, state_folder.STAGING, generation)
    folder.discard(generation)
    return remake(model, relation, new_state(relation, generation), folder, frame)


def new_state(relation: Relation, generation: int) -> ModelState:
    return ModelState(str(relation), generation, Phase.BUILDING, generation_id=generations.new_id())


def remake(model: Model, relation: Relation, state: ModelState, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a generation, or fit an empty one of the model's to it; its state stays as it is.

    A stream may have begun to read the model's own table, which is why that is never dropped.
    """
    session = frame.sparkSession
    building = replace(state, phase=Phase.BUILDING)
    folder.save(building)
    table_layout, columns = layout(model, state.generation), columns_of(model, frame)
    if relation == model.relation:
        # Only what the model made reaches this: no table, or an empty one (see `state_checks.fresh`).
        lake.recreate_table(session, relation.sql, columns, table_layout, folder.lease)
    else:
        table_layout = replace(table_layout, properties={**table_layout.properties, state_folder.STAGING: "true"})
        lake.drop_table(session, relation.sql)
        lake.create_table(session, relation.sql, columns, table_layout)
    return replace(building, uuid=lake.table_uuid(session, relation.sql))


def checked_frame(session: SparkSession, model: Model) -> DataFrame:
    """Return the rows of a model's query, whose inputs are registered in a session.

    Declared columns and the types of conditions are compared with what Spark finds, also where compile did not know.

    Raises:
        RunError: `column-type`, `unknown-column`, `column-undeclared`; `column-storage`, `partition-type`;
            `duplicate-name`; `condition-syntax`.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    frame = session.sql(model.sql)
    check_declared(model, frame)
    return frame


def check_declared(model: Model, frame: DataFrame) -> None:
    if twice := duplicate_names(frame.columns):
        message = f"the columns {', '.join(twice)} differ only in case"
        raise RunError("duplicate-name", message, "Give one of them another alias.", node=model.name)
    query_columns = [(column.name, column.dataType.simpleString()) for column in frame.schema.fields]
    storage_faults = storable_faults(model, [GivenColumn(name, type_) for name, type_ in query_columns])
    if faults := (*declared_faults(model, query_columns), *storage_faults):
        raise RunError.from_diagnostics(faults)
    check_conditions(model, frame)


def columns_of(model: Model, frame: DataFrame) -> DataFrame:
    stored_columns = frame.drop(*model.write.exclude)
    return with_validity(stored_columns, model.write) if model.write.history else stored_columns


def gone_note(names: Iterable[str]) -> str:
    return "; ".join(f"the query no longer returns column '{n}'; the table keeps it, NULL in new rows" for n in names)


def check_columns(model: Model, frame: DataFrame, earlier_columns: frozenset[str] | None = frozenset()) -> SchemaMatch:
    """Compare the columns of a query with those of the model's existing table; nothing is changed.

    Raises:
        StateError: `table-schema`: a column that the table lacks, or that the query gives no more, where
            `on_schema_change` does not say what to do; or a type that the table cannot hold.
    """
    match = match_table(frame, model.relation.sql)
    if (fault := column_fault(model, match, earlier_columns)) is not None:
        raise StateError.from_diagnostics((fault,))
    return match


def has_columns(model: Model, frame: DataFrame, earlier_columns: frozenset[str] | None) -> bool:
    match = match_table(frame, model.relation.sql)
    return not (match.alters or match.missing or match.incompatible or dropped_columns(match, earlier_columns))


def fitted(
    model: Model, frame: DataFrame, earlier_columns: frozenset[str] | None = frozenset()
) -> tuple[DataFrame, tuple[str, ...]]:
    """Bring the model's existing table and the rows of the query together: new columns, wider types, spelling.

    A type is widened whatever `on_schema_change` says. The rows get the table's spelling of each column; the notes say
    what was widened and what is missing. Raises StateError: `table-schema`.
    """
    match = check_columns(model, frame, earlier_columns)
    frame = with_spelling(frame, match.names)
    if model.write.on_schema_change is OnSchemaChange.IGNORE:
        frame = frame.drop(*match.added_columns)
    if match.alters:
        changed_columns = {path[0] for path in (*match.added, *(d.path for d in match.promoted))}
        lake.add_columns(
            model.relation.sql, frame.select(*(quoted(name) for name in frame.columns if name in changed_columns))
        )
    widened = ", ".join(f"'{shown_path(d.path)}' widened from {d.table} to {d.query}" for d in match.promoted)
    return frame, tuple(filter(None, [widened, gone_note(dropped_columns(match, earlier_columns))]))


def spelled_as(frame: DataFrame, columns: Iterable[str]) -> DataFrame:
    table_names = {name.lower(): name for name in columns}
    return with_spelling(frame, [table_names.get(name.lower(), name) for name in frame.columns])


def as_spelled(model: Model, columns: Iterable[str]) -> Model:
    table_names = {name.lower(): name for name in columns}

    def names(column_names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(table_names.get(name.lower(), name) for name in column_names)

    write = model.write
    parts = tuple(
        replace(part, column=table_names.get(part.column.lower(), part.column)) for part in write.partition_by
    )
    keys, order = names(write.unique_key), names(write.sequence_by)
    return replace(model, write=replace(write, unique_key=keys, sequence_by=order, partition_by=parts))


def set_properties(model: Model, session: SparkSession, table: TableFacts) -> None:
    """Bring the properties of an earlier table to what the project says; those it does not name stay."""
    if changes := changed_properties(model, table):
        lake.set_properties(session, model.relation.sql, changes)


_log = logging.getLogger("engine.runtime")


def describe(run: Run, model: Model) -> None:
    """Bring the comments of a model's table or view up to date; what cannot be written is only a warning."""
    from py4j.protocol import Py4JError

    persist, relation = model.operation.persist_docs, model.relation
    if not (persist.relation or persist.columns):
        return
    table_comments = comments_of(model)
    try:
        if model.computed_when_read:
            comment_view(run.spark, relation.catalog, relation.schema, relation.name, table_comments)
        else:
            kill_points.reach("describing", model.name)
            comment_table(run.spark, relation.sql, table_comments)
    except Py4JError:
        _log.exception("descriptions of %s", model.name)
        message = f"the descriptions of '{model.name}' were not written to {relation}"
        hint = "The rows were written. The next build retries; the log has the reason."
        place = Location(model.file)
        run.emit(
            Diagnosed(Diagnostic("comments-failed", message, hint, Level.WARNING, node=model.name, location=place))
        )
