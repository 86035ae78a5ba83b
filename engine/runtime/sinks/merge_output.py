"""The MERGE of a micro-batch into a table with a `unique_key`.

The batch is reduced to one row a key first: two rows for one row of the table are an error of Spark's. Keys are matched
with `<=>`: NULL is a key. A row of the table gives way to a newer one only; on a tie it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import Write
from engine.errors import EngineError, RunError
from engine.lake import staging_branch
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit, batch_of
from engine.lake.merge_statement import Merge, Range, merge
from engine.relations import quoted
from engine.runtime.quality.expectations import LEFT_OUT, left_out
from engine.runtime.sinks import unavailable_values
from engine.runtime.sinks.deleted_keys import TRUNCATES, Deleted, as_struct, with_truncated_keys
from engine.runtime.sinks.history_output import COPIES, CURRENT, column_of, newest, same_keys, versions
from engine.runtime.sinks.unavailable_values import UNWRITABLE
from engine.sources import mark_bad_records

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DELETE = "__delete"
# `delete_when` asks for the delete: its key is remembered.
ASKED = "__asked"
_AT = "__truncated_at"
_SHOWN = 3
# Types whose least and greatest value bound the partitions in which a key can be.
_RANGED = {"int", "bigint", "date", "timestamp", "string"}


@dataclass(frozen=True, slots=True)
class Merges:
    """Merges each micro-batch into a table.

    `scope`: the columns of a group of which a micro-batch has all rows, if there may be several; empty: one at most.
    `repeats`: rows may be there more than once.
    """

    model: Model
    relation: str
    deleted: Deleted | None
    branch: str | None = None
    scope: tuple[str, ...] = ()
    repeats: bool = False

    def prepare(self, frame: DataFrame, query: str) -> Merged:
        """Compute the rows to merge; they are held until the commit, as their number decides whether there is one."""
        with ExitStack() as frames:
            marked = self._marked(frame, frames)
            quarantined, truncates = None, None
            if self.model.write.truncate_when is not None:
                marked, truncates = self._with_truncates(marked, frames)
            if self.model.write.unavailable is not None:
                marked, quarantined = self._with_stored_values(marked, query, frames)
            rows = self._newest(marked).persist()
            frames.callback(rows.unpersist)
            merged = self._counted(rows, query)
            return replace(merged, quarantined=quarantined, truncates=truncates, frames=frames.pop_all())

    def _with_truncates(self, marked: DataFrame, frames: ExitStack) -> tuple[DataFrame, DataFrame | None]:
        """Rows with a delete per older row of the table in place of a TRUNCATE; and TRUNCATEs to be remembered.

        A history keeps the versions of the micro-batch that are older than one.
        """
        from pyspark.sql import functions as f

        write = self.model.write
        marked = marked.persist()
        frames.callback(marked.unpersist)
        is_truncate = f.coalesce(f.expr(f"({write.truncate_when})"), f.lit(False))
        rows, at = marked.where(~is_truncate), as_struct(write.sequence_by)
        truncates = marked.where(is_truncate).select(at.alias(_AT)).distinct()
        if truncates.isEmpty():
            return rows, None
        table = self._table(marked.sparkSession)
        if write.history:
            table = table.where(column_of(CURRENT))
        else:
            truncates = truncates.agg(f.max(_AT).alias(_AT))
            rows = rows.join(f.broadcast(truncates), f.col(_AT) < at).drop(_AT)
        keys = [column_of(name) for name in write.unique_key]
        deletes = table.join(f.broadcast(truncates), f.col(_AT) > at).select(
            *keys, f.col(f"{_AT}.*"), f.lit(False).alias(ASKED), f.lit(True).alias(DELETE)
        )
        without_key = truncates.select(f"{_AT}.*", f.lit(True).alias(TRUNCATES))
        remembered = marked.select(*keys).limit(0).unionByName(without_key, allowMissingColumns=True)
        return rows.unionByName(deletes, allowMissingColumns=True), remembered

    def _with_stored_values(
        self, marked: DataFrame, query: str, frames: ExitStack
    ) -> tuple[DataFrame, DataFrame | None]:
        """Changes with values in place of those that were not sent, and those that need values which nobody has."""
        from pyspark.sql import functions as f

        write = self.model.write
        if write.unavailable is None:
            return marked, None
        marked = marked.persist()
        frames.callback(marked.unpersist)
        lacking = unavailable_values.unavailable_columns(marked, write.unavailable)
        if not lacking:
            return marked, None
        table = self._table(marked.sparkSession)
        changes = unavailable_values.with_stored_values(marked, table, write, write.unavailable, lacking, DELETE)
        changes = changes.persist()
        frames.callback(changes.unpersist)
        unwritable = self._newest(changes).where(f.col(UNWRITABLE).isNotNull())
        deleted = self.remembered_deletes(unwritable, query)
        if deleted is not None:
            unwritable = unwritable.join(deleted, _deleted_later(write, unwritable, deleted), "left_anti")
        row_json = mark_bad_records.as_json(unwritable, (ASKED, DELETE, COPIES, UNWRITABLE))
        quarantined = unwritable.select(f.col(UNWRITABLE).alias("reason"), row_json.alias("row"))
        writable = changes.where(f.col(UNWRITABLE).isNull()).drop(UNWRITABLE)
        return writable, None if quarantined.isEmpty() else quarantined

    def remembered_deletes(self, rows: DataFrame, query: str) -> DataFrame | None:
        """The remembered deletes of the keys of some rows; None: there has never been one."""
        deleted = self.deleted.counting_deletes(rows.sparkSession, query) if self.deleted else None
        if deleted is None or self.model.write.truncate_when is None:
            return deleted
        return with_truncated_keys(deleted, rows, self.model.write.unique_key)

    def _table(self, session: SparkSession) -> DataFrame:
        branch = f".`branch_{self.branch}`" if self.branch else ""
        return session.table(self.relation + branch)

    def _marked(self, frame: DataFrame, frames: ExitStack) -> DataFrame:
        from pyspark.sql import functions as f

        write = self.model.write
        frame = frame.dropDuplicates() if self.repeats else frame
        if self.scope:
            # A micro-batch that is computed twice counts late rows twice.
            frame = frame.persist()
            frames.callback(frame.unpersist)
            absent_rows = self._absent_rows(frame)
            frame = frame.where(~left_out(frame)).unionByName(absent_rows, allowMissingColumns=True)
        asks_delete = f.coalesce(f.expr(f"({write.delete_when})"), f.lit(False)) if write.delete_when else f.lit(False)
        marked = frame.withColumn(ASKED, asks_delete & ~left_out(frame))
        return marked.withColumn(DELETE, f.col(ASKED) | left_out(frame))

    def _newest(self, marked: DataFrame) -> DataFrame:
        write = self.model.write
        keys = (*write.unique_key, *write.sequence_by) if write.history else write.unique_key
        return newest(marked, keys, write.sequence_by)

    def _absent_rows(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        keys = self.model.write.unique_key
        table_keys = self._table(frame.sparkSession).select(*map(column_of, keys))
        groups = frame.select(*map(column_of, self.scope)).distinct()
        rows = frame.where(~left_out(frame)).select(*map(column_of, keys))
        absent_rows = table_keys.join(groups, same_keys(table_keys, groups, self.scope), "left_semi")
        return absent_rows.join(rows, same_keys(absent_rows, rows, keys), "left_anti").withColumn(LEFT_OUT, f.lit(True))

    def _counted(self, rows: DataFrame, query: str) -> Merged:
        from pyspark.sql import functions as f

        write = self.model.write
        ranged = _ranged(rows, write)
        ends = [_numbered(end(column_of(name)), kind) for name, kind in ranged.items() for end in (f.min, f.max)]
        non_null = [f.count(column_of(name)) for name in ranged]
        several = f.count_if(f.col(COPIES) > 1)
        (counts,) = rows.select(f.count("*"), f.count_if(f.col(ASKED)), several, *ends, *non_null).collect()
        refusal = self._repeated(rows, counts[2]) if counts[2] and not write.sequence_by else None
        full = [counts[3 + len(ends) + index] == counts[0] for index in range(len(ranged))]
        ranges = [
            Range(name, kind, counts[3 + 2 * index], counts[4 + 2 * index])
            for index, (name, kind) in enumerate(ranged.items())
            if full[index]
        ]
        return Merged(self, rows, query, counts[0], counts[1], tuple(ranges), refusal)

    def _repeated(self, rows: DataFrame, count: int) -> RunError:
        from pyspark.sql import functions as f

        key = f.to_json(as_struct(self.model.write.unique_key))
        some = rows.where(f.col(COPIES) > 1).select(key).sort(key).limit(_SHOWN).collect()
        examples = ", ".join(row[0] for row in some) + (", ..." if count > _SHOWN else "")
        several = "a key has" if count == 1 else f"{count:,} keys have"
        message = f"{several} more than one row in a micro-batch, and no column orders them: {examples}"
        hint = "Add 'sequence_by: updated_at' (a column that increases with each change of a row)."
        return RunError("duplicate-key", f"{message}", f"{hint} Nothing of the micro-batch was written.")


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows of a micro-batch to be merged, one for each key; `deletes`: how many keys are remembered as deleted.

    `truncates`: the newest TRUNCATE, to be remembered; None: there is none.
    `quarantined`: changes that cannot be written, as `reason` and `row`; None: there are none.
    """

    output: Merges
    rows: DataFrame
    query: str
    count: int
    deletes: int
    ranges: tuple[Range, ...] = ()
    refusal: EngineError | None = None
    quarantined: DataFrame | None = None
    truncates: DataFrame | None = None
    frames: ExitStack = field(default_factory=ExitStack)

    @property
    def several(self) -> bool:
        return self.deletes > 0 or self.quarantined is not None or self.truncates is not None

    def first(self, batch: int, markers: Mapping[str, str]) -> None:
        deleted = self.output.deleted
        if deleted is not None:
            rows = self.rows.where(ASKED) if self.deletes else None
            if self.truncates is not None:
                rows = self.truncates if rows is None else _with_remembered(rows, self.truncates)
            deleted.append(self.rows.sparkSession, rows, batch, self.query, markers)

    def commit(self, markers: Mapping[str, str], expected: ExpectedTable | None = None) -> Commit | None:
        kill_points.reach("merging", self.output.model.name, batch_of(markers), self.output.relation)
        if not self.count:
            return None
        model, relation = self.output.model, self.output.relation
        write, session = model.write, self.rows.sparkSession
        deleted = self.output.remembered_deletes(self.rows, self.query)
        if write.history:
            source = versions(session.table(relation), self.rows.drop(COPIES), write, DELETE, deleted)
            keys = (*write.unique_key, *write.sequence_by)
            merge_rule = Merge(keys, update=("valid_to", "is_current"), ranges=self.ranges)
            return merge(source, relation, merge_rule, markers, expected=expected, options=write.write_options)
        source = self.rows.drop(COPIES)
        if deleted is not None:
            source = source.join(deleted, _deleted_later(write, source, deleted), "left_anti")
        outdated = LEFT_OUT if LEFT_OUT in source.columns else None
        delete = DELETE if write.delete_when or outdated else None
        merge_rule = Merge(write.unique_key, write.sequence_by, delete, outdated, ranges=self.ranges)
        branch = self.output.branch
        if branch is not None:
            staging_branch.ensure_branch(
                session, relation, {key: text for key, text in markers.items() if key != "batch-id"}
            )
        return merge(source, relation, merge_rule, markers, branch, expected, write.write_options)

    def discard(self) -> None:
        """Nothing was written."""

    def close(self) -> None:
        self.frames.close()


