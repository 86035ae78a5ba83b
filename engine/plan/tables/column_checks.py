"""Whether the table of a model can hold the rows of its query; nothing is changed.

The plan asks where compile knows all columns, and the runtime asks with those that Spark finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.compile import Manifest, Model
from engine.compile.nodes.manifest import Column
from engine.compile.nodes.model_settings import OnSchemaChange, Overwrite, Publish
from engine.compile.types import spark_types
from engine.errors import Diagnostic, Location
from engine.lake.catalog.iceberg_types import spark_struct
from engine.lake.schema_match import Document, SchemaMatch, TypeDifference, match, shown_path, type_text
from engine.lake.table_facts import TableFacts
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.state import ModelState


def column_faults(
    manifest: Manifest, model: Model, query: Mapping[str, Any], table: TableFacts, before: frozenset[str] | None
) -> Iterator[Diagnostic]:
    """Yield why a table cannot hold the rows of a query: `table-schema`."""
    table_struct = spark_struct(table.fields) if table.fields else None
    if table_struct is None:
        return
    schema_match = match(query, table_struct)
    # What compile only takes a type to be does not reject: Spark says it before anything is written.
    certain_columns = {column.name.lower() for column in model.columns if is_certain(manifest, column)}
    sure = (one for one in schema_match.incompatible if one.path[0].lower() in certain_columns)
    if (fault := column_fault(model, replace(schema_match, incompatible=tuple(sure)), before)) is not None:
        yield fault


def is_certain(manifest: Manifest, column: Column) -> bool:
    """Whether the type of a column follows from declared ones, also through the models that its query reads."""
    read = ((manifest.nodes.get(origin.node), origin.column.partition(".")[0]) for origin in column.origins)
    pairs = ((own, name) for node, name in read if isinstance(node, Model) for own in node.columns)
    return column.certain and all(own.certain for own, name in pairs if own.name.lower() == name.lower())


def given_before(
    state: ModelState | None, comparison: Comparison | None, *, refresh: bool = False
) -> frozenset[str] | None:
    """Return the columns that the query gave before, in lower case, none that others added; None: not known."""
    if state is not None and state.columns:
        return frozenset(name.lower() for name in state.columns)
    same = comparison is not None and comparison.change in {Change.UNCHANGED, Change.NEW}
    return None if (refresh or not same) and state is not None else frozenset()


def dropped_columns(schema_match: SchemaMatch, before: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(name for name in schema_match.dropped if before is None or name.lower() in before)


def column_fault(model: Model, schema_match: SchemaMatch, before: frozenset[str] | None) -> Diagnostic | None:
    """Return what stops the rows of a query from being written to the model's table; None: nothing does."""
    misfits = list(_misfits(model, schema_match, before))
    if not misfits:
        return None
    message = "; ".join(misfit for misfit, _ in misfits)
    hint = f"{' '.join(way for _, way in misfits if way)} Or rebuild the table: engine build -f -s {model.name}"
    return Diagnostic("table-schema", message, hint, node=model.name, location=Location(model.file))


