"""What one execution of a query saw, and its frames at the places where metrics were observed.

Spark reports the metrics of a micro-batch after the batch has been committed, which is too late to decide on them,
and a foreachBatch function gets the query's output only. Both are found in the batch's own execution: its plan holds
the node of each `observe()`, and what lies below it is this batch's input, whatever kind of source it comes from.
All of it was measured: file and V2 sources, stateful queries, joins of a source with itself, which
observe under one name twice and count alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.spark.internals.handles import column_of, each, frame_of, java_frame, java_query, java_session, jvm_of
from engine.spark.internals.plans import rows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_NODE = "CollectMetrics"
_STREAMING_CHECK = "spark.sql.streaming.unsupportedOperationCheck"


def of_batch(query: StreamingQuery) -> Any:
    return java_query(query).streamingQuery().lastExecution()


def of_frame(frame: DataFrame) -> Any:
    """The execution of a frame that is cached: other frames have one for each action."""
    return java_frame(frame).queryExecution()


def observed(execution: Any) -> dict[str, dict[str, Any]]:
    """The metrics of an execution by the name of the observation; what the optimiser took out is not among them."""
    return {pair._1(): _values(pair._2()) for pair in each(execution.observedMetrics())}


def _values(row: Any) -> dict[str, Any]:
    return {name: row.get(index) for index, name in enumerate(row.schema().fieldNames())}


def observed_frame(session: SparkSession, execution: Any, name: str) -> DataFrame | None:
    """Return the frame that was observed under a name, to be computed again; None: the query does not have it."""
    node = next((node for node in _nodes(execution.analyzed()) if _is(node, name)), None)
    if node is None:
        return None
    # The plan says that it is streaming, and would be rejected outside of a streaming query.
    session.conf.set(_STREAMING_CHECK, "false")
    streaming = rows_of(session, node)
    rdd, schema = streaming.queryExecution().toRdd(), streaming.schema()
    return frame_of(session, java_session(session).internalCreateDataFrame(rdd, schema, False))


def _is(node: Any, name: str) -> bool:
    return bool(node.nodeName() == _NODE and node.name() == name)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for part in (plan.children(), plan.subqueries()):
        for below in each(part):
            yield from _nodes(below)


def try_expression(session: SparkSession, expression: str) -> Column:
    """The value of an SQL expression, NULL where computing it is an error: a cast that fails, say."""
    jvm = jvm_of(session)
    parsed = java_session(session).sessionState().sqlParser().parseExpression(expression)
    wrapped = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parsed)
    return column_of(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(wrapped))