def _deleted_later(write: Write, rows: DataFrame, deleted: DataFrame) -> Column:
    """Whether a row is not newer than a delete of its key; a delete itself always passes."""
    from pyspark.sql import functions as f

    late = ~rows[DELETE] & (
        deleted["sequence"] >= f.struct(*(rows[quoted(name)].alias(name) for name in write.sequence_by))
    )
    for name in write.unique_key:
        late &= deleted["key"][name].eqNullSafe(rows[quoted(name)])
    return late


def _with_remembered(rows: DataFrame, truncates: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.withColumn(TRUNCATES, f.lit(False)).unionByName(truncates, allowMissingColumns=True)


def _numbered(end: Column, kind: str) -> Column:
    from pyspark.sql import functions as f

    number = {"timestamp": f.unix_micros, "date": f.unix_date}.get(kind)
    return (number(end) if number else end).cast("string")


def _ranged(rows: DataFrame, write: Write) -> dict[str, str]:
    parted = {part.column.lower() for part in write.partition_by if part.transform != "bucket"}
    kinds = {name.lower(): kind for name, kind in rows.dtypes}
    key_types = {name: kinds[name.lower()] for name in write.unique_key if name.lower() in parted}
    return {name: kind for name, kind in key_types.items() if kind in _RANGED}
