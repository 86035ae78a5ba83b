"""The table `<model>__deleted`: the keys that `delete_when` deleted, with their sequence, for a while.

An older row of such a key must not bring it back. The keys of a micro-batch are committed before everything else of it,
marked like it and with the id of Spark's query, as those of the quarantine are. `query_id` says for which rows a delete
counts: it is the query that began them, also where the checkpoint was reset since.
A TRUNCATE of a change feed is remembered with NULL as its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model, Relation
from engine.errors import StateError
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import CONFLICTS, until_committed
from engine.lake.schema_match import SchemaMatch, match, shown_path
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.lake.table_layout import TableLayout, iceberg_schema
from engine.lake.table_writer import load
from engine.plan.deployed.generations import identity
from engine.relations import quoted
from engine.runtime.context import ownership
from engine.runtime.context.ownership import check_alone, descends_in
from engine.runtime.context.run_context import Run
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def match_table(frame: DataFrame, relation: str) -> SchemaMatch:
    session = frame.sparkSession
    table = load(session, relation).schema()
    return match(_stored_schema(session, iceberg_schema(session, frame)), _stored_schema(session, table))


def _stored_schema(session: SparkSession, schema: Any) -> Mapping[str, Any]:
    """An Iceberg schema as Spark reads it: tinyint is int there, varchar is string."""
    convert = jvm_of(session).org.apache.iceberg.spark.SparkSchemaUtil.convert
    schema_json: Mapping[str, Any] = json.loads(convert(schema).json())
    return schema_json


def with_spelling(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    new_names = list(names)
    return frame if frame.columns == new_names else frame.toDF(*new_names)


SUFFIX = "__deleted"
# Whether a row stands for a TRUNCATE, which deletes all older rows.
TRUNCATES = "__truncates"
_QUERY = "query-id"
_BEGAN = "began-by"


@dataclass(slots=True)
class Deleted:
    """The remembered deletes of a model as they stood when it began, and as they were written since.

    `began`: the query that began the rows of the model's table; None: the one that runs. `last`: the newest snapshot
    that is known to be in it; None: the one of `facts`. `is_cleaned`: whether what is old enough has been forgotten in
    this run.
    """

    model: Model
    facts: TableFacts | None
    began: str | None = None
    is_created: bool = field(default=False)
    last: int | None = field(default=None)
    descends: Callable[[int, int], bool] = lambda _, __: False
    is_cleaned: bool = field(default=False)

    @property
    def relation(self) -> Relation:
        return replace(self.model.relation, name=self.model.relation.name + SUFFIX)

    def counting_deletes(self, session: SparkSession, query: str) -> DataFrame | None:
        """The deletes that count for a query's rows: `key` and `sequence`, structs; None: there has never been one."""
        if self.facts is None and not self.is_created:
            return None
        rows = session.table(self.relation.sql)
        return rows.where(rows["query_id"] == (self.began or query)).select("key", "sequence")

    def fit(self, frame: DataFrame, *, fresh: bool) -> None:
        """Fit an existing table of deletes and the keys of the query, whose types may have changed, to each other.

        `fresh`: a generation begins, for whose rows no delete counts yet: a table that does not fit is replaced. A full
        refresh that fails after that leaves the old generation without its deletes, and it is stopped here. Raises
        StateError: `table-schema`.
        """
        if self.facts is None:
            return
        write = self.model.write
        columns = [as_struct(write.unique_key).alias("key"), as_struct(write.sequence_by).alias("sequence")]
        keys = frame.select(*columns)
        match = match_table(keys, self.relation.sql)
        if match.incompatible or match.added or match.missing:
            if not fresh:
                raise self._unfit(match)
            session = frame.sparkSession
            empty = session.createDataFrame([], self._rows(frame, 0, "").schema)
            self.last = lake.replace(empty, self.relation.sql, self._layout(), {"model": self.model.name}).snapshot
        elif match.alters:
            lake.add_columns(self.relation.sql, keys)

    def _unfit(self, match: SchemaMatch) -> StateError:
        differing = [f"{shown_path(d.path)} ({d.table} there, {d.query} in the query)" for d in match.incompatible]
        message = f"{self.relation} has keys of another type: "
        hint = (
            "Undo the change of the key or of 'sequence_by', or rebuild the table, which discards the deletes: "
            f"engine build -f -s {self.model.name}"
        )
        paths = ", ".join([*differing, *map(shown_path, (*match.added, *match.missing))])
        return StateError("table-schema", message + paths, hint, node=self.model.name)

    def append(
        self, session: SparkSession, rows: DataFrame | None, batch: int, query: str, markers: Mapping[str, str]
    ) -> None:
        """Remember the keys of a micro-batch's rows that delete (None: no row does), once; also over a crashed attempt.

        Raises:
            StateError: `batch-unfinished`.
        """
        begun_snapshot = self._wrote(query, batch)
        if begun_snapshot is not None and begun_snapshot.marker("fingerprint") == markers["fingerprint"]:
            return
        all_markers = {**markers, _QUERY: query, _BEGAN: self.began or query}
        if begun_snapshot is not None:
            check_alone(self.model, self.relation, self.facts, begun_snapshot)
            new_rows = (
                session.table(self.relation.sql).where("false") if rows is None else self._rows(rows, batch, query)
            )
            commit = lake.exchange(
                lake.stage(new_rows, self.relation.sql), begun_snapshot.id, all_markers, self._expected()
            )
            self.last = commit.snapshot
            return
        if rows is None:
            return
        key_rows = self._rows(rows, batch, query)
        if self.facts is None and not self.is_created:
            lake.create_table(session, self.relation.sql, key_rows, self._layout())
            self.is_created = True
        self._forget(session)
        append_commit = lake.append(lake.stage(key_rows, self.relation.sql), all_markers, None, self._expected())
        self.last = append_commit.snapshot if append_commit else self.last

    def take_over(self, session: SparkSession, rows: DataFrame, query: str, markers: Mapping[str, str]) -> None:
        """Remember the deletes of another such table as they are; of other types, in place of those that there were."""
        if self.facts is None:
            lake.create_table(session, self.relation.sql, rows, self._layout())
        elif (match := match_table(rows, self.relation.sql)).incompatible or match.added or match.missing:
            lake.replace(rows, self.relation.sql, self._layout(), {"model": self.model.name})
            return
        elif match.alters:
            lake.add_columns(self.relation.sql, rows)
        lake.append(lake.stage(rows, self.relation.sql), {**markers, _BEGAN: query}, None, self._expected())

    def _rows(self, rows: DataFrame, batch: int, query: str) -> DataFrame:
        from pyspark.sql import functions as f

        key = as_struct(self.model.write.unique_key)
        return rows.select(
            (f.when(~f.col(TRUNCATES), key) if TRUNCATES in rows.columns else key).alias("key"),
            as_struct(self.model.write.sequence_by).alias("sequence"),
            f.lit(self.began or query).alias("query_id"),
            f.lit(batch).cast("bigint").alias("batch_id"),
            f.current_timestamp().alias("deleted_at"),
        )

    def _expected(self) -> ExpectedTable:
        last = self.last if self.last is not None or self.facts is None else self.facts.snapshot
        return ExpectedTable(self.model.name, self.facts.uuid if self.facts else None, last, self.descends)

    def _wrote(self, query: str, batch: int) -> SnapshotFacts | None:
        history = self.facts.history if self.facts else ()
        return next((s for s in history if s.marker("batch-id") == str(batch) and s.marker(_QUERY) == query), None)

    def _forget(self, session: SparkSession) -> None:
        if self.facts is None or self.is_cleaned:
            return
        old = f"deleted_at < current_timestamp() - INTERVAL {self.model.write.deletes_remembered}"
        if not session.table(self.relation.sql).where(old).isEmpty():
            text = f"DELETE FROM {self.relation.sql} WHERE {old}"  # noqa: S608 - names and an interval of ours
            until_committed(lambda: session.sql(text), CONFLICTS)
        self.is_cleaned = True

    def _layout(self) -> TableLayout:
        properties = {"engine.model": self.model.name, "engine.deleted": "true"}
        return TableLayout(properties=properties, comment=f"Keys that '{self.model.name}' deleted lately.")


