"""Rows of unit tests as frames, with the types that their columns have in the pipeline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.compile.nodes.unit_test_steps import Rows
from engine.lake.table_writer import literal
from engine.relations import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Columns = Sequence[tuple[str, str]]

_ROW = "__row"


def typed(session: SparkSession, rows: Rows, columns: Columns) -> DataFrame:
    """Return rows with these columns and types; missing cells are NULL.

    Values become part of the plan, so that no Spark job computes them.
    """
    from pyspark.sql import functions as f

    frame = session.sql(rows.sql) if rows.sql is not None else _values(session, rows)
    frame_columns = {name.lower() for name in frame.columns}
    cells = (
        (f.col(quoted(name)) if name.lower() in frame_columns else f.lit(None)).cast(kind).alias(name)
        for name, kind in columns
    )
    return frame.select(*cells)


def _values(session: SparkSession, rows: Rows) -> DataFrame:
    from pyspark.sql import functions as f

    if not rows.values or not rows.columns:
        return (
            session.sql("SELECT 1 AS __none WHERE false") if not rows.values else _empty_rows(session, len(rows.values))
        )
    texts = ", ".join(f"({literal(json.dumps(dict(row)))})" for row in rows.values)
    kind = ", ".join(f"{quoted(name)} {type_ or 'string'}" for name, type_ in rows.columns)
    frame = session.sql(f"SELECT * FROM VALUES {texts} AS t({_ROW})")  # noqa: S608 - quoted literals
    return frame.select(f.from_json(_ROW, kind, {"mode": "FAILFAST"}).alias(_ROW)).select(f"{_ROW}.*")


def _empty_rows(session: SparkSession, count: int) -> DataFrame:
    return session.sql("SELECT * FROM VALUES " + ", ".join(["(1)"] * count) + " AS t(__none)")  # noqa: S608 - no names
