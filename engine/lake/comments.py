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

_OF_ALL = "comment"
# A commit of somebody else (maintenance) may come between reading and writing.
_CONFLICT = "CommitFailedException"


@dataclass(frozen=True, slots=True)
class Comments:
    """None leaves comments as they are; `columns` are by path in lower case: `place.lat` is a field of a struct."""

    table: str | None = None
    columns: Mapping[str, str] | None = None


def comment_table(session: SparkSession, relation: str, wanted: Comments) -> bool:
    """Give a table its comments in one commit; without a difference nothing is committed.

    Raises:
        Py4JJavaError: others commit all the time.
    """
    jvm = jvm_of(session)
    util = jvm.org.apache.iceberg.spark.Spark3Util
    name, spark = relation.replace("`", ""), java_session(session)
    return until_committed(lambda: _change_table(jvm, util.loadIcebergTable(spark, name), wanted), (_CONFLICT,))


def comment_view(session: SparkSession, catalog: str, schema: str, name: str, wanted: Comments) -> bool:
    jvm = jvm_of(session)
    known = java_session(session).sessionState().catalogManager()
    views = known.catalog(catalog).icebergCatalog()
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{schema}.{name}")
    return until_committed(lambda: _change_view(jvm, views.loadView(identifier), wanted), (_CONFLICT,))


def _change_table(jvm: Any, table: Any, wanted: Comments) -> bool:
    text = other_text(table.properties(), wanted)
    columns = _other_columns(_schema(jvm, table), wanted)
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


def _change_view(jvm: Any, view: Any, wanted: Comments) -> bool:
    text, schema = other_text(view.properties(), wanted), _schema(jvm, view)
    columns = _other_columns(schema, wanted)
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
    (update.set(_OF_ALL, text) if text else update.remove(_OF_ALL)).commit()


def _schema(jvm: Any, stored: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(stored.schema()))
    return found


def other_text(properties: Mapping[str, str], wanted: Comments) -> str | None:
    return wanted.table if wanted.table is not None and wanted.table != (properties.get(_OF_ALL) or "") else None


def _other_columns(schema: Mapping[str, Any], wanted: Comments) -> dict[str, str]:
    return other_columns(((path, field.get("doc") or "") for path, field in _fields(schema)), wanted)


def other_columns(stored: Iterable[tuple[str, str]], wanted: Comments) -> dict[str, str]:
    if wanted.columns is None:
        return {}
    said = ((path, wanted.columns.get(path.lower(), ""), comment) for path, comment in stored)
    return {path: comment for path, comment, there in said if comment != there}


def _fields(struct: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for field in struct["fields"]:
        path = f"{above}{field['name']}"
        yield path, field
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _fields(field["type"], f"{path}.")
