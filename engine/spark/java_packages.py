"""Packages of Java that Python knows by name, instead of asking whether they are classes."""

from __future__ import annotations

from typing import Any, Final

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


def know_packages(jvm: Any) -> None:
    """Give a view of the JVM its packages.

    Py4J asks Java for a class of each name on the way, `org` in a dozen packages, and for a class that is not there
    Java looks into every jar of the class path: a sixth of what a run of unit tests computed (measured).
    """
    from py4j.java_gateway import JavaPackage

    client, view = jvm._gateway_client, jvm._id  # noqa: SLF001 - what a package asks with
    for name in _PACKAGES:
        above, so_far = jvm, ""
        for part in name.split("."):
            so_far = f"{so_far}.{part}" if so_far else part
            if part not in vars(above):
                setattr(above, part, JavaPackage(so_far, client, view))
            above = vars(above)[part]
