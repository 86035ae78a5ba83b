"""Views of Iceberg's catalog, through Spark: making, finding and dropping them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.lake.table_writer import literal
from engine.spark.internals.handles import activate, java_session, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_view(session: SparkSession, relation: str, sql: str, comment: str, properties: Mapping[str, str]) -> None:
    """Make a view, or replace the one of that name; there is no table of that name. `comment` empty: none."""
    session.sql(f"CREATE OR REPLACE VIEW {_text(relation, sql, comment, properties)}")


def check_view(session: SparkSession, relation: str, sql: str, properties: Mapping[str, str]) -> None:
    """Check that a view of a query can be made: one of another name is made, and dropped.

    EXPLAIN makes nothing and takes what a view cannot have, such as a temporary function (measured, Spark 4.1.4).

    Raises pyspark.errors.AnalysisException: Spark rejects it.
    """
    if view_properties(session, relation, properties) is not None:
        drop_view(session, relation)
    session.sql(f"CREATE VIEW {_text(relation, sql, '', properties)}")
    drop_view(session, relation)


def _text(relation: str, sql: str, comment: str, properties: Mapping[str, str]) -> str:
    comment_clause = f"COMMENT {literal(comment)}\n" if comment else ""
    pairs = ", ".join(f"{literal(key)} = {literal(text)}" for key, text in properties.items())
    properties_clause = f"TBLPROPERTIES ({pairs})\n" if pairs else ""
    return f"{relation}\n{comment_clause}{properties_clause}AS {sql}"


def drop_view(session: SparkSession, relation: str) -> None:
    session.sql(f"DROP VIEW IF EXISTS {relation}")


def view_properties(
    session: SparkSession, relation: str, required: Mapping[str, str] | None = None
) -> dict[str, str] | None:
    """Return the properties of a view; None if there is no view of that name, or none that has those wanted."""
    activate(session)
    jvm = jvm_of(session)
    catalog, name = relation.replace("`", "").split(".", 1)
    views = java_session(session).sessionState().catalogManager().catalog(catalog).icebergCatalog()
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(name)
    if not views.viewExists(identifier):
        return None
    properties = {str(key): str(text) for key, text in dict(views.loadView(identifier).properties()).items()}
    return properties if (required or {}).items() <= properties.items() else None
