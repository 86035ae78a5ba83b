"""The changes of a model's inputs, as the refresh of its table looks at them.

The rows by which the inputs of a batch table differ from what its last build read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import FollowedQuery, InputState
from engine.compile.refresh.truncated_times import TruncatedTime
from engine.lake.changes.arrow_changes import DifferingFiles, NetRows, differing_files
from engine.lake.changes.snapshot_changes import SIDE, ChangedFiles, changed_files, comparable, forget, net_changes
from engine.lake.commits import Commit
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, plain
from engine.relations import quoted
from engine.runtime.batch.replace_table import Committing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_WHOLE = frozenset((InputState.BEFORE, InputState.AFTER))
# From and to (inclusive), as SQL.
Ranges = Sequence[tuple[str, str]]


class FullRefreshError(Exception):
    """The table has to be computed in full; `reason` is a clause."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Affected:
    """What is to be computed again; `frame` has the new rows; None: no row that is read changed."""

    frame: DataFrame | None
    commit: Committing
    note: str


@dataclass(frozen=True, slots=True)
class FollowedChanges:
    """The changed rows of inputs, registered in a session, and how they are followed to the output.

    Attributes:
        types: of the columns of the output, by name in lower case.
        few: whether the rows that changed are few enough for one task.
    """

    session: SparkSession
    lake: Lake
    model: Model
    choice: RefreshChoice
    query: FollowedQuery
    changed: tuple[str, ...]
    table: TableFacts
    types: Mapping[str, str]
    few: bool

    @property
    def auto(self) -> bool:
        return self.model.write.refresh is Refresh.AUTO

    def now(self, ranges: Mapping[str, Ranges], units: Mapping[str, str]) -> DataFrame:
        """The query over its inputs as they are now, by the snapshots that are compared.

        Args:
            ranges: by partition column, where it is known in which ranges the values lie that are looked at. Inputs are
                narrowed by those of a time that the query cuts to a unit; its rows still are those of other values too.
            units: by partition column, the transform of which the ranges are whole values.
        """
        names = {one.view: state_name(self.choice, plain(one.view), InputState.AFTER) for one in self.choice.inputs}
        for key, known in ranges.items():
            own = self.query.branches[0].keys.get(key) if len(self.query.branches) == 1 else None
            found = own.cut if own is not None else None
            view = next((one.view for one in self.choice.inputs if found and plain(one.view) == found.view), None)
            if found is not None and view is not None and known:
                names[view] = self._narrowed(names[view], found, known, units[key])
        return self.session.sql(self.model.sql_with(names))

    def _narrowed(self, name: str, found: TruncatedTime, ranges: Ranges, unit: str) -> str:
        frame, column = self.session.table(name), quoted(found.column)
        if frame.select(column).schema.fields[0].dataType.simpleString() not in {"timestamp", "date"}:
            return name
        behind = "" if found.cut_within(unit) else f" + INTERVAL {found.days} DAYS"
        parts = (f"({column} >= {low} AND {column} < {high}{behind})" for low, high in ranges)
        frame.where(" OR ".join(parts)).createOrReplaceTempView(f"{name}_part")
        return f"{name}_part"

    def affected_values(self, keys: Sequence[str]) -> DataFrame:
        """The values of some columns in all rows of the output that may have changed, in the types they have there.

        A branch of a UNION ALL may give another type than the union has. Values may come more than once; where no more
        is read than few changed rows, all are in one partition, so that one job finds them.
        """
        states: set[InputState] = set()

        def named(view: str, state: InputState) -> str:
            states.add(state)
            return state_name(self.choice, view, state)

        found = self.session.sql(self.query.search(keys, self.changed, named))
        values = found.selectExpr(*(f"CAST({quoted(key)} AS {self.types[key]}) AS {quoted(key)}" for key in keys))
        return values.coalesce(1) if self.few and not states & _WHOLE else values


def state_name(choice: RefreshChoice, view: str, state: InputState) -> str:
    number = [plain(one.view) for one in choice.inputs].index(view)
    return f"__{state.value}_{number}"


def no_commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
    del rows, markers
    return None


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
