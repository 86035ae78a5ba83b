"""Making the tables of streaming models: an empty table and the state of its generation, together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.compile.declared import declared_faults
from engine.errors import Location, RunError, StateError
from engine.lake import write as lake
from engine.lake.read import TableFacts
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def clauses(model: Model, generation: int) -> str:
    """The clauses of the model's CREATE TABLE."""
    properties = {
        **model.write.table_properties,
        "engine.model": model.name,
        "engine.generation": str(generation),
    }
    partitions = [lake.partition_sql(p.transform, p.column, p.number) for p in model.write.partition_by]
    return lake.table_clauses(partitions, properties, model.description)


def make(model: Model, relation: Relation, generation: int, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a new generation; what an earlier attempt left behind goes first.

    Returns:
        The state, still `building`: it is saved before the table is made, so that a kill in between is
        seen by the next start.
    """
    session = frame.sparkSession
    folder.discard(generation)
    building = ModelState(str(relation), generation, Phase.BUILDING)
    folder.save(building)
    lake.drop_table(session, relation.sql)
    lake.create_table(session, relation.sql, frame, clauses(model, generation))
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


def check_columns(model: Model, frame: DataFrame, table: TableFacts) -> None:
    """Check that the table has a column for each of the query's.

    Raises:
        StateError: `table-schema`.
    """
    has = {name for name, _ in table.columns}
    added = [name for name in frame.columns if name not in has]
    if added:
        message = f"{model.relation} has no column {', '.join(added)}"
        hint = (
            f"Add it first (ALTER TABLE {model.relation} ADD COLUMN ...), take it out of the query, or build the "
            f"table anew: engine build -f -s {model.name}"
        )
        raise StateError("table-schema", message, hint, node=model.name, location=Location(model.file))
