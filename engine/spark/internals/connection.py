"""The connection between this process and its JVM: how it is guarded, how it ends, and classes of Java by name.

PySpark keeps its context, its gateway and its sessions for the life of a process, and starts the server by which Java
calls Python without a token.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from engine.spark.internals.handles import gateway_of, java_context, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# PySpark sets these for its workers from the session's settings.
_WORKER_VARIABLES: Final = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")


def is_active() -> bool:
    """Whether this process has a session; PySpark takes a while to import, and without it there is none."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None


def guard_callbacks(session: SparkSession) -> None:
    """Start the server by which Java calls Python, with a token: without one any user of the machine may call.

    Py4J takes a token on both sides, but loses Java's as soon as the port is known (`copyWith` of its PythonClient), so
    it is set again. Whoever connects without it is disconnected at the first command.
    """
    from py4j.java_gateway import JavaObject

    gateway, token = gateway_of(session), secrets.token_urlsafe(32)
    gateway.callback_server_parameters.auth_token = token
    await_callbacks(session)
    server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    client = server.getCallbackClient()
    kind = client.getClass()
    while kind.getName() != "py4j.CallbackClient":
        kind = kind.getSuperclass()
    secret = kind.getDeclaredField("authToken")
    secret.setAccessible(True)
    secret.set(client, token)


def await_callbacks(session: SparkSession) -> None:
    """Have the server run by which Java calls Python: a commit's guard is asked by Iceberg."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway_of(session))  # type: ignore[no-untyped-call]


def set_for_all_sessions(session: SparkSession, key: str, value: str) -> None:
    java_session(session).sharedState().conf().set(key, value)


def executor_count(session: SparkSession) -> int:
    return int(java_context(session).getExecutorMemoryStatus().size()) - 1


def is_stopped(session: SparkSession) -> bool:
    return bool(java_context(session).isStopped())


def forget() -> None:
    """Clear what PySpark keeps for the life of the process: without it no other JVM can be used after one has died."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    for name in _WORKER_VARIABLES:
        os.environ.pop(name, None)
    # Still there only if the JVM died before it could be stopped: a thread that listens.
    if context is not None and (server := getattr(context, "_accumulatorServer", None)) is not None:
        server.shutdown()
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()


# What `jvm.org.apache...` in this code begins with. A package that is not listed is found as ever.
_PACKAGES: Final = (
    "java.lang",
    "java.time",
    "java.util.concurrent",
    "java.util.regex",
    "org.apache.iceberg.catalog",
    "org.apache.iceberg.expressions",
    "org.apache.iceberg.spark",
    "org.apache.iceberg.util",
    "org.apache.kafka.common",
    "org.apache.spark.api.python",
    "org.apache.spark.sql.catalyst.expressions",
    "org.apache.spark.sql.classic",
    "org.apache.spark.sql.execution.streaming.runtime",
    "org.apache.spark.sql.execution.streaming.state",
    "org.apache.spark.sql.types",
    "org.apache.spark.util",
    "py4j.reflection",
    "scala",
)


# What PySpark asks its view for again and again, and the class that it means: a name without a package is looked for in
# each of those that PySpark imports, by most of which every jar is looked through in vain.
_CLASSES: Final = {
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
    "functions": "org.apache.spark.sql.functions",
    "org.apache.spark.sql.functions": "org.apache.spark.sql.functions",
}


def know_packages(jvm: Any) -> None:
    """Give a view of the JVM its packages, and the classes that are used all the time.

    Py4J asks Java for a class of each name on the way, `org` in a dozen packages, and for a class that is not there
    Java looks into every jar of the class path: a sixth of what a run of unit tests computed (measured).
    """
    from py4j.java_gateway import JavaClass, JavaPackage

    client, view = jvm._gateway_client, jvm._id
    for name in _PACKAGES:
        above, so_far = jvm, ""
        for part in name.split("."):
            so_far = f"{so_far}.{part}" if so_far else part
            if part not in vars(above):
                setattr(above, part, JavaPackage(so_far, client, view))
            above = vars(above)[part]
    for name, qualified in _CLASSES.items():
        setattr(jvm, name, JavaClass(qualified, client))
