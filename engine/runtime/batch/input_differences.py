"""The rows by which the inputs of a batch table differ from what its last build read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.lake.changes.arrow_changes import DifferingFiles, NetRows, differing_files
from engine.lake.changes.snapshot_changes import SIDE, ChangedFiles, changed_files, comparable, forget, net_changes
from engine.lake.lake_reader import Lake
from engine.lake.quoted_names import quoted
from engine.plan.refresh.refresh_choice import InputChange
from engine.runtime.batch.followed_changes import FullRefreshError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class NetInput:
    """The rows by which an input differs, by the columns that are read; `few`: compared in this process."""

    removed: DataFrame
    added: DataFrame
    few: bool


@dataclass(frozen=True, slots=True)
class InputReading:
    """How the changes of inputs are read: few plain rows in this process, all else by Spark."""

    session: SparkSession
    lake: Lake
    manifest: Manifest
    stack: ExitStack

    def files(self, one: InputChange) -> DifferingFiles | ChangedFiles:
        node = table_of(self.manifest, one)
        found = differing_files(self.lake, node.relation.schema, node.relation.name, one.before, one.after)
        return self._in_java(one) if found is None else found

    def _in_java(self, one: InputChange) -> ChangedFiles:
        found = changed_files(self.session, table_of(self.manifest, one).relation.sql, one.before, one.after)
        self.stack.callback(forget, self.session, found)
        return found

    def net_rows(self, one: InputChange, files: DifferingFiles | ChangedFiles) -> NetInput | None:
        """The rows that were removed and those that were added, by the columns that are read; None: there are none.

        Raises:
            FullRefreshError: they cannot be compared.
        """
        net = files.net_rows(one.columns) if isinstance(files, DifferingFiles) else None
        if net is not None and net.none:
            return None
        frame = self.session.table(table_of(self.manifest, one).relation.sql)
        types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
        odd = [name for name in one.columns if not comparable(types[name.lower()])]
        if odd:
            raise FullRefreshError(f"the values of '{one.name}.{odd[0]}' ({types[odd[0].lower()]}) cannot be compared")
        # A query that reads no column counts rows.
        columns = one.columns or (frame.columns[0],)
        if net is not None:
            return self._net(net, frame.select(*map(quoted, columns)).schema)
        if isinstance(files, DifferingFiles):
            files = self._in_java(one)
        rows = net_changes(self.session, files, columns).persist()
        self.stack.callback(rows.unpersist)
        if rows.isEmpty():
            return None
        removed, added = (rows.where(f"{SIDE} {sign} 0").drop(SIDE) for sign in "<>")
        return NetInput(removed, added, few=False)

    def _net(self, net: NetRows, schema: StructType) -> NetInput:
        """The rows in Spark: a relation that is in its plan, of which no job is needed to look at it."""
        from pyspark.sql.types import LongType, StructField, StructType

        # Earlier rows may lack what is required by now.
        fields = [StructField(field.name, field.dataType) for field in schema.fields]
        rows = self.session.createDataFrame(net.sides(SIDE), StructType([*fields, StructField(SIDE, LongType())]))
        removed, added = (rows.where(f"{SIDE} {sign} 0").drop(SIDE) for sign in "<>")
        return NetInput(removed, added, few=True)


def table_of(manifest: Manifest, one: InputChange) -> Model:
    node = manifest.nodes[one.node]
    if not isinstance(node, Model):
        raise TypeError(one.node)
    return node
