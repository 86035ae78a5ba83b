"""Making the tables of streaming models: an empty table and the state of its generation, together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.compile.declared import declared_faults
from engine.compile.settings import OnSchemaChange, OutputMode
from engine.errors import Location, RunError, StateError
from engine.lake import write as lake
from engine.lake.layout import MERGED, REWRITTEN, Layout, PartitionField, SortField
from engine.lake.read import TableFacts
from engine.runtime import generations
from engine.runtime.described import table_comment
from engine.runtime.outputs.history import with_validity
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def layout(model: Model, generation: int) -> Layout:
    """The layout of the model's table."""
    write = model.write
    rewritten = not model.streaming or write.output_mode is OutputMode.COMPLETE
    defaults = REWRITTEN if rewritten else MERGED if write.unique_key else {}
    version = {"format-version": str(write.format_version)} if write.format_version else {}
    tags = {"engine.tags": ",".join(model.tags)} if model.tags else {}
    own = {"engine.model": model.name, "engine.generation": str(generation), **tags}
    return Layout(
        tuple(PartitionField(p.transform, p.column, p.number, p.field_name) for p in write.partition_by),
        tuple(SortField(s.column, s.descending, s.nulls_first) for s in write.sort_by),
        {**defaults, **version, **write.table_properties, **own},
        table_comment(model),
    )


def make(model: Model, relation: Relation, generation: int, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a new generation; what an earlier attempt left behind goes first.

    Returns:
        The state, still `building`: it is saved before the table is made, so that a kill in between is
        seen by the next start.
    """
    session = frame.sparkSession
    folder.discard(generation)
    building = ModelState(str(relation), generation, Phase.BUILDING, generation_id=generations.new_id())
    folder.save(building)
    lake.drop_table(session, relation.sql)
    lake.create_table(session, relation.sql, columns_of(model, frame), layout(model, generation))
    return replace(building, uuid=lake.table_uuid(session, relation.sql))


def check_declared(model: Model, frame: DataFrame) -> None:
    """Check the columns that the model declares against those that Spark finds, also where compile did not know.

    Raises:
        RunError: `column-type`, `unknown-column`, `column-undeclared`.
    """
    given = [(column.name, column.dataType.simpleString()) for column in frame.schema.fields]
    if found := tuple(declared_faults(model, given)):
        failure = RunError(found[0].code, found[0].message)
        failure.diagnostics = found
        raise failure


def columns_of(model: Model, frame: DataFrame) -> DataFrame:
    """A frame with the columns of the model's table: without those kept out, with those of the history."""
    kept = frame.drop(*model.write.exclude)
    return with_validity(kept, model.write) if model.write.history else kept


def check_columns(model: Model, frame: DataFrame, table: TableFacts) -> None:
    """Check that the table has a column for each of the query's, unless `on_schema_change` says what to do.

    Raises:
        StateError: `table-schema`.
    """
    added = _added(frame, table)
    if added and model.write.on_schema_change is OnSchemaChange.FAIL:
        message = f"{model.relation} has no column {', '.join(added)}"
        hint = (
            "Let the table get it (on_schema_change: append_columns) or go without (ignore), take it out of the query, "
            f"or build the table anew: engine build -f -s {model.name}"
        )
        raise StateError("table-schema", message, hint, node=model.name, location=Location(model.file))


def fitted(model: Model, frame: DataFrame, table: TableFacts) -> DataFrame:
    """Bring an earlier table and the rows of the query together as `on_schema_change` says.

    Raises:
        StateError: `table-schema`.
    """
    check_columns(model, frame, table)
    added = _added(frame, table)
    if added and model.write.on_schema_change is OnSchemaChange.IGNORE:
        return frame.drop(*added)
    if added:
        lake.add_columns(model.relation.sql, frame)
    return frame


def _added(frame: DataFrame, table: TableFacts) -> list[str]:
    has = {name for name, _ in table.columns}
    return [name for name in frame.columns if name not in has]


def set_properties(model: Model, session: SparkSession, table: TableFacts) -> None:
    """Bring the properties of an earlier table to what the project says; those it does not name stay."""
    wanted = layout(model, 1).properties
    changed = {key: text for key, text in wanted.items() if not _kept(key) and table.properties.get(key) != text}
    if changed:
        lake.set_properties(session, model.relation.sql, changed)


def _kept(key: str) -> bool:
    """Properties that Iceberg does not list, and those that say whose the table is."""
    return key in {"format-version", "engine.generation", "engine.model"}
