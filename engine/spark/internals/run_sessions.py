"""The sessions of one run in a JVM that lives longer, and what is left of them.

Views, functions, settings and catalogs belong to a session, of which each run has its own. The rest is Spark's
`SharedState` and `SparkContext`, which SQL of a hook can reach: CACHE TABLE, global views, functions and tables of the
catalog that Spark brings, ADD JAR.

A session that is over is kept from being collected (all of it measured): by the catalogs' connections, which nobody
closes; by Python functions that streams have called, which hold Java's objects that hold them; by a listener.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from engine.spark.internals.handles import each, gateway_of, java_context, java_session, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HAS_CATALOG: Final = "org.apache.iceberg.spark.source.HasIcebergCatalog"


def run_session(spark: SparkSession) -> tuple[SparkSession, list[SparkSession]]:
    """Return a new session, and the list of it and of all sessions that are made from it or noted."""
    from pyspark.sql import SparkSession

    class RunSession(SparkSession):
        family: ClassVar[list[SparkSession]] = []

        def newSession(self) -> SparkSession:  # noqa: N802 - PySpark's name
            session = RunSession(self.sparkContext, java_session(self).newSession())
            self.family.append(session)
            return session

    return RunSession(spark.sparkContext, java_session(spark)).newSession(), RunSession.family


def note_session(origin: SparkSession, new_session: SparkSession) -> None:
    family = getattr(origin, "family", None)
    if family is not None:
        family.append(new_session)


def list_callback_once(session: SparkSession) -> None:
    """Leave the connection of this thread, in which Java calls Python, once in Py4J's list, and not twice.

    A call to Java in which Java calls Python again puts it there a second time (`JavaClient._get_connection`); one
    entry is removed when the thread ends, the other kept it with its buffers, some 10 kB for each micro-batch.
    """
    gateway = gateway_of(session)
    if gateway is None:
        return
    client = gateway._gateway_client
    connection = client.get_thread_connection()
    while connection is not None and client.deque.count(connection) > 1:
        client.deque.remove(connection)


def release(sessions: Iterable[SparkSession], *, connections: bool = True) -> None:
    """Give back what sessions hold that are over; no stream and no job of theirs runs any more.

    Raises pyspark.errors.PySparkException, py4j.protocol.Py4JError: Java did not do it, or is gone.
    """
    ended_sessions = list(sessions)
    for session in ended_sessions:
        state = java_session(session).sessionState()
        catalogs = state.catalogManager()
        for name in each(catalogs.listCatalogs(jvm_of(session).scala.Option.empty())):
            catalog = catalogs.catalog(name)
            if _is_a(session, catalog, _HAS_CATALOG) and _is_a(session, catalog.icebergCatalog(), "java.io.Closeable"):
                catalog.icebergCatalog().close()
        java_session(session).sparkContext().listenerBus().removeListener(state.streamingQueryManager().listenerBus())
    if ended_sessions:
        _forget_functions(ended_sessions)
    if ended_sessions and connections:
        _close_connections(ended_sessions[0])


def _is_a(session: SparkSession, thing: Any, kind: str) -> bool:
    from py4j.java_gateway import is_instance_of

    return bool(is_instance_of(gateway_of(session), thing, kind))


def _forget_functions(sessions: Sequence[SparkSession]) -> None:
    from pyspark.sql.utils import ForeachBatchFunction

    gateway = gateway_of(sessions[0])
    pool = gateway.gateway_property.pool
    session_ids = {id(session) for session in sessions}
    with pool.lock:
        called = [(name, proxy) for name, proxy in pool.dict.items() if isinstance(proxy, ForeachBatchFunction)]
        for name, proxy in called:
            # Another run may be under way in the same JVM.
            if id(proxy.session) in session_ids:
                del pool.dict[name]


def _close_connections(session: SparkSession) -> None:
    """Close the connections of threads of Java that have called Python.

    Java does it: a thread that lives on would not notice that Python did, and its next call would fail.
    """
    from py4j.java_gateway import JavaObject

    gateway = gateway_of(session)
    client: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    client.periodicCleanup()


def remove_remains(spark: SparkSession) -> None:
    """Stop streams and jobs that still run, and drop cached tables and global views.

    Raises pyspark.errors.PySparkException, py4j.protocol.Py4JError: Java did not do it, or is gone.
    """
    shared = _shared(spark)
    for query in list(shared.activeStreamingQueries().values()):
        query.stop()
    if list(spark.sparkContext.statusTracker().getActiveJobsIds()):
        spark.sparkContext.cancelAllJobs()
    shared.cacheManager().clearCache()
    shared.globalTempViewManager().clear()


def remains(spark: SparkSession) -> frozenset[str]:
    return frozenset(_remains(spark))


def _remains(spark: SparkSession) -> Iterator[str]:
    shared, context = _shared(spark), java_context(spark)
    for query in shared.activeStreamingQueries().values():
        yield f"stream {query.id()}"
    yield from (f"job {job}" for job in spark.sparkContext.statusTracker().getActiveJobsIds())
    catalog = shared.externalCatalog()
    for database in each(catalog.listDatabases()):
        yield f"database {database}"
        yield from (f"table {database}.{name}" for name in each(catalog.listTables(database)))
        yield from (f"function {database}.{name}" for name in each(catalog.listFunctions(database, "*")))
    yield from (f"jar {name}" for name in _added(context.addedJars()))
    yield from (f"file {name}" for name in (*_added(context.addedFiles()), *_added(context.addedArchives())))


def _shared(spark: SparkSession) -> Any:
    return java_session(spark).sharedState()


def _added(by_session: Any) -> Iterator[str]:
    for pair in each(by_session):
        for inner in each(pair._2()):
            yield str(inner._1())
