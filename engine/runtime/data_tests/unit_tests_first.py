"""Unit tests run on this machine, whatever the target's master is: before the session of a cluster, not in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.compile import Target, UnitTest
from engine.runtime.data_tests.run_data_test import DataTestVerdict
from engine.spark_master import runs_locally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    # Runs a unit test; what they are made of is in a later stage.
    RunUnit = Callable[[SparkSession, UnitTest], DataTestVerdict]

_OPTIONS: Final = "spark.driver.extraJavaOptions"
# What a target says of its cluster, and means nothing, or would open a port, in one process of this machine.
_OF_CLUSTERS: Final = (
    "spark.driver.host", "spark.driver.bindAddress", "spark.driver.port", "spark.driver.blockManager.port",
    "spark.blockManager.port", "spark.port.maxRetries", "spark.kubernetes.", "spark.yarn.", "spark.submit.",
    "spark.dynamicAllocation.", "spark.executor.", "spark.executorEnv.", "spark.cores.max", "spark.eventLog.",
)  # fmt: skip


def local_target(target: Target) -> Target:
    """Return the target with Spark on this machine, for unit tests alone; Java is set up for a short session."""
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {target.conf.get(_OPTIONS, '')}".strip()
    if runs_locally(target.master):
        return replace(target, conf={**target.conf, _OPTIONS: options})
    local_conf = {key: value for key, value in target.conf.items() if not key.startswith(_OF_CLUSTERS)}
    return replace(target, master="local[*]", conf={**local_conf, _OPTIONS: options})


def verdicts(
    spark: SparkSession, tests: Sequence[UnitTest], run_unit: RunUnit, threads: int
) -> Callable[[SparkSession, UnitTest], DataTestVerdict]:
    """Run unit tests, `threads` side by side, and return what gives the verdict of each when its turn comes."""

    def timed(test: UnitTest) -> DataTestVerdict:
        begin = time.monotonic()
        return replace(run_unit(spark, test), seconds=time.monotonic() - begin)

    pool = ThreadPoolExecutor(threads)
    try:
        futures: Mapping[str, Future[DataTestVerdict]] = {test.id: pool.submit(timed, test) for test in tests}
        for verdict in futures.values():
            verdict.exception()
    except BaseException:
        spark.sparkContext.cancelAllJobs()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return lambda _, test: futures[test.id].result()
