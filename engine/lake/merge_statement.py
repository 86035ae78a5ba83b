"""One marked MERGE of a frame into a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.lake.commit_guard import ExpectedTable, guard
from engine.lake.commits import Commit, settled
from engine.lake.fencing.merge_apart import MergeApart
from engine.lake.table_writer import load
from engine.relations import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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

    Attributes:
        keys: the columns by which rows match; NULL matches NULL.
        sequence: a row gives way only to one that is greater by these columns; empty: always.
        delete: the column of the frame that says whether the row deletes; None: no row does.
        outdated: the column that says of a delete that it holds whatever the sequence; None: none does.
        update: the columns that are changed; empty: all.
        ranges: of columns of the key; they change no result.
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
    how: Merge,
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
    given, bounds = frozenset(rows.columns), _bounds(how.ranges)
    guarded = guard(session, table, branch, expected, markers)

    def into(name: str | None) -> object:
        target = f"{relation}.`branch_{name}`" if name else relation
        return session.sql(_sql(target, columns, given, how), args=bounds)

    attempt = MergeApart(guarded, guarded.fence, into) if guarded.fence is not None else partial(into, branch)
    with _settings(session, {**_as_settings(options or {}), **_marked(markers)}):
        return settled(table, markers, attempt, 0, guarded)


def _as_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings for options of the writer, whose letter case does not matter but in names of the summary."""
    named = {key: key[len(_SUMMARY) :] if key.lower().startswith(_SUMMARY) else None for key in options}
    return {_SESSION + (key.lower() if name is None else _SUMMARY + name): options[key] for key, name in named.items()}


def _marked(markers: Mapping[str, str]) -> dict[str, str]:
    return {_MARKER + key: value for key, value in markers.items()}


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session have settings for a while: its commits carry markers so, as a MERGE takes no options."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            if known is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, known)


def _sql(relation: str, columns: tuple[str, ...], given: frozenset[str], how: Merge) -> str:
    same = (f"t.{quoted(key)} <=> s.{quoted(key)}" for key in how.keys)
    match = " AND ".join([*same, *(part.sql(number) for number, part in enumerate(how.ranges))])
    newer = f" AND {_struct('s', how.sequence)} > {_struct('t', how.sequence)}" if how.sequence else ""
    stays = f" AND NOT s.{quoted(how.delete)}" if how.delete else ""
    values = {name: f"s.{quoted(name)}" if name in given else "NULL" for name in columns}
    changed = ", ".join(f"t.{quoted(name)} = {values[name]}" for name in how.update or columns)
    lines = [f"MERGE INTO {relation} AS t USING `{_SOURCE}` AS s ON {match}"]
    if how.delete:
        newer_or_left_out = f" AND (s.{quoted(how.outdated)} OR TRUE{newer})" if how.outdated else newer
        lines.append(f"WHEN MATCHED AND s.{quoted(how.delete)}{newer_or_left_out} THEN DELETE")
    lines.append(f"WHEN MATCHED{stays}{newer} THEN UPDATE SET {changed}")
    names, taken = ", ".join(map(quoted, columns)), ", ".join(values.values())
    lines.append(f"WHEN NOT MATCHED{stays} THEN INSERT ({names}) VALUES ({taken})")  # noqa: S608 - quoted
    return "\n".join(lines)


def _bounds(ranges: Sequence[Range]) -> dict[str, str]:
    return {name: end for number, part in enumerate(ranges) for name, end in part.parameters(number).items()}


def _struct(side: str, names: tuple[str, ...]) -> str:
    return f"struct({', '.join(f'{side}.{quoted(name)}' for name in names)})"
