"""What a model expects of its output rows, evaluated in the query that makes them.

Only TRUE passes: NULL fails, and so does a check whose computing is an error. Failing rows are counted in the execution
itself. `drop` takes rows out; `quarantine` (which wins over `drop`, so that nothing goes unseen) adds a column with the
failed checks. Rows for groups that the query leaves out (see `groups_left_out`) fail nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from engine.compile.nodes.manifest import Manifest, Model
from engine.compile.nodes.model_settings import Expectation, OnFail
from engine.compile.nodes.personal_data import hidden_columns, personal_columns
from engine.compile.output.condition_types import DELETES, HINT, conditions, not_boolean
from engine.errors import Location, RunError
from engine.sources import mark_bad_records
from engine.spark.internals import executions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def check_conditions(model: Model, frame: DataFrame) -> None:
    """Check that the conditions of a model are boolean over the rows of its query.

    Raises:
        RunError: `condition-syntax`.
        pyspark.errors.AnalysisException: Spark rejects one of them.
    """
    from pyspark.sql import functions as f

    model_conditions = list(conditions(model))
    if not model_conditions:
        return
    types = frame.select(
        *(f.expr(f"({sql})").alias(f"c{index}") for index, (_, sql, _) in enumerate(model_conditions))
    ).dtypes
    for (name, sql, key), (_, type_) in zip(model_conditions, types, strict=True):
        if type_ not in {"boolean", "void"}:
            hint = DELETES if key == "delete_when" else HINT
            place = model.positions.settings.get(key) or Location(model.file)
            raise RunError("condition-syntax", not_boolean(name, sql, type_), hint, node=model.name, location=place)


# boolean; without the column all rows are those of the query.
LEFT_OUT: Final = "__left_out"


def left_out(frame: DataFrame) -> Column:
    from pyspark.sql import functions as f

    return f.col(LEFT_OUT) if LEFT_OUT in frame.columns else f.lit(False)


OBSERVED = "expectations"
# array<boolean>: for each check of the model whether the row fails it.
FAILED = "__failed"
# Up to three different rows: aggregates that hold one each.
_SAMPLES = ("first", "min", "max")


def splits(checks: Iterable[Expectation]) -> bool:
    return any(check.on_fail is OnFail.QUARANTINE for check in checks)


def parted(checks: Iterable[Expectation], failed_counts: Mapping[str, int]) -> bool:
    return any(failed_counts[check.name] for check in checks if check.on_fail is OnFail.QUARANTINE)


def checked_rows(frame: DataFrame, model: Model, manifest: Manifest) -> DataFrame:
    """As `checked`, for a model; messages quote no column with personal data."""
    if not model.expectations:
        return frame
    return checked(frame, model.expectations, hidden_columns(model, frame.columns, personal_columns(manifest)))


def checked(frame: DataFrame, checks: Sequence[Expectation], unquoted: Collection[str] = ()) -> DataFrame:
    """The rows that are not dropped, counted; with FAILED if a check quarantines; messages omit `unquoted` columns."""
    from pyspark.sql import functions as f

    if not checks:
        return frame
    row = mark_bad_records.as_json(frame.drop(LEFT_OUT), unquoted)
    marked = marked_rows(frame, checks)
    metrics = [f.count_if(f.col(FAILED)[index]).alias(_name("count", index)) for index in range(len(checks))]
    for index in _with(checks, OnFail.FAIL):
        metrics += _samples(f.when(f.col(FAILED)[index], row), index)
    marked = marked.observe(OBSERVED, *metrics)
    dropped = _any(checks, OnFail.DROP) & ~_any(checks, OnFail.QUARANTINE)
    remaining = marked.where(~dropped) if _with(checks, OnFail.DROP) else marked
    return remaining if splits(checks) else remaining.drop(FAILED)


def marked_rows(frame: DataFrame, checks: Sequence[Expectation]) -> DataFrame:
    """All rows, with FAILED; a group that the query leaves out fails nothing."""
    from pyspark.sql import functions as f

    marks = [~f.coalesce(executions.try_expression(frame.sparkSession, check.check), f.lit(False)) for check in checks]
    if LEFT_OUT in frame.columns:
        marks = [mark & ~left_out(frame) for mark in marks]
    return frame.withColumn(FAILED, f.array(*marks).cast("array<boolean>"))


def failing_any(checks: Sequence[Expectation], policies: Collection[OnFail]) -> Column:
    from pyspark.sql import functions as f

    return reduce(or_, (_any(checks, policy) for policy in policies), f.lit(False))


def passing(frame: DataFrame, checks: Sequence[Expectation]) -> DataFrame:
    return frame.where(~_any(checks, OnFail.QUARANTINE)).drop(FAILED) if FAILED in frame.columns else frame


def failing(frame: DataFrame, checks: Sequence[Expectation]) -> DataFrame:
    """The rows for the quarantine, from a checked frame: `reason`, `checks`, `row` as JSON."""
    from pyspark.sql import functions as f

    bare = frame.drop(FAILED, LEFT_OUT)
    names = f.array(*(f.when(f.col(FAILED)[index], f.lit(check.name)) for index, check in enumerate(checks)))
    return frame.where(_any(checks, OnFail.QUARANTINE)).select(
        f.lit("it fails expectations").alias("reason"),
        f.array_compact(names).alias("checks"),
        mark_bad_records.as_json(bare).alias("row"),
    )


def counted(execution: Any, checks: Sequence[Expectation]) -> dict[str, int]:
    metrics = executions.observed(execution).get(OBSERVED, {})
    return {check.name: int(metrics.get(_name("count", index)) or 0) for index, check in enumerate(checks)}


def refused(execution: Any, checks: Sequence[Expectation], counts: Mapping[str, int]) -> RunError | None:
    """The error that ends a model at rows that fail a `fail` check, with up to three of them."""
    metrics = executions.observed(execution).get(OBSERVED, {})
    for index in _with(checks, OnFail.FAIL):
        check = checks[index]
        if counts.get(check.name):
            rows = dict.fromkeys(metrics.get(_name(kind, index)) for kind in _SAMPLES)
            return _error(check, counts[check.name], [row for row in rows if row is not None])
    return None


def _error(check: Expectation, count: int, rows: Sequence[str]) -> RunError:
    several = "one row fails" if count == 1 else f"{count:,} rows fail"
    message = f"{several} the expectation '{check.name}' ({check.check}): {', '.join(rows)}"
    hint = (
        "Nothing of the micro-batch was written; the next build repeats it. Correct the query or the check, or set "
        "on_fail: quarantine (such rows go to <model>__quarantine), drop or warn."
    )
    return RunError("expectation-failed", message, hint)


def _with(checks: Sequence[Expectation], policy: OnFail) -> list[int]:
    return [index for index, check in enumerate(checks) if check.on_fail is policy]


def _any(checks: Sequence[Expectation], policy: OnFail) -> Column:
    from pyspark.sql import functions as f

    any_failed = f.lit(False)
    for index in _with(checks, policy):
        any_failed |= f.col(FAILED)[index]
    return any_failed


def _samples(row: Column, index: int) -> list[Column]:
    from pyspark.sql import functions as f

    aggregates = {"first": f.first(row, ignorenulls=True), "min": f.min(row), "max": f.max(row)}
    return [aggregates[kind].alias(_name(kind, index)) for kind in _SAMPLES]


def _name(kind: str, index: int) -> str:
    return f"{kind}_{index}"


def counts_of(frame: DataFrame, checks: Sequence[Expectation]) -> dict[str, int]:
    from pyspark.sql import functions as f

    sums = frame.select(*(f.count_if(f.col(FAILED)[index]) for index in range(len(checks)))).first()
    return {check.name: int(sums[index]) if sums else 0 for index, check in enumerate(checks)}
