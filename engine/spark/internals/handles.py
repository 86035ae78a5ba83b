"""The objects in Java behind those of PySpark, and the other way round.

PySpark has no public name for any of them. Iceberg's catalogs, transactions and files, our own classes in Java and
Spark's plans are reached through them alone: without them there is no commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def jvm_of(session: SparkSession | SparkContext) -> Any:
    return session._jvm


def java_session(session: SparkSession) -> Any:
    return session._jsparkSession


def java_context(session: SparkSession) -> Any:
    return session.sparkContext._jsc.sc()


def java_frame(frame: DataFrame) -> Any:
    return frame._jdf


def java_column(column: Column) -> Any:
    return column._jc


def java_query(query: StreamingQuery) -> Any:
    """The streaming query; PySpark decodes all its reports whenever it is asked for one."""
    return query._jsq


def gateway_of(session: SparkSession) -> Any:
    return session.sparkContext._gateway


def frame_of(session: SparkSession, rows: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(rows, session)


def column_of(column: Any) -> Column:
    from pyspark.sql.classic.column import Column

    return Column(column)


def each(collection: Any) -> Iterator[Any]:
    """The items of a collection in Java or Scala.

    Py4J's own iteration ends with an exception of Java's, which PySpark compares with a dozen classes before it is
    dropped: 60 calls each time.
    """
    items = collection.iterator()
    while items.hasNext():
        yield items.next()


def java_map(session: SparkSession, entries: Mapping[str, str]) -> Any:
    java_entries = jvm_of(session).java.util.HashMap()
    for key, text in entries.items():
        java_entries.put(key, text)
    return java_entries


def java_set(session: SparkSession, texts: Iterable[str]) -> Any:
    java_items = jvm_of(session).java.util.HashSet()
    for text in texts:
        java_items.add(text)
    return java_items


def java_list(session: SparkSession, items: Iterable[Any]) -> Any:
    java_items = jvm_of(session).java.util.ArrayList()
    for item in items:
        java_items.add(item)
    return java_items


def static_call(session: SparkSession, qualified_class: str, method: str) -> Any:
    """What a static method gives whose name an ordinary method of its class has too.

    Asked for a member by its name Py4J looks at the first that Java lists, in no order that can be relied on: at times
    it "does not exist in the JVM" (seen). A call finds its own.
    """
    from py4j.java_gateway import JavaMember
    from py4j.protocol import STATIC_PREFIX

    return JavaMember(method, None, f"{STATIC_PREFIX}{qualified_class}", jvm_of(session)._gateway_client)()


def activate(session: SparkSession) -> None:
    """Make a session that of the thread: Iceberg asks the thread's for its settings, whatever session it is given."""
    jvm_of(session).org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session(session))
