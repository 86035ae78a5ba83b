"""Packages and classes of Java that Python knows by name, instead of asking Java for them each time."""

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
