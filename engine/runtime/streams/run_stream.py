"""The life of one streaming query in a bounded build: prepare, start, follow, finish.

    prepare   the query over its inputs (`stream_query`), the generation of the table that it writes (`generation`),
              its inputs against its checkpoint (`stream_inputs`), the writer of its micro-batches
    start     Spark begins
    follow    micro-batches are written (`runtime.writer`) and shown, until all is read that there was
    finish    a rebuild is published; files and tables that are no longer needed go

The plan has decided before what becomes of the model (`engine.plan.actions`); the tables may have moved since, so that
`prepare` asks again, with the same code, before it writes.
"""

from __future__ import annotations

from engine.compile import Model
from engine.events import Outcome
from engine.runtime.context.run_context import Run
from engine.runtime.streams.finish import finish
from engine.runtime.streams.follow import follow, start
from engine.runtime.streams.prepare import prepare


def run_stream(run: Run, model: Model) -> Outcome:
    """Bring a streaming table up to date with what there is now.

    Raises:
        StateError: state, table and upstream tables do not belong together; nothing was written.
        pyspark.errors.PySparkException: Spark rejected or failed the query.
    """
    prepared = prepare(run, model)
    return finish(prepared, follow(prepared, start(prepared)))
