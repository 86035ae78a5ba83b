"""Joins of streams that give the rows of SQL: a rule of Spark's optimiser (`StreamJoins.java`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.spark.local_files import JAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS: Final = "headrace.StreamJoins"


def join_as_sql(session: SparkSession) -> None:
    """Apply the rule to the queries that a session starts from now on; it is installed once."""
    from py4j.java_gateway import JavaClass

    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has no other way to a rule
    rule = jvm.headrace.StreamJoins
    if isinstance(rule, JavaClass):
        rule.install(session._jsparkSession)  # noqa: SLF001
    else:
        _install_from_jar(session, jvm)


def _install_from_jar(session: SparkSession, jvm: Any) -> None:
    """The same where the JVM was started without our jar: by spark-submit. The rule runs in the driver alone."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(JAR.absolute())).toURI().toURL()
    loader = jvm.java.net.URLClassLoader(urls, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    given = session._jsparkSession  # noqa: SLF001
    parameters, values = gateway.new_array(jvm.java.lang.Class, 1), gateway.new_array(jvm.java.lang.Object, 1)
    parameters[0], values[0] = given.getClass(), given
    loader.loadClass(_CLASS).getMethod("install", parameters).invoke(None, values)
