"""Where the engine calls two queries the same and Spark does not, and the other way round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.plan import Change
from tests.sameness.engine_says import Pair, Said, plain, says
from tests.sameness.spark_says import Spark

# Whose result is another in each run, or in each session.
_RANDOM = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|monotonically_increasing_id|now|current_\w+|localtimestamp|uniform|randstr|curdate|"
    r"spark_partition_id|input_file_\w+|tablesample)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A pair that the engine calls the same, and how Spark's answers differ."""

    pair: Pair
    said: Said
    how: str

    def __str__(self) -> str:
        by = "normal form" if self.said.form else "plan"
        return f"  {plain(self.pair.one)!r}\n  {plain(self.pair.other)!r}\n  called the same by the {by}; {self.how}"


@dataclass(slots=True)
class Count:
    """How often what came out."""

    pairs: int = 0
    called: Counter[str] = field(default_factory=Counter)
    equal: int = 0
    equal_changed: int = 0
    examples: list[str] = field(default_factory=list)


def faults(spark: Spark, folder: Path, pairs: Sequence[Pair], count: Count) -> Iterator[Fault]:
    """The pairs that the engine calls the same and that are not; `count` is added to."""
    for pair, said in zip(pairs, says(folder, pairs), strict=True):
        count.pairs += 1
        count.called["same" if said.same else "rejected by compile" if said.change is None else said.change.value] += 1
        how = difference(spark, pair, said) if said.same else ""
        if how:
            yield Fault(pair, said, how)
        elif said.change is not None:
            _useful(spark, pair, said, count)


def difference(spark: Spark, pair: Pair, said: Said) -> str:
    """How Spark's answers differ; empty: they do not, or it rejects one, which no build can mistake for the other."""
    one, other = plain(pair.one), plain(pair.other)
    before, after = spark.answer(one), spark.answer(other)
    if before.refused and after.refused:
        return ""
    if before.refused or after.refused:
        return ""
    # A stream's table is written by name, and has the names that it began with.
    loose = pair.streams and not said.form
    columns = [_columns(answer.columns, loose=loose) for answer in (before, after)]
    if columns[0] != columns[1]:
        return f"columns {columns[0]} and {columns[1]}"
    if spark.same_plan(one, other) or _RANDOM.search(one):
        return ""
    for ansi in (True, False):
        found = [
            _rows(spark.rows(sql, ansi=ansi), answer.columns, loose=loose)
            for sql, answer in ((one, before), (other, after))
        ]
        if found[0] != found[1]:
            return f"rows {_first(*found)}"
        if not str(found[0]).startswith("error"):
            break
    return ""


def _columns(columns: Sequence[tuple[str, str]], *, loose: bool) -> list[tuple[str, str]]:
    return sorted((name.lower(), type_) for name, type_ in columns) if loose else list(columns)


def _rows(rows: Any, columns: Sequence[tuple[str, str]], *, loose: bool) -> Any:
    if isinstance(rows, str):
        return rows
    order = sorted(range(len(columns)), key=lambda i: columns[i][0].lower()) if loose else range(len(columns))
    return sorted(tuple(row[i] for i in order) for row in rows)


def _first(one: Any, other: Any) -> str:
    if isinstance(one, str) or isinstance(other, str):
        return f"{str(one)[:200]} and {str(other)[:200]}"
    here, there = ([row for row in rows if row not in rest][:1] for rows, rest in ((one, other), (other, one)))
    return f"{here} and {there}"[:500]


def _useful(spark: Spark, pair: Pair, said: Said, count: Count) -> None:
    """Count the pairs that are one to Spark's optimiser, and how many of them `plan` calls changed."""
    one, other = plain(pair.one), plain(pair.other)
    if one == other or spark.answer(one).columns != spark.answer(other).columns or not spark.same_plan(one, other):
        return
    count.equal += 1
    if said.change is not Change.UNCHANGED:
        count.equal_changed += 1
        count.examples.append(f"{said.change}: {one!r}\n    {other!r}\n    {'; '.join(said.reasons)}")
