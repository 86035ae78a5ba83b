"""What Spark was asked once, and is asked again in part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.errors import AnalysisException, ParseException


def answered_otherwise(spark: Any, types: Mapping[str, str], asked: Iterable[tuple[str, bool]]) -> list[str]:
    """The queries over a view `t` on which Spark's verdict is another one than it was.

    Args:
        spark: a session.
        types: of the columns of `t`, by name; `void` for NULL.
        asked: queries, and whether Spark rejected them.
    """
    columns = ("null" if type_ == "void" else f"cast(null as {type_})" for type_ in types.values())
    listed = ", ".join(f"{column} as `{name}`" for column, name in zip(columns, types, strict=True))
    spark.sql(f"select {listed}").createOrReplaceTempView("t")
    different = []
    for sql, rejected in asked:
        try:
            spark.sql(sql)
        except (AnalysisException, ParseException):
            different += [] if rejected else [sql]
        else:
            different += [sql] if rejected else []
    spark.catalog.dropTempView("t")
    return different
