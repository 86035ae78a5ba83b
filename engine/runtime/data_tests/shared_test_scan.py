"""One look at a table for several data tests: those of which no row fails need no query of their own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.compile import DataTest
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle import publish
from engine.runtime.spark_support.spark_errors import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("engine.runtime")


@dataclass(slots=True)
class SharedScan:
    """At least two tests that look at the same rows; the first that runs looks for all of them."""

    tests: tuple[DataTest, ...]
    _clean: frozenset[str] | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def clean(self, run: Run, test: DataTest, session: SparkSession) -> bool:
        with self._guard:
            if self._clean is None:
                self._clean = _look(run, self.tests, session)
            return test.id in self._clean


def shared(tests: Iterable[DataTest]) -> Mapping[str, SharedScan]:
    by_rows: dict[str, list[DataTest]] = {}
    for test in tests:
        if test.look is not None:
            by_rows.setdefault(test.look.rows, []).append(test)
    groups = (SharedScan(tuple(group)) for group in by_rows.values() if len(group) > 1)
    return {test.id: group for group in groups for test in group.tests}


def _look(run: Run, tests: tuple[DataTest, ...], session: SparkSession) -> frozenset[str]:
    looks = [test.look for test in tests if test.look is not None]
    rows = publish.reading_what_waits(run, replace(tests[0], sql=looks[0].rows))
    query = f"SELECT {', '.join(look.failing for look in looks)}\nFROM {rows}"
    try:
        found = session.sql(query).collect()[0]
    except spark_exceptions():
        # A fault of one of them is shown by its own query.
        if run.stop.is_set():
            raise
        _log.info("no common query for the tests of %s", tests[0].model, exc_info=True)
        return frozenset()
    return frozenset(test.id for test, failing in zip(tests, found, strict=True) if not failing)
