"""One marked MERGE of a frame into a table; under a lease it is made on a branch.

Spark commits a MERGE itself and asks nobody: it would be made onto a fence. So it is made onto a branch that only the
holder of a lease has, and becomes the table in a second commit, which compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.lake.commit_guard import ExpectedTable, Guard, guard
from engine.lake.commits import Commit, HeadMovedError, commit_with_retries
from engine.lake.table_fence import Fence
from engine.lake.table_writer import load
from engine.relations import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BRANCH_PREFIX = "engine_lease_"
_MAIN = "main"
_SOURCE = "__batch"
_SESSION = "spark.sql.iceberg."
_SUMMARY = "snapshot-property."
_MARKER = f"{_SESSION}{_SUMMARY}engine."


# Times and days are given by their number, as a text of theirs means another moment in another zone, or two at the end
# of summer time. The values are data: they are parameters, and never a part of the statement.
_BOUNDS = {
    "timestamp": "timestamp_micros(CAST({0} AS bigint))",
    "date": "date_from_unix_date(CAST({0} AS int))",
}


@dataclass(frozen=True, slots=True)
class MergeApart:
    guard: Guard
    fence: Fence
    merge: Callable[[str], object]

    @property
    def branch(self) -> str:
        return f"{_BRANCH_PREFIX}{self.fence.lease.token.replace('-', '_')}"

    def __call__(self) -> None:
        """Make the MERGE and show it.

        Raises:
            HeadMovedError: others have committed in between; nothing was shown.
            StateError: `lease-lost`.
        """
        head = self._begin()
        self.merge(self.branch)
        self._show(head)

    def _begin(self) -> int | None:
        table = self.guard.table
        table.refresh()
        operations = table.operations()
        base = operations.current()
        self.fence.check(base)
        ref = base.ref(self.guard.branch or _MAIN)
        change = self._builder().buildFrom(base)
        for name in [str(name) for name in base.refs() if str(name).startswith(_BRANCH_PREFIX)]:
            change.removeRef(name)
        if ref is None:
            operations.commit(base, change.build())
            table.refresh()
            table.newAppend().toBranch(self.branch).commit()
            table.refresh()
            return None
        head = int(ref.snapshotId())
        operations.commit(base, change.setBranchSnapshot(head, self.branch).build())
        table.refresh()
        return head

    def _show(self, head: int | None) -> None:
        table = self.guard.table
        table.refresh()
        operations = table.operations()
        base = operations.current()
        if self.fence.is_behind(base):
            raise self.fence.lease.lost_error()
        merged, ref = base.ref(self.branch), base.ref(self.guard.branch or _MAIN)
        current_head = int(ref.snapshotId()) if ref is not None else None
        if merged is None or current_head != head:
            raise HeadMovedError(f"CommitFailedException: {table.name()} was changed while rows were merged into it")
        change = self._builder().buildFrom(base).setBranchSnapshot(int(merged.snapshotId()), self.guard.branch or _MAIN)
        # Compared with what is there and swapped by the catalog.
        operations.commit(base, change.removeRef(self.branch).build())
        table.refresh()

    def _builder(self) -> Any:
        return self.guard.jvm.org.apache.iceberg.TableMetadata


@dataclass(frozen=True, slots=True)
class Range:
    """`least` and `greatest` are text: microseconds of a timestamp, days since 1970 of a date. No value is NULL."""

    column: str
    type: str
    least: str
    greatest: str

    def sql(self, number: int) -> str:
        as_type = _BOUNDS.get(self.type, f"CAST({{0}} AS {self.type})")
        ends = (as_type.format(f":{name}") for name in self.parameters(number))
        return f"t.{quoted(self.column)} BETWEEN {' AND '.join(ends)}"

    def parameters(self, number: int) -> dict[str, str]:
        return {f"least_{number}": self.least, f"greatest_{number}": self.greatest}


@dataclass(frozen=True, slots=True)
class Merge:
    """What happens to rows that match.

    `keys`: NULL matches NULL. `sequence`: a row gives way only to one that is greater by these; empty: always.
    `delete`: the column that says whether the row deletes; `outdated`: that a delete holds whatever the sequence.
    `update`: the columns that are changed; empty: all. `ranges`: of columns of the key; they change no result.
    """

    keys: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    delete: str | None = None
    outdated: str | None = None
    update: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()


def merge(
    rows: DataFrame,
    relation: str,
    rule: Merge,
    markers: Mapping[str, str],
    branch: str | None = None,
    expected: ExpectedTable | None = None,
    options: Mapping[str, str] | None = None,
) -> Commit:
    """Merge rows, one per key, in one marked commit, tried again as a whole; columns that rows lack are NULL.

    Raises:
        RunError: `commit-conflict`.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    session = rows.sparkSession
    rows.createOrReplaceTempView(_SOURCE)
    table = load(session, relation)
    columns = tuple(str(column.name()) for column in table.schema().columns())
    row_columns, bounds = frozenset(rows.columns), _bounds(rule.ranges)
    guarded = guard(session, table, branch, expected, markers)

    def into(name: str | None) -> object:
        target = f"{relation}.`branch_{name}`" if name else relation
        return session.sql(_sql(target, columns, row_columns, rule), args=bounds)

    attempt = MergeApart(guarded, guarded.fence, into) if guarded.fence is not None else partial(into, branch)
    with _settings(session, {**_as_settings(options or {}), **_marker_settings(markers)}):
        return commit_with_retries(table, markers, attempt, 0, guarded)


