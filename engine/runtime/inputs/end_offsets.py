"""Where a bounded build ends that Spark's availableNow trigger cannot run, because it reads tables.

It runs with a processing-time trigger until nothing is left to read. A source that grows faster than micro-batches are
written would keep it alive: 26 s and 55 micro-batches, for as long as the producer wrote (measured). Spark's sources
can fix their end as they do for availableNow (`prepareForTriggerAvailableNow`). Tables cannot be asked: they look at
the first snapshot that was ever read, which may have expired. They are taken whole in each micro-batch, so they count
as read once some micro-batches have brought rows of nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.spark.internals.queries import fix_ends, last_report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_SOON = 60.0
# One that comes again after a crash, one that takes what waits, one that closes what the moved watermark closes.
_LAST = 3


class EndReached(Exception):  # noqa: N818 - nothing went wrong
    """Ends the query before a micro-batch with rows that came after the build had started."""


@dataclass(slots=True)
class EndOffsets:
    """The foreachBatch function of such a build: fixes the ends in its first micro-batch, and stops after them.

    In a micro-batch Spark waits for this function and asks no source for anything.

    Attributes:
        query: Spark's, as soon as it is started.
        reached: the query was ended here; the micro-batch it was at belongs to the next build.
    """

    write: Callable[[DataFrame, int], None]
    query: Future[StreamingQuery]
    reached: bool = False
    error: BaseException | None = None
    _fixed: list[bool] | None = None
    _without: int = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one micro-batch, unless it is behind the end."""
        try:
            if self._fixed is None:
                self._fixed = fix_ends(self.query.result(_SOON))
            else:
                self.reached = self._passed(self._fixed)
        except BaseException as error:
            self.error = error
            raise
        if self.reached:
            raise EndReached
        self.write(frame, batch)

    def _passed(self, fixed: list[bool]) -> bool:
        """Whether several micro-batches in a row had no rows but those of tables."""
        record = json.loads(last_report(self.query.result(_SOON)))
        rows = [source["numInputRows"] for source in record["sources"]]
        bounded = any(count for count, ends in zip(rows, fixed, strict=True) if ends)
        self._without = 0 if bounded else self._without + 1
        return self._without >= _LAST
