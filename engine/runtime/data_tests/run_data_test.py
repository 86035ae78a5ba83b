"""Running data tests: each is a query that returns the failing rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import DataTest, Severity
from engine.compile.declarations.failing_rows import FAILING_ROWS
from engine.errors import Diagnostic
from engine.events import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SIGNS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataTestVerdict:
    """How a test ended.

    Attributes:
        failures: failing rows of a data test, expectations of a unit test that do not hold.
        passed_at: when it passed, UTC, if that pass counts and it did not run; empty: it ran.
        seconds: how long it took, if it ran before its turn.
    """

    status: Status
    failures: int = 0
    message: str = ""
    findings: tuple[Diagnostic, ...] = ()
    passed_at: str = ""
    seconds: float | None = None


def run_test(session: SparkSession, test: DataTest, query: str) -> DataTestVerdict:
    if test.limit is not None:
        query = f"SELECT * FROM (\n{query}\n) LIMIT {test.limit}"  # noqa: S608
    kept = ""
    if test.stored is not None:
        marked = f"TBLPROPERTIES ('{FAILING_ROWS}' = 'true')"
        session.sql(f"CREATE OR REPLACE TABLE {test.stored.sql} USING iceberg {marked} AS\n{query}")
        query, kept = f"SELECT * FROM {test.stored.sql}", f", stored in {test.stored}"  # noqa: S608
    failures = int(session.sql(f"SELECT count(*) FROM (\n{query}\n)").collect()[0][0])  # noqa: S608
    status = judged(test, failures)
    rows = "row" if failures == 1 else "rows"
    return DataTestVerdict(status, failures, f"{failures} failing {rows}{kept}" if failures else "")


def no_failures(test: DataTest) -> DataTestVerdict:
    return DataTestVerdict(judged(test, 0))


def judged(test: DataTest, failures: int) -> Status:
    if test.severity is Severity.ERROR and _holds(test.error_if, failures):
        return Status.FAIL
    return Status.WARN if _holds(test.warn_if, failures) else Status.PASS


def _holds(bound: str, failures: int) -> bool:
    parts = (part.partition(" ") for part in (bound or "!= 0").split(" or "))
    return any(_SIGNS[sign](failures, int(number)) for sign, _, number in parts)
