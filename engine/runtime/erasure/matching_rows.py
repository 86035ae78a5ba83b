"""Which rows and files of a table match a condition, in its current snapshot, its earlier ones and outside of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import local_paths
from engine.compile import Relation
from engine.lake.changes.erase_files import current_files, files_on_disk
from engine.lake.table_facts import TableFacts
from engine.relations import quoted
from engine.runtime.spark_support.spark_errors import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Of each row: whether it is to be erased, and the file that it is in.
MATCHES, FILE = "__matches", "__file"
_WHOLE, _ROW = "__whole", "__row"
_SCHEME = re.compile(r"^\w+:/*")
# As the quarantine has them (`engine.sources.mark_bad_records`).
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
# Adds MATCHES to the rows of a table.
Judge = Callable[["DataFrame"], "DataFrame"]


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of a table that match, and the files that hold them.

    `files` of the current snapshot have such rows, deleted ones included. `older`: how many files of earlier snapshots
    have some; None: they could not be read, and count as such; `older_files` may have some. `orphans`: files that no
    snapshot knows.
    """

    rows: int = 0
    files: frozenset[str] = frozenset()
    older: int | None = 0
    older_files: frozenset[str] = frozenset()
    orphans: tuple[str, ...] = ()
    unjudged: int = 0

    @property
    def some(self) -> bool:
        return bool(self.rows or self.files or self.orphans) or self.older != 0


def judge_by_columns(condition: str) -> Judge:
    from pyspark.sql import functions as f

    return lambda frame: frame.withColumn(MATCHES, f.coalesce(f.expr(f"({condition}\n)"), f.lit(False)))


def judge_every_row(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return frame.withColumn(MATCHES, f.lit(True))


def judge_by_fields(condition: str, structs: Collection[str]) -> Judge:
    from pyspark.sql import functions as f

    def judge(frame: DataFrame) -> DataFrame:
        with_fields = frame.select(f.struct("*").alias(_WHOLE), *(f.col(f"{quoted(name)}.*") for name in structs))
        return judge_by_columns(condition)(with_fields).select(f"{_WHOLE}.*", MATCHES)

    return judge


def judge_by_json(condition: str, schema: StructType, extra_condition: str | None) -> Judge:
    """Judge rows of a quarantine by a condition over the row that each has as JSON, or another one over its columns."""
    from pyspark.sql import functions as f

    def judge(frame: DataFrame) -> DataFrame:
        parsed = frame.select(f.struct("*").alias(_WHOLE), f.from_json(f.col("row"), schema, _JSON).alias(_ROW))
        judged = judge_by_columns(condition)(parsed.select(_WHOLE, f"{_ROW}.*")).select(f"{_WHOLE}.*", MATCHES)
        if extra_condition is None:
            return judged
        return judged.withColumn(MATCHES, f.col(MATCHES) | f.coalesce(f.expr(f"({extra_condition}\n)"), f.lit(False)))

    return judge


def unread_json(frame: DataFrame, names: Collection[str]) -> int:
    """Return how many judged rows of a quarantine do not match, and lack a field that the condition names."""
    from pyspark.sql import functions as f

    keys = f.coalesce(f.json_object_keys("row"), f.array().cast("array<string>"))
    has = [f.array_contains(keys, name) for name in names]
    complete = has[0]
    for has_field in has[1:]:
        complete &= has_field
    return frame.where(~f.col(MATCHES) & ~complete).count()


def find_matches(
    session: SparkSession, relation: Relation, facts: TableFacts, judge: Judge, names: Collection[str] = ()
) -> Matches:
    from pyspark.sql import functions as f

    table = session.read.format("iceberg").load(str(relation))
    judged = judge(table.select("*", f.col("_file").alias(FILE)))
    matches_by_file = {row[0]: row[1] for row in judged.where(MATCHES).groupBy(FILE).count().collect()}
    unjudged = unread_json(judged, names) if names else 0
    current = current_files(session, relation.sql)
    known_files = {row[0] for row in session.table(f"{relation.sql}.`all_data_files`").select("file_path").collect()}
    stray = _orphan_files(files_on_disk(session, relation.sql), known_files)
    older = frozenset(known_files) - current.clean - current.deleted
    files = frozenset(matches_by_file)
    hidden = (
        _files_with_matches(session, table.schema, {*older, *current.deleted}, judge)
        if not _has_renamed_columns(facts)
        else None
    )
    orphans = _files_with_matches(session, table.schema, set(stray), judge) or frozenset()
    return Matches(
        sum(matches_by_file.values()),
        files | (current.deleted if hidden is None else current.deleted & hidden),
        (None if older else 0) if hidden is None else len(hidden & older),
        older if hidden is None else hidden & older,
        tuple(sorted(orphans)),
        unjudged,
    )


def _orphan_files(locations: Collection[str], known_locations: Collection[str]) -> list[str]:
    known_paths = {_without_scheme(location) for location in known_locations}
    return [file for file in locations if file.endswith(".parquet") and _without_scheme(file) not in known_paths]


def _without_scheme(location: str) -> str:
    return _SCHEME.sub("/", location)


def _has_renamed_columns(facts: TableFacts) -> bool:
    """Whether a column has had another name: files are read by the names of now."""
    names: dict[int, set[str]] = {}
    for fields in facts.schemas.values():
        for schema_field in fields:
            names.setdefault(int(schema_field["id"]), set()).add(str(schema_field["name"]))
    return any(len(field_names) > 1 for field_names in names.values())


def _files_with_matches(
    session: SparkSession, schema: StructType, files: set[str], judge: Judge
) -> frozenset[str] | None:
    """Those of some data files that have a matching row, deleted or not; None: that cannot be found out."""
    from pyspark.sql import functions as f

    if not files:
        return frozenset()
    if any(not file.endswith(".parquet") for file in files):
        return None
    reader = session.read.schema(schema).option("recursiveFileLookup", "true")
    try:
        rows = reader.options(**local_paths.AS_IT_IS).parquet(*sorted(files))
        judged = judge(rows.select("*", f.col("_metadata.file_path").alias(FILE)))
        matching = {
            _without_scheme(local_paths.decoded(row[0]))
            for row in judged.where(MATCHES).select(FILE).distinct().collect()
        }
    except spark_exceptions():
        return None
    return frozenset(file for file in files if _without_scheme(file) in matching)
