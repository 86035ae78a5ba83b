"""Running data tests: each is a query that returns the failing rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import DataTest, Severity
from engine.events import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_test(session: SparkSession, test: DataTest) -> tuple[Status, int, str]:
    """Run one test.

    Returns:
        How it ended, the number of failing rows, and a message.
    """
    failures = int(session.sql(f"SELECT count(*) FROM (\n{test.sql}\n)").collect()[0][0])  # noqa: S608
    if failures == 0:
        return Status.PASS, 0, ""
    status = Status.WARN if test.severity is Severity.WARN else Status.FAIL
    rows = "row" if failures == 1 else "rows"
    return status, failures, f"{failures} failing {rows}"
