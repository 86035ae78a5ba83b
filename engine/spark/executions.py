"""What one execution of a query saw, and its frames at the places where metrics were observed.

Spark reports the metrics of a micro-batch after the batch has been committed, which is too late to decide on them,
and a foreachBatch function gets the query's output only. Both are found in the batch's own execution: its plan holds
the node of each `observe()`, and what lies below it is this batch's input, whatever kind of source it comes from.
All of it was measured on Spark 4.1.4: file and V2 sources, stateful queries, joins of a source with itself, which
observe under one name twice and count alike.
"""

# Spark has no public way to the execution of a micro-batch.
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_NODE = "CollectMetrics"
_STREAMING_CHECK = "spark.sql.streaming.unsupportedOperationCheck"


def of_batch(query: StreamingQuery) -> Any:
    """The execution of the micro-batch that a query is at."""
    return query._jsq.streamingQuery().lastExecution()


def of_frame(frame: DataFrame) -> Any:
    """The execution of a frame that is cached: other frames have one for each action."""
    return frame._jdf.queryExecution()


def observed(execution: Any) -> dict[str, dict[str, Any]]:
    """The metrics of an execution by the name of the observation; what the optimiser took out is not among them."""
    return {pair._1(): _values(pair._2()) for pair in each(execution.observedMetrics())}


def _values(row: Any) -> dict[str, Any]:
    return {name: row.get(index) for index, name in enumerate(row.schema().fieldNames())}


def observed_frame(session: SparkSession, execution: Any, name: str) -> DataFrame | None:
    """The frame that was observed under a name, to be computed again; None if the query does not have it.

    Args:
        session: in which to compute: for a micro-batch the one of its frame.
        execution: of the query or micro-batch.
        name: of the observation.
    """
    from pyspark.sql import DataFrame

    node = next((node for node in _nodes(execution.analyzed()) if _is(node, name)), None)
    if node is None:
        return None
    inner: Any = session._jsparkSession
    # The plan says that it is streaming, and would be rejected outside of a streaming query.
    session.conf.set(_STREAMING_CHECK, "false")
    streaming = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(inner, node)  # type: ignore[union-attr]
    rows = inner.internalCreateDataFrame(streaming.queryExecution().toRdd(), streaming.schema(), False)
    return DataFrame(rows, session)


def _is(node: Any, name: str) -> bool:
    return bool(node.nodeName() == _NODE and node.name() == name)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for part in (plan.children(), plan.subqueries()):
        for below in each(part):
            yield from _nodes(below)


def each(collection: Any) -> Iterator[Any]:
    """The items of a collection in Java or Scala.

    Py4J's own iteration ends with an exception of Java's, which PySpark compares with a dozen classes before it is
    dropped: 60 calls each time.
    """
    items = collection.iterator()
    while items.hasNext():
        yield items.next()


def java_map(session: SparkSession, entries: Mapping[str, str]) -> Any:
    """A map in Java."""
    made: Any = session._jvm.java.util.HashMap()  # type: ignore[union-attr]
    for key, text in entries.items():
        made.put(key, text)
    return made


def java_set(session: SparkSession, texts: Iterable[str]) -> Any:
    """A set in Java."""
    made: Any = session._jvm.java.util.HashSet()  # type: ignore[union-attr]
    for text in texts:
        made.add(text)
    return made


def tried(session: SparkSession, expression: str) -> Column:
    """The value of an SQL expression, NULL where computing it is an error: a cast that fails, say."""
    from pyspark.sql import Column

    jvm: Any = session._jvm
    parsed = session._jsparkSession.sessionState().sqlParser().parseExpression(expression)
    wrapped = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parsed)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(wrapped))


def spark_exceptions() -> tuple[type[Exception], ...]:
    """The exceptions by which Spark fails a query; Py4J lets those of a connection to a Java that is gone through."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)


def error_text(error: BaseException) -> str:
    """What an exception says; one of Java's cannot be asked any more when Java has ended."""
    try:
        return str(error)
    except spark_exceptions():
        return "Java has ended"
