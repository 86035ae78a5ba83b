"""What the columns of a table hold, by its first rows: NULLs, distinct values, least, greatest and most frequent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.compile.nodes.manifest import Manifest, Model
from engine.compile.nodes.personal_data import hidden_columns, personal_columns
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.metadata_values import rows_of
from engine.lake.catalog.value_text import value_text
from engine.lake.lake_reader import Lake
from engine.lake.queries.open_table import OpenTable, opened

if TYPE_CHECKING:
    import pyarrow as pa

# So much is read of a table at most.
MOST_ROWS = 100_000
_MOST_BYTES = 200_000_000
_SAMPLE, _TOP = 10, 5
_LONGEST = 120
_log = logging.getLogger("engine.docs")


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds in the rows that were read.

    Attributes:
        name: of the column.
        type: as Spark has it.
        nulls: how many of its values are NULL.
        distinct: how many different values there are, NULL not counted; None: not counted, as of nested values.
        least: the smallest value; empty where there is none, or no order.
        greatest: the largest one.
        frequent: the most frequent values, with their numbers; none where no value comes twice.
    """

    name: str
    type: str
    nulls: int
    distinct: int | None = None
    least: str = ""
    greatest: str = ""
    frequent: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TableProfile:
    """A table.

    Attributes:
        rows: that were read.
        total: that the table has.
        columns: that are shown.
        sample: some rows, with values of these columns as text; None: NULL.
        left_out: the names of columns that are not shown: personal data, and what the project does not know.
    """

    rows: int
    total: int
    columns: tuple[ColumnProfile, ...]
    sample: tuple[tuple[str | None, ...], ...]
    left_out: tuple[str, ...]


def read_profiles(manifest: Manifest, catalog: CatalogConfig) -> dict[str, TableProfile]:
    """Return the profile of each model with a table, by the models' ids; what cannot be read has none."""
    lake, personal = Lake(catalog), personal_columns(manifest)
    found = {}
    for model in manifest.models:
        if not model.keeps_rows:
            continue
        try:
            with opened(lake, model.relation.schema, model.relation.name) as table:
                if table is not None and not table.only_spark_reads:
                    found[model.id] = _profile(model, table, personal)
        except EngineError as error:
            _log.warning("%s has no profile: %s", model.name, error.diagnostic.message)
    return found


def _profile(model: Model, table: OpenTable, personal: Mapping[str, frozenset[str]]) -> TableProfile:
    known = {column.name.lower() for column in model.columns}
    hidden = hidden_columns(model, table.names, personal)
    names = [name for name in table.names if name not in hidden and name.lower() in known]
    left_out = tuple(name for name in table.names if name not in names)
    if not names:
        total = table.count()
        return TableProfile(0, total, (), (), left_out)
    rows = _first_rows(table, names)
    total = rows.num_rows if rows.num_rows < MOST_ROWS else table.count()
    types = dict(table.columns)
    columns = tuple(_column(name, types[name], rows.column(name)) for name in names)
    sample = tuple(
        tuple(None if value is None else _text(value) for value in row) for row in rows_of(rows.slice(0, _SAMPLE))
    )
    return TableProfile(rows.num_rows, max(total, rows.num_rows), columns, sample, left_out)


def _first_rows(table: OpenTable, names: list[str]) -> pa.Table:
    import pyarrow as pa

    reader = table.rows(names, MOST_ROWS)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > _MOST_BYTES:
            break
    return pa.Table.from_batches(batches, reader.schema)


def _column(name: str, type_: str, values: pa.ChunkedArray) -> ColumnProfile:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = values.drop_null()
    types = pa.types
    opaque = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_null)
    if any(is_one(values.type) for is_one in opaque):
        return ColumnProfile(name, type_, values.null_count)
    counted = pc.value_counts(known)
    most = counted.take(pc.select_k_unstable(counted.field("counts"), _TOP, [("", "descending")]))
    top = rows_of(pa.table({"value": most.field("values"), "number": most.field("counts")}))
    frequent = tuple((_text(value), number) for value, number in top if number > 1)
    return ColumnProfile(name, type_, values.null_count, len(counted), _end(known, "min"), _end(known, "max"), frequent)


def _end(values: pa.ChunkedArray, which: str) -> str:
    """The least or greatest value; empty if there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return _text(_first(pa.array([pc.min_max(values)[which]]))) if len(values) else ""


def _first(values: Any) -> Any:
    import pyarrow as pa

    ((value,),) = rows_of(pa.table({"value": values}))
    return value


def _text(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