def _misfits(model: Model, schema_match: SchemaMatch, before: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    policy, table = model.write.on_schema_change, model.relation
    if schema_match.added and policy is OnSchemaChange.FAIL:
        fix = (
            "Add it to the table (on_schema_change: append_columns), ignore it (on_schema_change: ignore), or "
            "remove it from the query."
        )
        yield f"{table} has no column {', '.join(map(shown_path, schema_match.added))}", fix
    if policy is OnSchemaChange.FAIL and (names := dropped_columns(schema_match, before)):
        fix = f"Select NULL for it (cast(null as ..) as {names[0]}), or let it be NULL in new rows"
        yield (
            f"{table} has the column {', '.join(names)}, which the query no longer returns",
            f"{fix} (on_schema_change: append_columns or ignore).",
        )
    if schema_match.added_fields and policy is OnSchemaChange.IGNORE:
        # Spark writes a struct as a whole, or not at all.
        fix = "Add it to the table (on_schema_change: append_columns), or remove it from the query."
        yield f"{table} has no field {', '.join(map(shown_path, schema_match.added_fields))}", fix
    if schema_match.missing:
        fix = "Select NULL for it (cast(null as ..))."
        fields = ", ".join(map(shown_path, schema_match.missing))
        yield f"{table} has the field {fields}, which the query no longer returns", fix
    for index, one in enumerate(schema_match.incompatible):
        fix = f"Cast it in the query to its type in the table{_cast(one)}."
        yield f"'{shown_path(one.path)}' is {one.table} in {table} and {one.query} in the query", "" if index else fix


def _cast(difference: TypeDifference) -> str:
    path = shown_path(difference.path)
    return f" (cast({path} as {difference.table}) as {path})" if len(difference.path) == 1 else ""


_JSON = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "long",
    **{name: name for name in ("boolean", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "binary",
                               "void", "variant")},
}  # fmt: skip


def query_columns(
    manifest: Manifest, model: Model, deployed: Deployed, built: Collection[str]
) -> Mapping[str, Any] | None:
    """Return the query's columns as a struct in Spark's JSON; None: only Spark knows them."""
    as_compiled = not model.facts.settings and _tables_as_compiled(manifest, model, deployed, built)
    return model_struct(model) if as_compiled else None


def _tables_as_compiled(manifest: Manifest, model: Model, deployed: Deployed, built: Collection[str]) -> bool:
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if not isinstance(node, Model):
            continue
        table = deployed.models.get(node.id, DeployedModel()).table
        if table is None or _replaced(node, built):
            # What is made first has the columns of its query; a view that is not keeps those of the day it was made.
            if node.id not in built or not _tables_as_compiled(manifest, node, deployed, built):
                return False
        elif (own := model_struct(node)) is None or _texts(own) != _texts(spark_struct(table.fields)):
            return False
    return True


def _replaced(node: Model, built: Collection[str]) -> bool:
    if node.computed_when_read:
        return True
    whole = node.recomputed and node.write.overwrite is Overwrite.TABLE
    return whole and node.id in built and node.write.publish is not Publish.ON_TESTS_PASS


def _texts(struct: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    fields = struct["fields"] if struct is not None else ()
    return sorted((field["name"].lower(), type_text(field["type"]).lower()) for field in fields)


def model_struct(model: Model) -> Mapping[str, Any] | None:
    """Return the columns of a model's table by its query as compile knows it; None: a name or a type is not known."""
    out = {name.lower() for name in model.write.exclude}
    fields: list[dict[str, Any]] = []
    described = []
    for column in model.columns:
        if not column.sql:
            described.append(column.name.lower())
            continue
        type_ = spark_document(spark_types.normal(column.type) if column.type else None)
        if type_ is None or not column.named:
            return None
        fields += [{"name": column.name, "type": type_}] if column.name.lower() not in out else []
    names = {field["name"].lower() for field in fields}
    # What is described and not in the query is a field of a struct, or the query is not known.
    fits = bool(fields) and all(name.partition(".")[0] in names for name in described if name not in names)
    return {"type": "struct", "fields": fields} if fits else None


def spark_document(type_: str | None) -> Document | None:
    """Return a type in Spark's JSON, as an Iceberg table stores it; None: it cannot."""
    if type_ is None or type_ in _JSON or type_.startswith("decimal("):
        return _JSON.get(type_, type_) if type_ is not None else None
    if (element := spark_types.element(type_)) is not None:
        inner = spark_document(element)
        return None if inner is None else {"type": "array", "elementType": inner}
    if (members := spark_types.fields(type_)) is not None:
        fields = [{"name": name, "type": spark_document(member)} for name, member in members]
        return None if any(field["type"] is None for field in fields) else {"type": "struct", "fields": fields}
    key, value = (spark_document(part) for part in spark_types.entry(type_))
    return None if key is None or value is None else {"type": "map", "keyType": key, "valueType": value}