def with_truncated_keys(deleted: DataFrame, rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Deletes in which a TRUNCATE is one delete per key of some rows."""
    truncates = deleted.where("key is null").select("sequence")
    keys = rows.select(as_struct(key).alias("key")).distinct()
    return deleted.where("key is not null").unionByName(keys.crossJoin(truncates))


def as_struct(names: tuple[str, ...]) -> Column:
    from pyspark.sql import functions as f

    return f.struct(*(f.col(quoted(name)).alias(name) for name in names))


def deleted_of(run: Run, model: Model, began: str | None = None) -> Deleted | None:
    """The remembered deletes of a model, as they are; None if it deletes nothing.

    Raises StateError: `name-taken` if a table of their name is not the model's.
    """
    if model.write.delete_when is None:
        return None
    empty = Deleted(model, None)
    relation = empty.relation
    facts = run.lake.table(relation.schema, relation.name)
    if facts is not None and not ownership.adopted(run, model, relation, facts):
        message = f"{relation} was not made by '{model.name}', which needs a table of that name for its deleted keys"
        hint = f"Give the model another 'alias', or drop {relation} if nobody needs it."
        raise StateError("name-taken", message, hint, node=model.name)
    return Deleted(model, facts, began, descends=descends_in(run, relation))


def began_by(run: Run, model: Model, table: TableFacts) -> str | None:
    """The query for whose rows the generations of a table remembered deletes, from snapshots alone; None: none did."""
    deleted, own_ids = deleted_of(run, model), {identity(snapshot) for snapshot in table.history} - {None}
    snapshots = deleted.facts.history if deleted and deleted.facts else ()
    return next((began for s in snapshots if identity(s) in own_ids and (began := s.marker(_BEGAN))), None)
