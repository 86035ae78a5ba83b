"""What `engine.spark.internals` takes from Spark without its promise is there, and nobody else takes any.

Each contract has the name of what it is about: one that fails on another Spark says what has changed.
"""

from __future__ import annotations

import ast
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.spark import internals
from engine.spark.internals import connection, executions, handles, plans, queries, run_sessions
from engine.spark.internals.plans import join_as_sql
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from engine.spark.session import Session, SessionSettings, open_session
from tests.lab import LabSession, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# PySpark's collect() leaves a socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

ROOT = Path(internals.__file__).parents[2]
HOME = Path(internals.__file__).parent
# Names of PySpark and Py4J that begin with an underscore; other libraries have such names too.
PRIVATE = re.compile(
    r"_j[a-z]+|_jsparkSession|_sc|_jvm|_gateway\w*|_active_spark_context|_instantiatedSession|_activeSession"
    r"|_accumulatorServer|_callback_server\w*"
)
PRIVATE_MODULES = re.compile(
    r"pyspark\.(java_gateway|accumulators|core|testing|sql\.(utils|classic|connect))\b|py4j\.(java_gateway|clientserver)\b"
)
# Packages of Spark's that are no public interface: in Java's names and in chains of attributes.
PRIVATE_PACKAGES = re.compile(
    r"org\.apache\.spark\.(sql\.(catalyst|classic|execution|internal)|util|deploy|api\.python|internal|scheduler)\b"
)
# Values of settings that Spark's guides name, and the class that `spark-submit` starts.
PUBLIC_NAMES = {
    "org.apache.spark.deploy.SparkSubmit",
    "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
    "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol",
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
# `pyspark.testing.utils` is loaded while Java starts; `lit()` would load it later.
PUBLIC_IMPORTS = {("spark/session.py", "pyspark.testing.utils")}


def private_uses(path: str, text: str) -> list[str]:
    """What a module takes of Spark's internals, with the lines."""
    uses = []
    for node in ast.walk(ast.parse(text)):
        found = ""
        if isinstance(node, ast.Attribute):
            chain = ast.unparse(node)
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if (PRIVATE.fullmatch(node.attr) and not own) or PRIVATE_PACKAGES.search(chain):
                found = chain
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            if (PRIVATE_PACKAGES.match(node.value) and node.value not in PUBLIC_NAMES) or (
                PRIVATE.fullmatch(node.value) and node.value.startswith(("_j", "_sc", "_gateway"))
            ):
                found = node.value
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            names += [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            found = next((n for n in names if PRIVATE_MODULES.match(n) and (path, n) not in PUBLIC_IMPORTS), "")
        if found:
            uses.append(f"{path}:{node.lineno}: {found}")
    return uses


def test_private_access_to_spark_is_in_one_package() -> None:
    uses = []
    for path in sorted(ROOT.rglob("*.py")):
        if HOME not in path.parents:
            uses += private_uses(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    assert uses == []


@pytest.mark.parametrize(
    "text",
    [
        "frame._jdf.queryExecution()",
        "session.sparkContext._gateway",
        "getattr(session, '_jvm')",
        "jvm.org.apache.spark.sql.catalyst.plans",
        "x = 'org.apache.spark.sql.execution.streaming.state.StateStore$'",
        "from pyspark.sql.classic.column import Column",
        "from pyspark import java_gateway",
        "import py4j.java_gateway",
    ],
)
def test_the_search_finds_private_access(text: str) -> None:
    assert private_uses("a.py", text)


Contract = Callable[["SparkSession", Path], None]
CONTRACTS: dict[str, Contract] = {}


def contract(name: str) -> Callable[[Contract], Contract]:
    """The contract of a function of the package: `module.function`."""

    def noted(check: Contract) -> Contract:
        CONTRACTS[name] = check
        return check

    return noted


def test_each_function_has_a_contract() -> None:
    given = {
        f"{path.stem}.{node.name}"
        for path in HOME.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    assert {*CONTRACTS, "connection.forget"} == given


@pytest.fixture(scope="module")
def opened(lab_session: LabSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    lab_session.close()
    folder = tmp_path_factory.mktemp("internals")
    with open_session(
        SessionSettings(find_java(), folder / "logs", jar_paths(("core",), fetch=True, java=None), "local[2]")
    ) as session:
        yield session


@pytest.fixture(autouse=True)
def _no_shared_session() -> None:
    """The session of this module stays open."""


@pytest.mark.spark
def test_these_versions_were_checked() -> None:
    import pyspark

    assert pyspark.__version__ in internals.CHECKED, "run this module, and then add the version to CHECKED"


@contract("handles.jvm_of")
def _(spark: SparkSession, _: Path) -> None:
    assert handles.jvm_of(spark).java.lang.Math.max(1, 2) == handles.jvm_of(spark.sparkContext).java.lang.Math.max(2, 1)


@contract("handles.java_session")
def _(spark: SparkSession, _: Path) -> None:
    state = handles.java_session(spark).sessionState()
    assert state.catalogManager().currentCatalog().name() == "spark_catalog"


@contract("handles.java_context")
def _(spark: SparkSession, _: Path) -> None:
    assert handles.java_context(spark).applicationId() == spark.sparkContext.applicationId


@contract("handles.java_frame")
def _(spark: SparkSession, _: Path) -> None:
    schema = json.loads(handles.java_frame(spark.range(2)).schema().asNullable().json())
    assert [(column["name"], column["type"], column["nullable"]) for column in schema["fields"]] == [
        ("id", "long", True)
    ]


@contract("handles.java_column")
@contract("handles.column_of")
def _(spark: SparkSession, _: Path) -> None:
    from pyspark.sql import functions as f

    assert str(handles.column_of(handles.java_column(f.col("id") + 1))) == str(f.col("id") + 1)


@contract("handles.gateway_of")
def _(spark: SparkSession, _: Path) -> None:
    assert len(handles.gateway_of(spark).new_array(handles.jvm_of(spark).java.lang.String, 3)) == 3


@contract("handles.frame_of")
def _(spark: SparkSession, _: Path) -> None:
    assert [row.id for row in handles.frame_of(spark, handles.java_frame(spark.range(3))).collect()] == [0, 1, 2]


@contract("handles.each")
@contract("handles.java_list")
@contract("handles.java_map")
@contract("handles.java_set")
def _(spark: SparkSession, _: Path) -> None:
    assert list(handles.each(handles.java_list(spark, ["b", "a"]))) == ["b", "a"]
    assert sorted(handles.each(handles.java_set(spark, ["b", "a", "a"]))) == ["a", "b"]
    assert dict(handles.java_map(spark, {"a": "1"})) == {"a": "1"}


@contract("handles.static_call")
def _(spark: SparkSession, _: Path) -> None:
    tables = handles.static_call(spark, "org.apache.iceberg.spark.SparkTableCache", "get")
    assert tables.getClass().getName() == "org.apache.iceberg.spark.SparkTableCache"


@contract("handles.activate")
def _(spark: SparkSession, _: Path) -> None:
    other = spark.newSession()
    handles.activate(other)
    active = handles.jvm_of(spark).org.apache.spark.sql.classic.SparkSession.getActiveSession().get()
    assert active.equals(handles.java_session(other))
    handles.activate(spark)


@contract("executions.of_frame")
@contract("executions.observed")
@contract("executions.observed_frame")
def _(spark: SparkSession, _: Path) -> None:
    from pyspark.sql import functions as f

    frame = spark.range(4).observe("all", f.count("*").alias("rows")).where("id > 1").cache()
    assert frame.count() == 2
    execution = executions.of_frame(frame)
    assert executions.observed(execution) == {"all": {"rows": 4}}
    below = executions.observed_frame(spark.newSession(), execution, "all")
    assert below is not None
    assert below.count() == 4
    assert executions.observed_frame(spark.newSession(), execution, "other") is None
    frame.unpersist()


@contract("executions.try_expression")
def _(spark: SparkSession, _: Path) -> None:
    rows = spark.sql("select 'a' as t union all select '1'").select(
        executions.try_expression(spark, "cast(t as int)").alias("n")
    )
    assert sorted((row.n for row in rows.collect()), key=str) == [1, None]


@contract("plans.analysed")
@contract("plans.optimised")
@contract("plans.nodes_of")
@contract("plans.calls_of")
@contract("plans.has_aggregate")
@contract("plans.references")
@contract("plans.column_id")
@contract("plans.is_alias")
@contract("plans.is_column")
def _(spark: SparkSession, _: Path) -> None:
    plan = plans.analysed(spark.sql("select k, sum(v) + count(*) as n from values (1, 2) as t(k, v) group by k"))
    group = next(node for node in plans.nodes_of(plan) if node.nodeName() == "Aggregate")
    key, total = handles.each(group.aggregateExpressions())
    assert (plans.is_column(key), plans.is_alias(key), plans.has_aggregate(key)) == (True, False, False)
    assert (plans.is_column(total), plans.is_alias(total), plans.has_aggregate(total)) == (False, True, True)
    assert [call.toString().partition("(")[0] for call in plans.calls_of(total)] == ["sum", "count"]
    assert plans.references(key) == {plans.column_id(key)} == plans.references(key, group)
    assert any(node.nodeName() == "Aggregate" for node in plans.nodes_of(plans.optimised(spark, plan)))


@contract("plans.conjuncts")
@contract("plans.rows_of")
def _(spark: SparkSession, _: Path) -> None:
    frame = spark.range(9).where("id > 1 and id < 7 and id != 4")
    step = next(node for node in plans.nodes_of(plans.analysed(frame)) if node.nodeName() == "Filter")
    assert len(list(plans.conjuncts(step.condition()))) == 3
    assert handles.frame_of(spark, plans.rows_of(spark, step)).count() == 4


@contract("plans.explained")
def _(spark: SparkSession, _: Path) -> None:
    assert "Physical Plan" in plans.explained(spark.range(2))


@contract("plans.without_ctes")
def _(spark: SparkSession, _: Path) -> None:
    plan = plans.analysed(spark.sql("with a as (select rand() as r) select * from a x join a y on x.r = y.r"))
    assert any(node.nodeName() == "WithCTE" for node in plans.nodes_of(plan))
    assert not any("CTE" in node.nodeName() for node in plans.nodes_of(plans.without_ctes(spark, plan)))


@contract("plans.PlanMaker")
def _(spark: SparkSession, _: Path) -> None:
    make = plans.PlanMaker(spark)
    plan = plans.analysed(spark.sql("select id, if(id > 1, id, null) as n, array(id) as l from range(4)"))
    number, some, _listed = handles.each(plan.output())
    there = make.both_true(None, make.is_not_null(some))
    marked = make.alias(make.certain(make.all([there, make.negate(make.false)])), "there")
    rows = make.filter(
        make.true, make.project([number, make.alias(make.only_where(there, number), "kept"), marked], plan)
    )
    frame = handles.frame_of(spark, plans.rows_of(spark, rows))
    assert [(r.id, r.kept, r.there) for r in frame.collect()] == [
        (0, None, False), (1, None, False), (2, 2, True), (3, 3, True)]  # fmt: skip
    joined = plans.analysed(spark.sql("select * from range(3) a join range(2) b on a.id = b.id"))
    join = next(node for node in plans.nodes_of(joined) if node.nodeName() == "Join")
    outer = make.join(join, join.left(), join.right(), "leftouter", join.condition().get())
    assert handles.frame_of(spark, plans.rows_of(spark, outer)).count() == 3
    exploded = plans.analysed(
        spark.sql("select explode(l) from (select if(id > 0, array(id), null) as l from range(2))")
    )
    step = next(node for node in plans.nodes_of(exploded) if node.nodeName() == "Generate")
    assert (
        handles.frame_of(spark, plans.rows_of(spark, make.generate(step, step.generator(), step.child()))).count() == 2
    )


def stream_of(spark: SparkSession, folder: Path, write: Callable[[DataFrame, int], None]) -> Any:
    """A stream over files that has state, started."""
    (folder / "landing").mkdir()
    (folder / "landing/a.json").write_text('{"id": 1}\n{"id": 1}\n')
    frame = spark.readStream.schema("id int").json(str(folder / "landing")).dropDuplicates(["id"])
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(processingTime="100 milliseconds").start()


@contract("handles.java_query")
@contract("executions.of_batch")
@contract("queries.recent_reports")
@contract("queries.last_report")
@contract("queries.explained")
@contract("queries.end_offsets")
@contract("queries.fix_ends")
@contract("queries.compact_stores")
@contract("run_sessions.list_callback_once")
@contract("run_sessions.note_session")
def _(spark: SparkSession, folder: Path) -> None:
    begun, seen = threading.Event(), {}
    family = run_sessions.run_session(spark)[1]

    def write(frame: DataFrame, batch: int) -> None:
        begun.wait(60)
        if batch:
            return
        seen["analysed"] = executions.of_batch(query).analyzed().nodeName()
        seen["offsets"] = queries.end_offsets(query)
        seen["ends"] = queries.fix_ends(query)
        client = handles.gateway_of(spark)._gateway_client
        frame.count()
        run_sessions.list_callback_once(spark)
        seen["connections"] = client.deque.count(client.get_thread_connection())
        run_sessions.note_session(family[0], frame.sparkSession)

    query = stream_of(spark, folder, write)
    begun.set()
    query.processAllAvailable()
    assert seen["ends"] == [True]
    assert [json.loads(text or "") for text in seen["offsets"]] == [{"logOffset": 0}]
    assert seen["offsets"][0] in (folder / "checkpoint/offsets/0").read_text()
    assert seen["connections"] <= 1
    assert family[-1] is not family[0]
    assert handles.java_query(query).id().toString() == query.id
    assert int(queries.recent_reports(query)[0].batchId()) == 0
    assert [source["numInputRows"] for source in json.loads(queries.last_report(query))["sources"]] == [2]
    assert "Physical Plan" in queries.explained(query)
    query.stop()
    partitions = sorted(int(path.name) for path in (folder / "checkpoint/state/0").glob("[0-9]*"))
    stores = handles.jvm_of(spark).org.apache.spark.sql.execution.streaming.state
    loaded = getattr(getattr(handles.jvm_of(spark), f"{queries._STORES}"), "MODULE$")
    state = f"file:{folder}/checkpoint/state"
    ids = [
        stores.StateStoreProviderId(stores.StateStoreId(state, 0, number, "default"), handles.java_query(query).runId())
        for number in partitions
    ]
    assert partitions
    assert any(loaded.isLoaded(one) for one in ids)
    queries.compact_stores(spark, query, state, [(0, number, "default") for number in partitions])
    assert not any(loaded.isLoaded(one) for one in ids)


@contract("queries.set_clock")
@contract("queries.memory_stream")
@contract("queries.feed_at_once")
def _(spark: SparkSession, folder: Path) -> None:
    from pyspark.sql import functions as f

    one, two = (queries.memory_stream(spark, 900_000 + number, "id int") for number in range(2))
    frame = handles.frame_of(spark, one.toDF()).union(handles.frame_of(spark, two.toDF()))
    batches: list[list[tuple[int, str]]] = []

    def write(rows: DataFrame, _: int) -> None:
        batches.append([(row.id, str(row.at)) for row in rows.collect()])

    writer = frame.withColumn("at", f.current_timestamp().cast("string")).writeStream.foreachBatch(write)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    queries.set_clock(spark, query, 86_400_000)
    queries.feed_at_once(spark, query, [(one, spark.sql("select 1 as id")), (two, spark.sql("select 2 as id"))])
    query.processAllAvailable()
    query.stop()
    assert [sorted(batch) for batch in batches] == [[(1, "1970-01-02 00:00:00"), (2, "1970-01-02 00:00:00")]]


@contract("run_sessions.run_session")
@contract("run_sessions.release")
def _(spark: SparkSession, _: Path) -> None:
    session, family = run_sessions.run_session(spark)
    assert [*family, session.newSession()] == family
    bus = handles.java_context(spark).listenerBus()
    before = bus.listeners().size()
    for one in family:
        one.sql("select 1").collect()
        one.streams.active  # noqa: B018 - makes its listener
    run_sessions.release(family)
    assert bus.listeners().size() <= before


@contract("run_sessions.remains")
@contract("run_sessions.remove_remains")
def _(spark: SparkSession, _: Path) -> None:
    before = run_sessions.remains(spark)
    spark.range(1).createGlobalTempView("left_behind")
    spark.sql("create database left_behind")
    assert run_sessions.remains(spark) - before == {"database left_behind"}
    run_sessions.remove_remains(spark)
    assert not spark.catalog.tableExists("global_temp.left_behind")
    spark.sql("drop database left_behind")
    assert run_sessions.remains(spark) == before


@contract("connection.know_packages")
def _(spark: SparkSession, _: Path) -> None:
    from py4j.java_gateway import JavaPackage

    jvm = handles.jvm_of(spark)
    connection.know_packages(jvm)
    for name in connection._PACKAGES:
        package = jvm
        for part in name.split("."):
            package = vars(package)[part]
        assert isinstance(package, JavaPackage), name
    assert spark.range(1).selectExpr("id").collect()[0].id == 0


@contract("plans.join_as_sql")
def _(spark: SparkSession, _: Path) -> None:
    session = spark.newSession()
    for _again in range(2):
        join_as_sql(session)
    rules = handles.java_session(session).experimental().extraOptimizations()
    assert [rule.getClass().getName() for rule in handles.each(rules)] == ["headrace.StreamJoins"]


@contract("connection.is_active")
@contract("connection.is_stopped")
@contract("connection.executor_count")
def _(spark: SparkSession, _: Path) -> None:
    assert connection.is_active()
    assert not connection.is_stopped(spark)
    assert connection.executor_count(spark) == 0


@contract("connection.guard_callbacks")
@contract("connection.await_callbacks")
def _(spark: SparkSession, _: Path) -> None:
    connection.await_callbacks(spark)
    gateway = handles.gateway_of(spark)
    assert gateway.callback_server_parameters.auth_token
    server = handles.jvm_of(spark).java.lang.Object
    assert server is not None
    assert gateway._callback_server is not None


@contract("connection.set_for_all_sessions")
def _(spark: SparkSession, _: Path) -> None:
    connection.set_for_all_sessions(spark, "spark.sql.files.maxRecordsPerFile", "7")
    assert spark.newSession().conf.get("spark.sql.files.maxRecordsPerFile") == "7"
    connection.set_for_all_sessions(spark, "spark.sql.files.maxRecordsPerFile", "0")


@pytest.mark.spark
@pytest.mark.parametrize("name", CONTRACTS)
def test_contract(opened: Session, tmp_path: Path, name: str) -> None:
    if OUTCOMES.get(CONTRACTS[name]) is None:
        OUTCOMES[CONTRACTS[name]] = _failure(CONTRACTS[name], opened.spark, tmp_path)
    if (error := OUTCOMES[CONTRACTS[name]]) != "":
        raise AssertionError(f"engine.spark.internals.{name}") from error  # type: ignore[misc]


# A contract that is of several functions is looked at once.
OUTCOMES: dict[Contract, Exception | str | None] = {}


def _failure(check: Contract, spark: SparkSession, folder: Path) -> Exception | str:
    try:
        check(spark, folder)
    except Exception as error:  # noqa: BLE001 - raised again for each function
        return error
    return ""


@pytest.mark.spark
def test_forget_lets_the_next_session_begin(opened: Session) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Class

    opened.close()
    assert not connection.is_active()
    kept = (SparkContext._gateway, SparkContext._jvm, Class._instantiatedSession, Class._activeSession)
    assert kept == (None, None, None, None)
    assert wait_until(lambda: not opened.jvm.alive)
