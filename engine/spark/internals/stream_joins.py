"""Joins of streams that give the rows of SQL: a rule of Spark's optimiser (`StreamJoins.java`).

PySpark has no way to a rule. Without it joins of streams lose rows, or give rows that SQL does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.spark.internals.handles import gateway_of, java_session, jvm_of
from engine.spark.local_files import JAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS: Final = "headrace.StreamJoins"


def join_as_sql(session: SparkSession) -> None:
    """Apply the rule to the queries that a session starts from now on; it is installed once."""
    from py4j.java_gateway import JavaClass

    jvm = jvm_of(session)
    rule = jvm.headrace.StreamJoins
    if isinstance(rule, JavaClass):
        rule.install(java_session(session))
    else:
        _install_from_jar(session, jvm)


def _install_from_jar(session: SparkSession, jvm: Any) -> None:
    """The same where the JVM was started without our jar: by spark-submit. The rule runs in the driver alone."""
    gateway = gateway_of(session)
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(JAR.absolute())).toURI().toURL()
    loader = jvm.java.net.URLClassLoader(urls, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    given = java_session(session)
    parameters, values = gateway.new_array(jvm.java.lang.Class, 1), gateway.new_array(jvm.java.lang.Object, 1)
    parameters[0], values[0] = given.getClass(), given
    loader.loadClass(_CLASS).getMethod("install", parameters).invoke(None, values)
