"""The columns of a model's query as its table would have them, where compile knows all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Overwrite, Publish
from engine.compile.types import spark_types
from engine.lake.catalog.iceberg_types import spark_struct
from engine.lake.schema_match import Document, type_text
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel

_JSON = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "long",
    **{name: name for name in ("boolean", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "binary",
                               "void", "variant")},
}  # fmt: skip


def query_columns(
    manifest: Manifest, model: Model, deployed: Deployed, built: Collection[str]
) -> Mapping[str, Any] | None:
    """Return the query's columns as a struct in Spark's JSON; None: only Spark knows them."""
    known = not model.facts.get("settings") and _tables_as_compiled(manifest, model, deployed, built)
    return model_struct(model) if known else None


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