def _as_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings for options of the writer, whose letter case does not matter but in names of the summary."""
    summary_keys = {key: key[len(_SUMMARY) :] if key.lower().startswith(_SUMMARY) else None for key in options}
    return {
        _SESSION + (key.lower() if name is None else _SUMMARY + name): options[key]
        for key, name in summary_keys.items()
    }


def _marker_settings(markers: Mapping[str, str]) -> dict[str, str]:
    return {_MARKER + key: value for key, value in markers.items()}


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session have settings for a while: its commits carry markers so, as a MERGE takes no options."""
    earlier_values = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in earlier_values.items():
            if earlier is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, earlier)


def _sql(relation: str, columns: tuple[str, ...], row_columns: frozenset[str], rule: Merge) -> str:
    key_matches = (f"t.{quoted(key)} <=> s.{quoted(key)}" for key in rule.keys)
    match = " AND ".join([*key_matches, *(part.sql(number) for number, part in enumerate(rule.ranges))])
    newer = f" AND {_struct('s', rule.sequence)} > {_struct('t', rule.sequence)}" if rule.sequence else ""
    stays = f" AND NOT s.{quoted(rule.delete)}" if rule.delete else ""
    values = {name: f"s.{quoted(name)}" if name in row_columns else "NULL" for name in columns}
    assignments = ", ".join(f"t.{quoted(name)} = {values[name]}" for name in rule.update or columns)
    lines = [f"MERGE INTO {relation} AS t USING `{_SOURCE}` AS s ON {match}"]
    if rule.delete:
        newer_or_left_out = f" AND (s.{quoted(rule.outdated)} OR TRUE{newer})" if rule.outdated else newer
        lines.append(f"WHEN MATCHED AND s.{quoted(rule.delete)}{newer_or_left_out} THEN DELETE")
    lines.append(f"WHEN MATCHED{stays}{newer} THEN UPDATE SET {assignments}")
    names, inserted = ", ".join(map(quoted, columns)), ", ".join(values.values())
    lines.append(f"WHEN NOT MATCHED{stays} THEN INSERT ({names}) VALUES ({inserted})")  # noqa: S608 - quoted
    return "\n".join(lines)


def _bounds(ranges: Sequence[Range]) -> dict[str, str]:
    return {name: end for number, part in enumerate(ranges) for name, end in part.parameters(number).items()}


def _struct(side: str, names: tuple[str, ...]) -> str:
    return f"struct({', '.join(f'{side}.{quoted(name)}' for name in names)})"
