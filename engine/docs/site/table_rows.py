"""Rows of tables and a profile of their columns, for a site that was asked to show them.

Columns that may hold personal data are left out, by the rule that `engine mcp` masks them.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from engine.compile.nodes.manifest import Manifest, Model
from engine.compile.nodes.personal_data import hidden_columns, personal_columns
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.value_text import value_text
from engine.lake.lake_reader import Lake

# So many rows are read for the profile of a table.
PROFILED = 10_000
_MOST_OF_A_VALUE = 200
_READERS = 4
# Only Spark reads rows with such a value.
_VARIANT = re.compile(r"\bvariant\b", re.IGNORECASE)
_log = logging.getLogger("engine.docs")


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Of the rows read; `distinct`, `least` and `greatest` are None where values have no order, as structs."""

    name: str
    nulls: int
    distinct: int | None
    least: str | None
    greatest: str | None


@dataclass(frozen=True, slots=True)
class TableRows:
    """Some rows of a table as texts, None for NULL, and a profile of its first `profiled` rows.

    `hidden` names the columns that may hold personal data: nothing else has anything of them.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    profiled: int
    profiles: tuple[ColumnProfile, ...]
    hidden: tuple[str, ...] = ()


def read_rows(manifest: Manifest, catalog: CatalogConfig, most: int) -> dict[str, TableRows]:
    """Return at most `most` rows of each stored table, by the models' ids; a table that cannot be read is warned of."""
    lake, personal = Lake(catalog), personal_columns(manifest)

    def rows_of(model: Model) -> TableRows | None:
        relation = model.relation
        try:
            columns = lake.columns(relation.schema, relation.name)
            if columns is None or any(_VARIANT.search(column.type) for column in columns):
                return None
            hidden = hidden_columns(model, [column.name for column in columns], personal)
            data = lake.arrow(relation.schema, relation.name, max(PROFILED, most))
        except EngineError as error:
            _log.warning("the rows of %s cannot be shown: %s", relation, error.diagnostic.message)
            return None
        return None if data is None else _table_rows(data, hidden, most)

    models = [model for model in manifest.models if model.keeps_rows]
    with ThreadPoolExecutor(_READERS) as pool:
        return {model.id: rows for model, rows in zip(models, pool.map(rows_of, models), strict=True) if rows}


def _table_rows(data: Any, hidden: frozenset[str], most: int) -> TableRows:
    from engine.lake.catalog.metadata_document import rows_of

    visible = data.select([name for name in data.column_names if name not in hidden])
    names = tuple(visible.column_names)
    rows = tuple(tuple(map(_text, row)) for row in rows_of(visible.slice(0, most))) if names else ()
    return TableRows(
        names,
        rows,
        visible.num_rows,
        tuple(_profile(name, visible.column(name)) for name in names),
        tuple(name for name in data.column_names if name in hidden),
    )


def _profile(name: str, values: Any) -> ColumnProfile:
    import pyarrow as pa
    import pyarrow.compute as pc

    from engine.lake.catalog.metadata_document import rows_of

    try:
        distinct, ends = pc.count_distinct(values).as_py(), pc.min_max(values)
        least, greatest = (rows_of(pa.table({"value": pa.array([ends[end]])}))[0][0] for end in ("min", "max"))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, TypeError):
        return ColumnProfile(name, values.null_count, None, None, None)
    return ColumnProfile(name, values.null_count, distinct, _text(least), _text(greatest))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value_text(value)
    return text if len(text) <= _MOST_OF_A_VALUE else f"{text[:_MOST_OF_A_VALUE]}…"
