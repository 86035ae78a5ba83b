"""A full extract: all rows of a query as they are at one time, one for each key, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.compile.nodes.model_settings import Deletes, OnEmptyExtract, Write
from engine.errors import Location, RunError
from engine.runtime.sinks.deleted_keys import as_struct
from engine.runtime.sinks.latest_per_key import comparable, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The rows of an extract, and those that it is compared with, each as a struct.
NEW, OLD = "__new", "__old"
_COPIES, _UNSET = "__copies", "__unset"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Extract:
    """A full extract.

    Attributes:
        at: the time that its rows are of, in microseconds since 1970.
        of_build: it is the query's result now, and not a file of some time.
    """

    at: int
    name: str
    of_build: bool = False

    def shown(self) -> str:
        """The time as text, UTC."""
        return datetime.fromtimestamp(self.at / 1_000_000, UTC).isoformat(" ", "microseconds").removesuffix("+00:00")


def paired(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Pair the rows of an extract (`NEW`) with those of another one (`OLD`) by their keys; one of both may be NULL."""
    from pyspark.sql import functions as f

    new, old = rows.select(f.struct("*").alias(NEW)), others.select(f.struct("*").alias(OLD))
    return new.join(old, same_keys(new[NEW], old[OLD], keys), "full_outer")


def same_keys(left: Column, right: Column, keys: Sequence[str]) -> Column:
    """Whether two structs have the same values of some keys; NULL is a value."""
    return reduce(lambda one, other: one & other, (left[name].eqNullSafe(right[name]) for name in keys))


def differs(rows: DataFrame, write: Write) -> Column:
    from pyspark.sql import functions as f

    if write.sequence_by:
        (name,) = write.sequence_by
        return f.col(NEW)[name] > f.col(OLD)[name]
    compared = [name for name in rows.columns if name not in write.unique_key] if write.check_all else write.check
    each = (
        comparable(rows, name, f.col(NEW)[name]).eqNullSafe(comparable(rows, name, f.col(OLD)[name]))
        for name in compared
    )
    return ~reduce(lambda one, other: one & other, each, f.lit(True))


def check_rows(model: Model, rows: DataFrame, extract: Extract) -> None:
    """Check an extract by itself: one row for each key, a sequence in each row, and rows where they are needed.

    Raises:
        RunError: `duplicate-key`, `sequence-null` or `extract-empty`.
    """
    from pyspark.sql import functions as f

    write, keys = model.write, model.write.unique_key
    unset = reduce(lambda one, other: one | other, (named(name).isNull() for name in write.sequence_by), f.lit(False))
    by_key = rows.groupBy(*map(named, keys)).agg(f.count("*").alias(_COPIES), f.count_if(unset).alias(_UNSET))
    several, missing = f.col(_COPIES) > 1, f.col(_UNSET) > 0
    ((found, copied, nulls),) = by_key.agg(f.count("*"), f.count_if(several), f.count_if(missing)).collect()
    if copied:
        shown = shown_keys(by_key.where(several), keys, copied)
        message = f"{keys_have(copied)} more than one row in {extract.name}: {shown}"
        hint = f"One row of each key is a version. Reduce the query to one row for each {', '.join(keys)}."
        raise fault(model, "duplicate-key", message, hint)
    if nulls:
        name = write.sequence_by[0]
        message = f"{keys_have(nulls)} no '{name}' in {extract.name}: {shown_keys(by_key.where(missing), keys, nulls)}"
        hint = f"A version begins at '{name}': write coalesce(..) as {name}, or use 'check: all'."
        raise fault(model, "sequence-null", message, hint)
    if not found:
        check_empty(model, extract)


def check_empty(model: Model, extract: Extract) -> None:
    """Check that an extract may be without rows.

    Raises:
        RunError: `extract-empty`.
    """
    write = model.write
    if write.deletes is Deletes.CLOSE and write.on_empty_extract is OnEmptyExtract.FAIL:
        message = f"{extract.name} has no rows: with 'deletes: close' each key would count as deleted"
        hint = "Repair or remove the extract. If nothing is left indeed, set 'on_empty_extract: close'."
        raise fault(model, "extract-empty", message, hint)


def shown_keys(rows: DataFrame, keys: Sequence[str], count: int) -> str:
    from pyspark.sql import functions as f

    key = f.to_json(as_struct(tuple(keys)))
    some = rows.select(key).distinct().sort(key).limit(_SHOWN).collect()
    return ", ".join(row[0] for row in some) + (", ..." if count > _SHOWN else "")


def keys_have(count: int) -> str:
    return "1 key has" if count == 1 else f"{count:,} keys have"


def fault(model: Model, code: str, message: str, hint: str) -> RunError:
    return RunError(code, message, hint, node=model.name, location=Location(model.file))
