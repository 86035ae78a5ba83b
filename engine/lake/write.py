"""Writing tables through Spark: creation, marked commits, replacement.

Every commit carries `engine.*` markers in its snapshot's summary; they decide after a crash whether a
micro-batch has reached the table.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Defaults fit for streams: one commit a micro-batch, for years.
TABLE_DEFAULTS: Mapping[str, str] = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "history.expire.min-snapshots-to-keep": "100",
    "commit.retry.num-retries": "10",
}
_RESULT = "__result"
_STAGED = "#staged-"
_STAGED_NAME = re.compile(r"`default_rewrite_catalog`\.`([^`#]+)" + _STAGED + "[0-9a-f]+`")
_TRANSFORMS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that happened: the snapshot's id and how many rows it added."""

    snapshot: int
    rows: int


def partition_sql(transform: str, column: str, number: int | None) -> str:
    """A partition field in Spark's DDL."""
    if transform == "identity":
        return f"`{column}`"
    if number is not None:
        return f"{transform}({number}, `{column}`)"
    return f"{_TRANSFORMS[transform]}(`{column}`)"


def table_clauses(partitions: Sequence[str], properties: Mapping[str, str], comment: str) -> str:
    """The clauses of CREATE TABLE behind the columns."""
    lines = ["USING iceberg"]
    if partitions:
        lines.append(f"PARTITIONED BY ({', '.join(partitions)})")
    if comment:
        lines.append(f"COMMENT {literal(comment)}")
    known = {**TABLE_DEFAULTS, **properties}
    lines.append("TBLPROPERTIES (" + ", ".join(f"{literal(k)} = {literal(v)}" for k, v in known.items()) + ")")
    return "\n".join(lines)


def literal(text: str) -> str:
    """A text as a Spark SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def create_namespace(session: SparkSession, catalog: str, schema: str) -> None:
    """Make the namespace if it is missing."""
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS `{catalog}`.`{schema}`")


def create_table(session: SparkSession, relation: str, frame: DataFrame, clauses: str) -> None:
    """Make an empty table with the columns of a frame, all of them nullable so that they can evolve."""
    columns = frame._jdf.schema().asNullable().toDDL()  # noqa: SLF001 - PySpark has no toDDL of its own
    session.sql(f"CREATE TABLE {relation} ({columns})\n{clauses}")


def drop_table(session: SparkSession, relation: str) -> None:
    """Remove a table with its files."""
    session.sql(f"DROP TABLE IF EXISTS {relation} PURGE")


def stage(frame: DataFrame, relation: str, options: Mapping[str, str] | None = None) -> Staged:
    """Write the rows of a frame into data files of a table, without a commit: nobody sees them yet.

    Rows are distributed and ordered as the table demands. It is Iceberg's way of rewriting files, used for an
    append: the number of rows, and what the execution counted, are known before the commit, and a batch without
    rows commits nothing, at the price of a plain append (a cached batch costs a fifth more, measured).

    Args:
        frame: columns are matched by name.
        relation: the table, quoted.
        options: of Iceberg's writer.
    """
    session = frame.sparkSession
    spark: Any = session._jvm.org.apache.iceberg.spark  # type: ignore[union-attr] # noqa: SLF001
    table = _table(session, relation)
    files, tables = spark.FileRewriteCoordinator.get(), spark.SparkTableCache.get()
    # The name stands in Spark's errors; `plain_name` takes the rest out of them again.
    name = f"{relation.replace('`', '')}{_STAGED}{uuid.uuid4().hex}"
    tables.add(name, table)
    try:
        frame.write.format("iceberg").options(**(options or {})).mode("append").save(name)
        return Staged(session, table, tuple(files.fetchNewFiles(table, name)))
    finally:
        tables.remove(name)
        files.clearRewrite(table, name)


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files that are written and not committed.

    Attributes:
        session: that wrote them.
        table: Iceberg's, in Java.
        files: Iceberg's, in Java.
    """

    session: SparkSession
    table: Any
    files: tuple[Any, ...]

    @property
    def rows(self) -> int:
        """How many rows they hold."""
        return sum(int(file.recordCount()) for file in self.files)

    def discard(self) -> None:
        """Remove them; only before a commit was tried."""
        for file in self.files:
            self.table.io().deleteFile(file.location())


def append(staged: Staged, markers: Mapping[str, str]) -> Commit | None:
    """Append staged files in one marked commit; None, and no commit, if there are none."""
    if not staged.files:
        return None
    change = staged.table.newAppend()
    for file in staged.files:
        change.appendFile(file)
    for key, value in markers.items():
        change.set(f"engine.{key}", value)
    change.commit()
    return Commit(int(staged.table.currentSnapshot().snapshotId()), staged.rows)


def plain_name(text: str) -> str:
    """A text of Spark's with the names of tables that were staged as the user knows them."""
    return _STAGED_NAME.sub(r"\1", text)


def replace(frame: DataFrame, relation: str, clauses: str, markers: Mapping[str, str]) -> Commit:
    """Make a table anew from a frame, in one marked commit; readers see the old or the new rows.

    The frame goes through a view, so that Spark's errors point into the user's query, not into this text.
    """
    session = frame.sparkSession
    frame.createOrReplaceTempView(_RESULT)
    prefix = "spark.sql.iceberg.snapshot-property.engine."
    for key, value in markers.items():
        session.conf.set(prefix + key, value)
    try:
        session.sql(f"CREATE OR REPLACE TABLE {relation}\n{clauses}\nAS SELECT * FROM `{_RESULT}`")  # noqa: S608 - our own names
    finally:
        for key in markers:
            session.conf.unset(prefix + key)
    commit = current(session, relation)
    if commit is None:
        raise RuntimeError(f"{relation} has no snapshot after a commit")
    return commit


def current(session: SparkSession, relation: str) -> Commit | None:
    """The current snapshot, as the catalog has it now."""
    snapshot = _table(session, relation).currentSnapshot()
    if snapshot is None:
        return None
    added = snapshot.summary().get("added-records")
    return Commit(int(snapshot.snapshotId()), int(added or 0))


def table_uuid(session: SparkSession, relation: str) -> str:
    """The table's UUID."""
    return str(_table(session, relation).uuid())


def _table(session: SparkSession, relation: str) -> Any:
    jvm: Any = session._jvm  # noqa: SLF001 - Iceberg's Java API knows the snapshot without a query
    util = jvm.org.apache.iceberg.spark.Spark3Util
    return util.loadIcebergTable(session._jsparkSession, relation.replace("`", ""))  # noqa: SLF001
