"""Rows of a micro-batch that stand for groups that the query leaves out by now (see `groups_left_out`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# boolean; without the column all rows are those of the query.
LEFT_OUT: Final = "__left_out"


def left_out(frame: DataFrame) -> Column:
    from pyspark.sql import functions as f

    return f.col(LEFT_OUT) if LEFT_OUT in frame.columns else f.lit(False)
