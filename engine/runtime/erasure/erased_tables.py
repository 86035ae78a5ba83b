"""The tables that hold rows of a model: its own, and what the engine keeps beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.errors import UsageError
from engine.lake.table_facts import TableFacts
from engine.plan.actions.state_checks import check_ours
from engine.plan.deployed.ownership_marks import SEED
from engine.runtime.context.run_context import Run
from engine.runtime.erasure.erase_condition import WHERE, EraseRequest, within
from engine.runtime.erasure.matching_rows import MATCHES, Judge, by_columns, by_fields, by_json, every_row
from engine.runtime.erasure.stream_positions import positions
from engine.runtime.quality import quarantine
from engine.runtime.sinks import deleted_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_SEEDS = re.compile(r"__seed\d+_\w+")


@dataclass(frozen=True, slots=True)
class ErasedTable:
    """A table and its role; `names`: of a quarantine, the fields of its JSON that decide."""

    role: str
    relation: Relation
    owner: Model
    facts: TableFacts
    judge: Judge
    names: tuple[str, ...] = ()


def erased_tables(run: Run, session: SparkSession, request: EraseRequest) -> tuple[list[ErasedTable], tuple[str, ...]]:
    """Return the tables that there are, and what of them the condition cannot be asked of.

    Raises:
        UsageError: `condition-syntax`: the condition is not boolean.
        StateError: `name-taken`: the table is not the model's.
        pyspark.errors.AnalysisException: Spark rejects the condition.
    """
    model, relation = request.model, request.model.relation
    facts = run.lake.table(relation.schema, relation.name)
    if facts is None:
        return [], ()
    check_ours(model, facts, run.state(model).load())
    _check_type(session, request)
    tables, unsearched = [ErasedTable("table", relation, model, facts, by_columns(request.where))], []
    if (found := _beside(run, model, deleted_keys.SUFFIX, "engine.deleted")) is not None:
        if within(request.columns, (*model.write.unique_key, *model.write.sequence_by)):
            judge = by_fields(request.where, _key_columns(model))
            tables.append(ErasedTable("deleted keys", found[0], model, found[1], judge))
        else:
            after = model.write.deletes_remembered
            unsearched.append(f"{found[0]} has keys of deleted rows, without other columns, for {after}")
    if (found := _beside(run, model, quarantine.SUFFIX, "engine.quarantine")) is not None:
        judge = by_json(request.where, _types(session, request), request.quarantine)
        tables.append(ErasedTable("quarantine", found[0], model, found[1], judge, request.columns))
    # All of them were read: no row of theirs is needed any more.
    tables += [ErasedTable("initial snapshot", r, o, f, every_row) for r, o, f in _initial_snapshots(run, model)]
    return tables, tuple(unsearched)


def _key_columns(model: Model) -> tuple[str, ...]:
    same = within(model.write.sequence_by, model.write.unique_key)
    return ("key",) if same else ("key", "sequence")


def _beside(run: Run, model: Model, suffix: str, mark: str) -> tuple[Relation, TableFacts] | None:
    relation = Relation(model.relation.catalog, model.relation.schema, model.relation.name + suffix)
    facts = run.lake.table(relation.schema, relation.name)
    if facts is None or facts.properties.get(mark) != "true" or facts.properties.get("engine.model") != model.name:
        return None
    return relation, facts


def _initial_snapshots(run: Run, model: Model) -> Iterator[tuple[Relation, Model, TableFacts]]:
    state = run.state(model).load()
    uuid = state.uuid if state is not None else None
    for position in positions(run.manifest, run.target):
        reader = position.reader
        own = reader.relation
        if reader.id == model.id:
            names = [n for n in run.lake.names(own.schema) if _SEEDS.fullmatch(n.removeprefix(own.name))]
            names = [name for name in names if name.startswith(own.name)]
        else:
            # It may have another name since the reader was built.
            starts = position.state.starts.items()
            found = (start.get("seed") for node, start in starts if node == model.id or start.get("uuid") == uuid)
            full = next((str(seed) for seed in found if seed), "")
            names = [full.removeprefix(f"{own.catalog}.{own.schema}.")] if full else []
        for name in names:
            facts = run.lake.table(own.schema, name)
            if facts is not None and facts.properties.get(SEED) == "true":
                yield Relation(own.catalog, own.schema, name), reader, facts


def _types(session: SparkSession, request: EraseRequest) -> StructType:
    from pyspark.sql.types import StructType

    fields = {field.name: field for field in session.table(request.model.relation.sql).schema.fields}
    return StructType([fields[name] for name in request.columns])


def _check_type(session: SparkSession, request: EraseRequest) -> None:
    judged = session.table(request.model.relation.sql).selectExpr(f"({request.where}\n) as {MATCHES}")
    kind = judged.schema[MATCHES].dataType.simpleString()
    if kind != "boolean":
        message = f"{WHERE} {request.where!r} is {kind}, not boolean"
        raise UsageError("condition-syntax", message, "Write a condition that is true for the rows to erase.")
