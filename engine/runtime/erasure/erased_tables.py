"""The tables that hold rows of a model, the condition of `engine erase`, and other copies of rows by lineage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, Relation, Source
from engine.compile.config.condition_config import condition_columns, condition_fault
from engine.compile.nodes.column_facts import Derivation
from engine.compile.sql.determinism import deterministic_text
from engine.compile.sql.dialect import tokenize
from engine.errors import UsageError, near
from engine.lake.table_facts import TableFacts
from engine.plan.actions.state_checks import check_ours
from engine.plan.deployed.state_folder import SEED
from engine.relations import quoted
from engine.runtime.context.run_context import Run
from engine.runtime.erasure.matching_rows import (
    MATCHES,
    Judge,
    judge_by_columns,
    judge_by_fields,
    judge_by_json,
    judge_every_row,
)
from engine.runtime.erasure.stream_positions import positions
from engine.runtime.quality import quarantine
from engine.runtime.sinks import deleted_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


WHERE, QUARANTINE = "--where", "--quarantine"
_FORM = "Write one SQL condition over the columns of {0}, such as {1}."


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """The rows that are to be erased.

    `where` is over the columns of the table, `quarantine` over those of the quarantine itself; NULL is not a match.
    `columns`: those of the table that it names; of a field of a struct the struct.
    """

    model: Model
    where: str
    columns: tuple[str, ...]
    quarantine: str | None = None


def check_model(model: Model) -> None:
    """Check that a model has a table of its own in this target. Raises UsageError: it has none."""
    kind = model.materialized
    if not kind.traits.keeps_rows:
        names = [item.name for item in model.inputs]
        hint = f"Erase the rows from its inputs: {', '.join(names)}" if names else ""
        raise UsageError("usage", f"'{model.name}' is {_article(kind.value)} and stores no rows", hint)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def read_request(
    model: Model, table: TableFacts, quarantined: TableFacts | None, where: str, quarantine: str | None
) -> EraseRequest:
    """Check the conditions of a command.

    Raises UsageError: `condition-syntax`, `unknown-column`; of the quarantine `usage` if there is none.
    """
    columns = _checked(WHERE, where, str(model.relation), table, "customer_id = 42")
    if quarantine is not None:
        if quarantined is None:
            raise UsageError("usage", f"'{model.name}' has no quarantine", f"Remove {QUARANTINE}.")
        _checked(QUARANTINE, quarantine, f"{model.relation}__quarantine", quarantined, "row like '%jane@example.com%'")
    return EraseRequest(model, where.strip(), columns, quarantine.strip() if quarantine is not None else None)


def _checked(option: str, text: str, relation: str, table: TableFacts, example: str) -> tuple[str, ...]:
    form = _FORM.format(relation, example)
    fault = condition_fault(text)
    if fault:
        raise UsageError("condition-syntax", f"{option} {text!r} {fault}", form)
    if not deterministic_text(f"SELECT {text}"):
        message = f"{option} {text!r} reads the clock, draws random numbers or calls a function that is not Spark's own"
        raise UsageError("condition-syntax", message, f"A repeated erase must match the same rows. {form}")
    table_columns = {name.lower(): name for name, _ in table.columns}
    condition_names = list(condition_columns(text))
    if not condition_names:
        message = f"{option} {text!r} names no column, so that it matches all rows or none"
        raise UsageError("condition-syntax", message, f"{form} To remove all rows: engine drop, or engine build -f.")
    if unknown := [name for name in condition_names if name.lower() not in table_columns]:
        hint = near(unknown[0], table_columns.values())
        raise UsageError("unknown-column", f"{option} names '{unknown[0]}', which is not a column of {relation}", hint)
    return tuple(table_columns[name.lower()] for name in condition_names)


def are_columns_in(columns: Iterable[str], allowed: Iterable[str]) -> bool:
    """Return whether some columns are among others, whatever their case."""
    return {name.lower() for name in columns} <= {name.lower() for name in allowed}


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
    tables, unsearched = [ErasedTable("table", relation, model, facts, judge_by_columns(request.where))], []
    if (table_beside := _table_beside(run, model, deleted_keys.SUFFIX, "engine.deleted")) is not None:
        if are_columns_in(request.columns, (*model.write.unique_key, *model.write.sequence_by)):
            judge = judge_by_fields(request.where, _key_columns(model))
            tables.append(ErasedTable("deleted keys", table_beside[0], model, table_beside[1], judge))
        else:
            retention = model.write.deletes_remembered
            unsearched.append(f"{table_beside[0]} has keys of deleted rows, without other columns, for {retention}")
    if (table_beside := _table_beside(run, model, quarantine.SUFFIX, "engine.quarantine")) is not None:
        judge = judge_by_json(request.where, _types(session, request), request.quarantine)
        tables.append(ErasedTable("quarantine", table_beside[0], model, table_beside[1], judge, request.columns))
    # All of them were read: no row of theirs is needed any more.
    tables += [ErasedTable("initial snapshot", r, o, f, judge_every_row) for r, o, f in _initial_snapshots(run, model)]
    return tables, tuple(unsearched)


def _key_columns(model: Model) -> tuple[str, ...]:
    sequence_in_key = are_columns_in(model.write.sequence_by, model.write.unique_key)
    return ("key",) if sequence_in_key else ("key", "sequence")


def _table_beside(run: Run, model: Model, suffix: str, mark: str) -> tuple[Relation, TableFacts] | None:
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
        reader_relation = reader.relation
        if reader.id == model.id:
            names = [
                n
                for n in run.lake.names(reader_relation.schema)
                if _SEEDS.fullmatch(n.removeprefix(reader_relation.name))
            ]
            names = [name for name in names if name.startswith(reader_relation.name)]
        else:
            # It may have another name since the reader was built.
            starts = position.state.starts.items()
            seeds = (start.get("seed") for node, start in starts if node == model.id or start.get("uuid") == uuid)
            full = next((str(seed) for seed in seeds if seed), "")
            names = [full.removeprefix(f"{reader_relation.catalog}.{reader_relation.schema}.")] if full else []
        for name in names:
            facts = run.lake.table(reader_relation.schema, name)
            if facts is not None and facts.properties.get(SEED) == "true":
                yield Relation(reader_relation.catalog, reader_relation.schema, name), reader, facts


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


# Columns of the condition: their names in another table.
_Names = Mapping[str, str]
_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789_"


@dataclass(frozen=True, slots=True)
class OtherCopy:
    node: str
    description: str
    command: str = ""


def other_copies(manifest: Manifest, request: EraseRequest) -> tuple[OtherCopy, ...]:
    return (*_state(request.model), *_downstream(manifest, request), *_upstream(manifest, request))


def _state(model: Model) -> Iterator[OtherCopy]:
    if model.stateful:
        description = "state of its query (windows, joins, dedup) until the watermark passes it"
        yield OtherCopy(model.name, description, f"engine build -f -s {model.name}")


def _downstream(manifest: Manifest, request: EraseRequest) -> Iterator[OtherCopy]:
    names: dict[str, _Names | None] = {request.model.id: {name: name for name in request.columns}}
    for reader in manifest.models:
        above = [node for node in reader.depends_on if node in names]
        if not above or reader.id in names:
            continue
        column_maps = [
            {old_name: new_name for new_name, old_name in reversed(_copies(reader, node).items())} for node in above
        ]
        names[reader.id] = _rename_condition(names[above[0]], column_maps[0]) if len(above) == 1 else None
        if reader.keeps_rows:
            yield _copy_in(reader, request, names[reader.id])


def _copy_in(reader: Model, request: EraseRequest, names: _Names | None) -> OtherCopy:
    if names is not None:
        build_first = f"engine build -s {reader.name}, then " if not reader.streaming else ""
        return OtherCopy(
            reader.name, "rows that were read from it", f"{build_first}{erase_command(reader, request, names)}"
        )
    description = "rows computed from it" + (", and state of its query" if reader.stateful else "")
    return OtherCopy(reader.name, description, f"engine build -f -s {reader.name}")


def _upstream(manifest: Manifest, request: EraseRequest) -> Iterator[OtherCopy]:
    """The models and sources that the rows came from: a full refresh reads them again."""
    names: dict[str, _Names | None] = {request.model.id: {name: name for name in request.columns}}
    waiting = [request.model]
    while waiting:
        model = waiting.pop(0)
        for above in manifest.parents(model.id):
            node = manifest.nodes[above]
            if above in names:
                continue
            names[above] = _rename_condition(names[model.id], _copies(model, above))
            if isinstance(node, Source):
                description = f"records of the source ({node.spec.format}): a full refresh reads them again"
                yield OtherCopy(node.name, description)
            elif isinstance(node, Model):
                waiting.append(node)
                if node.keeps_rows:
                    condition_names = names[above]
                    command = erase_command(node, request, condition_names) if condition_names is not None else ""
                    yield OtherCopy(node.name, "rows that it was made from: a full refresh reads them again", command)


def _copies(model: Model, above: str) -> dict[str, str]:
    copied_columns = {}
    for column in model.columns:
        origins = [origin for origin in column.origins if origin.kind == "direct"]
        copied = column.derivation is Derivation.COPY and len(origins) == 1 and origins[0].node == above
        if copied and "." not in origins[0].column:
            copied_columns[column.name] = origins[0].column
    return copied_columns


def _rename_condition(names: _Names | None, new_names: _Names) -> _Names | None:
    lower_names = {old.lower(): new for old, new in new_names.items()}
    if names is None or not {name.lower() for name in names.values()} <= lower_names.keys():
        return None
    return {name: lower_names[old_name.lower()] for name, old_name in names.items()}


def erase_command(model: Model, request: EraseRequest, names: Mapping[str, str]) -> str:
    where = with_names(request.where, names).replace("\\", "\\\\").replace('"', '\\"')
    return f'engine erase {model.name} --where "{where}"'


def with_names(condition: str, names: Mapping[str, str]) -> str:
    replacements = {old.lower(): new for old, new in names.items()}
    tokens, parts, at = tokenize(condition), [], 0
    for index, token in enumerate(tokens):
        new = replacements.get(token.text.lower())
        text_before = condition[tokens[index - 1].start : tokens[index - 1].end + 1] if index else ""
        text_after = condition[tokens[index + 1].start : tokens[index + 1].end + 1] if index + 1 < len(tokens) else ""
        is_text = condition[token.start] in "'\""
        if new is None or is_text or text_before == "." or text_after == "(" or new.lower() == token.text.lower():
            continue
        parts += [condition[at : token.start], new if set(new.lower()) <= set(_PLAIN) else quoted(new)]
        at = token.end + 1
    return "".join([*parts, condition[at:]])
