"""Comments of tables and views, and of their columns: compared first, and set by commits that make no snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake.commits import until_committed
from engine.spark.internals.handles import java_session, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE_COMMENT = "comment"
# A commit of somebody else (maintenance) may come between reading and writing.
_CONFLICT = "CommitFailedException"


@dataclass(frozen=True, slots=True)
class Comments:
    """None leaves comments as they are; `columns` are by path in lower case: `place.lat` is a field of a struct."""

    table: str | None = None
    columns: Mapping[str, str] | None = None


def comment_table(session: SparkSession, relation: str, comments: Comments) -> bool:
    """Give a table its comments in one commit; without a difference nothing is committed.

    Raises Py4JJavaError: others commit all the time.
    """
    jvm = jvm_of(session)
    util = jvm.org.apache.iceberg.spark.Spark3Util
    name, spark = relation.replace("`", ""), java_session(session)
    return until_committed(lambda: _change_table(jvm, util.loadIcebergTable(spark, name), comments), (_CONFLICT,))


def comment_view(session: SparkSession, catalog: str, schema: str, name: str, comments: Comments) -> bool:
    jvm = jvm_of(session)
    catalogs = java_session(session).sessionState().catalogManager()
    views = catalogs.catalog(catalog).icebergCatalog()
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{schema}.{name}")
    return until_committed(lambda: _change_view(jvm, views.loadView(identifier), comments), (_CONFLICT,))


def _change_table(jvm: Any, table: Any, comments: Comments) -> bool:
    text = changed_text(table.properties(), comments)
    columns = _changed_columns_of(_schema(jvm, table), comments)
    if text is None and not columns:
        return False
    transaction = table.newTransaction()
    if columns:
        update = transaction.updateSchema()
        for path, comment in columns.items():
            update.updateColumnDoc(path, comment or None)
        update.commit()
    if text is not None:
        _set(transaction.updateProperties(), text)
    transaction.commitTransaction()
    return True


def _change_view(jvm: Any, view: Any, comments: Comments) -> bool:
    text, schema = changed_text(view.properties(), comments), _schema(jvm, view)
    columns = _changed_columns_of(schema, comments)
    if columns:
        for path, field in _fields(schema):
            if path in columns:
                field.pop("doc", None)
                field.update({"doc": columns[path]} if columns[path] else {})
        version = view.currentVersion()
        change = view.replaceVersion().withSchema(jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps(schema)))
        change.withDefaultCatalog(version.defaultCatalog()).withDefaultNamespace(version.defaultNamespace())
        for query in version.representations():
            change.withQuery(query.dialect(), query.sql())
        change.commit()
    if text is not None:
        _set(view.updateProperties(), text)
    return bool(columns) or text is not None


def _set(update: Any, text: str) -> None:
    (update.set(_TABLE_COMMENT, text) if text else update.remove(_TABLE_COMMENT)).commit()


def _schema(jvm: Any, relation: Any) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(relation.schema()))
    return schema


def changed_text(properties: Mapping[str, str], comments: Comments) -> str | None:
    return (
        comments.table
        if comments.table is not None and comments.table != (properties.get(_TABLE_COMMENT) or "")
        else None
    )


def _changed_columns_of(schema: Mapping[str, Any], comments: Comments) -> dict[str, str]:
    return changed_columns(((path, field.get("doc") or "") for path, field in _fields(schema)), comments)


def changed_columns(present: Iterable[tuple[str, str]], comments: Comments) -> dict[str, str]:
    if comments.columns is None:
        return {}
    compared = ((path, comments.columns.get(path.lower(), ""), comment) for path, comment in present)
    return {path: comment for path, comment, present_comment in compared if comment != present_comment}


def _fields(struct: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for field in struct["fields"]:
        path = f"{above}{field['name']}"
        yield path, field
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _fields(field["type"], f"{path}.")
