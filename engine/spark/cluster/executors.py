"""The executors of a cluster: whether its master answers, how many cores they have, which Python runs on them."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import SetupError
from engine.spark.internals import connection
from engine.spark.internals.connection import is_stopped
from engine.spark_master import MasterKind, addresses, is_loopback, is_on_this_machine, kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_SECONDS: Final = 5.0
# YARN and Kubernetes may have to find room, and to pull an image.
_WAIT_SECONDS: Final[Mapping[MasterKind, float]] = {MasterKind.STANDALONE: 60.0}
_LONG_WAIT_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.1
# Workers of one cluster start their executors side by side: those of a second are counted together.
_SETTLING_SECONDS: Final = 1.0
_LEAST_CORES: Final = 2
_PYTHON: Final = "spark.pyspark.python"


def check_masters(master: str) -> None:
    """Ask whether a standalone master accepts connections, before Java starts: Spark itself would try for a minute.

    Raises:
        SetupError: `cluster-unreachable`: none of them does.
    """
    found = addresses(master)
    reasons = []
    for host, port in found:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if found:
        message = f"no Spark master accepts connections at {master} ({'; '.join(reasons)})"
        hint = "Start the cluster, or correct 'spark: {master: ..}' in the target; nothing was written."
        raise SetupError("cluster-unreachable", message, hint)


def await_executors(spark: SparkSession, master: str, log: Path) -> None:
    """Wait until executors are there, and no more come: Spark would wait for the first without bound.

    Raises:
        SetupError: `cluster-without-executors`.
    """
    deadline = time.monotonic() + _WAIT_SECONDS.get(kind_of(master), _LONG_WAIT_SECONDS)
    known, since = 0, time.monotonic()
    while known == 0 or time.monotonic() - since < _SETTLING_SECONDS:
        count = executor_count(spark)
        if count != known:
            known, since = count, time.monotonic()
        if known == 0 and (time.monotonic() > deadline or is_stopped(spark)):
            message = f"the cluster at {master} started no executor"
            hint = (
                "Check that its workers have as many free cores and as much memory as an executor asks for "
                f"(spark.executor.cores, spark.executor.memory), and the same spark.authenticate.secret; see {log}."
            )
            raise SetupError("cluster-without-executors", message, hint)
        time.sleep(_POLL_SECONDS)


def executor_count(spark: SparkSession) -> int:
    from py4j.protocol import Py4JError

    with suppress(Py4JError):
        return connection.executor_count(spark)
    return 0


def usable_cores(spark: SparkSession, conf: Mapping[str, str]) -> int:
    """Return how many tasks run side by side; where the number of executors changes, how many there can be at most."""
    now = int(spark.sparkContext.defaultParallelism)
    most = conf.get("spark.dynamicAllocation.maxExecutors", "")
    cores = conf.get("spark.executor.cores", "1")
    later = int(most) * int(cores) if most.isdecimal() and cores.isdecimal() else 0
    return max(_LEAST_CORES, now, later)


def executor_python(master: str, conf: Mapping[str, str]) -> str | None:
    """Return the Python of executors; None: python3 on their path, or the one that PYSPARK_PYTHON names."""
    named = conf.get(_PYTHON)
    own = is_on_this_machine(master) or is_loopback(master)
    return named or (sys.executable if own else None)
