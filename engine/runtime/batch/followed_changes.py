"""The changes of a model's inputs since its last build, as the refresh of its table looks at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import FollowedQuery, InputState
from engine.compile.refresh.query_block import TruncatedTime
from engine.lake.changes.arrow_changes import DifferingFiles, NetRows, differing_files
from engine.lake.changes.snapshot_changes import (
    SIDE,
    ChangedFiles,
    changed_files,
    comparable,
    forget_files,
    net_changes,
)
from engine.lake.commits import Commit
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, unquoted_view
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

    `types`: of the columns of the output, by name in lower case. `are_few`: whether the rows that changed are few
    enough for one task.
    """

    session: SparkSession
    lake: Lake
    model: Model
    choice: RefreshChoice
    query: FollowedQuery
    changed_views: tuple[str, ...]
    table: TableFacts
    types: Mapping[str, str]
    are_few: bool

    @property
    def auto(self) -> bool:
        return self.model.write.refresh is Refresh.AUTO

    def current_rows(self, ranges: Mapping[str, Ranges], units: Mapping[str, str]) -> DataFrame:
        """Return the query over its inputs as they are now, by the snapshots that are compared.

        `ranges`: where the values of partition columns lie; inputs are narrowed by those of a time that the query cuts
        to a unit, and its rows still are those of other values too. `units`: the transform of which the ranges are
        whole values.
        """
        names = {
            change.view: state_name(self.choice, unquoted_view(change.view), InputState.AFTER)
            for change in self.choice.inputs
        }
        for key, value_ranges in ranges.items():
            query_key = self.query.branches[0].keys.get(key) if len(self.query.branches) == 1 else None
            time_cut = query_key.cut if query_key is not None else None
            view = next(
                (
                    change.view
                    for change in self.choice.inputs
                    if time_cut and unquoted_view(change.view) == time_cut.view
                ),
                None,
            )
            if time_cut is not None and view is not None and value_ranges:
                names[view] = self._narrowed(names[view], time_cut, value_ranges, units[key])
        return self.session.sql(self.model.sql_with(names))

    def _narrowed(self, name: str, time_cut: TruncatedTime, ranges: Ranges, unit: str) -> str:
        frame, column = self.session.table(name), quoted(time_cut.column)
        if frame.select(column).schema.fields[0].dataType.simpleString() not in {"timestamp", "date"}:
            return name
        upper_shift = "" if time_cut.cut_within(unit) else f" + INTERVAL {time_cut.days} DAYS"
        parts = (f"({column} >= {low} AND {column} < {high}{upper_shift})" for low, high in ranges)
        frame.where(" OR ".join(parts)).createOrReplaceTempView(f"{name}_part")
        return f"{name}_part"

    def affected_values(self, keys: Sequence[str]) -> DataFrame:
        """Return the values of some columns in all rows of the output that may have changed, in their types there.

        Values may come more than once; of few changed rows, all are in one partition, so that one job finds them.
        """
        states: set[InputState] = set()

        def view_name(view: str, state: InputState) -> str:
            states.add(state)
            return state_name(self.choice, view, state)

        rows = self.session.sql(self.query.search(keys, self.changed_views, view_name))
        values = rows.selectExpr(*(f"CAST({quoted(key)} AS {self.types[key]}) AS {quoted(key)}" for key in keys))
        return values.coalesce(1) if self.are_few and not states & _WHOLE else values


def state_name(choice: RefreshChoice, view: str, state: InputState) -> str:
    number = [unquoted_view(change.view) for change in choice.inputs].index(view)
    return f"__{state.value}_{number}"


def commit_nothing(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
    del rows, markers
    return None


@dataclass(frozen=True, slots=True)
class NetInput:
    """The rows by which an input differs, by the columns that are read; `are_few`: compared in this process."""

    removed: DataFrame
    added: DataFrame
    are_few: bool


@dataclass(frozen=True, slots=True)
class InputReading:
    session: SparkSession
    lake: Lake
    manifest: Manifest
    stack: ExitStack

    def files(self, change: InputChange) -> DifferingFiles | ChangedFiles:
        node = table_of(self.manifest, change)
        differing = differing_files(self.lake, node.relation.schema, node.relation.name, change.before, change.after)
        return self._in_java(change) if differing is None else differing

    def _in_java(self, change: InputChange) -> ChangedFiles:
        files = changed_files(self.session, table_of(self.manifest, change).relation.sql, change.before, change.after)
        self.stack.callback(forget_files, self.session, files)
        return files

    def net_rows(self, change: InputChange, files: DifferingFiles | ChangedFiles) -> NetInput | None:
        """The rows that were removed and those that were added, by the columns that are read; None: there are none.

        Raises FullRefreshError: they cannot be compared.
        """
        net = files.net_rows(change.columns) if isinstance(files, DifferingFiles) else None
        if net is not None and net.none:
            return None
        frame = self.session.table(table_of(self.manifest, change).relation.sql)
        types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
        odd = [name for name in change.columns if not comparable(types[name.lower()])]
        if odd:
            raise FullRefreshError(
                f"the values of '{change.name}.{odd[0]}' ({types[odd[0].lower()]}) cannot be compared"
            )
        # A query that reads no column counts rows.
        columns = change.columns or (frame.columns[0],)
        if net is not None:
            return self._net(net, frame.select(*map(quoted, columns)).schema)
        if isinstance(files, DifferingFiles):
            files = self._in_java(change)
        rows = net_changes(self.session, files, columns).persist()
        self.stack.callback(rows.unpersist)
        if rows.isEmpty():
            return None
        removed, added = (rows.where(f"{SIDE} {sign} 0").drop(SIDE) for sign in "<>")
        return NetInput(removed, added, are_few=False)

    def _net(self, net: NetRows, schema: StructType) -> NetInput:
        """The rows in Spark: a relation that is in its plan, of which no job is needed to look at it."""
        from pyspark.sql.types import LongType, StructField, StructType

        # Earlier rows may lack what is required by now.
        fields = [StructField(field.name, field.dataType) for field in schema.fields]
        rows = self.session.createDataFrame(net.sides(SIDE), StructType([*fields, StructField(SIDE, LongType())]))
        removed, added = (rows.where(f"{SIDE} {sign} 0").drop(SIDE) for sign in "<>")
        return NetInput(removed, added, are_few=True)


def table_of(manifest: Manifest, change: InputChange) -> Model:
    node = manifest.nodes[change.node]
    if not isinstance(node, Model):
        raise TypeError(change.node)
    return node
