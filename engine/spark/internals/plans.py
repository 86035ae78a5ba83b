"""Spark's plans: what they are made of, and new parts.

Without them the groups that a query leaves out would stay in its table (`groups_left_out`), the order of stored
aggregates could not be compared, and the sources of a stream not be numbered as Spark does. PySpark has no way to a
rule of the optimiser: without `StreamJoins.java` joins of streams lose rows, or give rows that SQL does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.spark.internals.handles import each, gateway_of, java_frame, java_list, java_session, jvm_of
from engine.spark.local_files import JAR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def analysed(frame: DataFrame) -> Any:
    return java_frame(frame).queryExecution().analyzed()


def optimised(session: SparkSession, plan: Any) -> Any:
    return java_session(session).sessionState().optimizer().execute(plan)


def explained(frame: DataFrame) -> str:
    execution = java_frame(frame).queryExecution()
    return str(jvm_of(frame.sparkSession).PythonSQLUtils.explainString(execution, "simple"))


def without_ctes(session: SparkSession, plan: Any) -> Any:
    return jvm_of(session).org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False).apply(plan)


def rows_of(session: SparkSession, plan: Any) -> Any:
    return jvm_of(session).org.apache.spark.sql.classic.Dataset.ofRows(java_session(session), plan)


def nodes_of(plan: Any) -> Iterator[Any]:
    yield plan
    for child in each(plan.children()):
        yield from nodes_of(child)


def calls_of(expression: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield expression
        return
    for child in each(expression.children()):
        yield from calls_of(child)


def has_aggregate(expression: Any) -> bool:
    return next(calls_of(expression), None) is not None


def conjuncts(condition: Any) -> Iterator[Any]:
    if condition.getClass().getSimpleName() == "And":
        yield from conjuncts(condition.left())
        yield from conjuncts(condition.right())
    else:
        yield condition


def references(expression: Any, plan: Any = None) -> set[int]:
    ids = {column_id(column) for column in each(expression.references().toSeq())}
    return ids if plan is None else ids & {column_id(column) for column in each(plan.output())}


def column_id(column: Any) -> int:
    return int(column.exprId().id())


def is_alias(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "Alias")


def is_column(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "AttributeReference")


class PlanMaker:
    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm = jvm = jvm_of(session)
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._plans = jvm.org.apache.spark.sql.catalyst.plans
        self.false, self.true = (
            self._expressions.Literal.create(text, self._type("boolean")) for text in (False, True)
        )

    def _type(self, name: str) -> Any:
        return self._jvm.org.apache.spark.sql.types.DataType.fromDDL(name)

    def seq(self, items: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(java_list(self._session, items))

    def alias(self, expression: Any, name: str, like: Any = None) -> Any:
        if like is not None:
            return like.withNewChildren(self.seq([expression]))
        factory = getattr(getattr(self._expressions, "NamedExpression$"), "MODULE$")
        none, nothing = self._jvm.scala.Option.empty(), self.seq([])
        return self._expressions.Alias(expression, name, factory.newExprId(), nothing, none, nothing)

    def both_true(self, left: Any, right: Any) -> Any:
        """Both are true; the other is looked at only if the one is. None is true."""
        return right if left is None else left if right is None else self._expressions.And(left, right)

    def all(self, parts: Sequence[Any]) -> Any:
        conjunction = parts[0]
        for part in parts[1:]:
            conjunction = self._expressions.And(conjunction, part)
        return conjunction

    def certain(self, condition: Any) -> Any:
        return self._expressions.Coalesce(self.seq([condition, self.false]))

    def negate(self, condition: Any) -> Any:
        return self._expressions.Not(condition)

    def is_not_null(self, expression: Any) -> Any:
        return self._expressions.IsNotNull(expression)

    def only_where(self, condition: Any, expression: Any) -> Any:
        nothing = self._expressions.Literal.create(None, expression.dataType())
        return self._expressions.If(condition, expression, nothing)

    def project(self, items: Sequence[Any], child: Any) -> Any:
        return self._plans.logical.Project(self.seq(items), child)

    def filter(self, condition: Any, child: Any) -> Any:
        return self._plans.logical.Filter(condition, child)

    def some(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    def join(self, node: Any, left: Any, right: Any, kind: str, condition: Any) -> Any:
        join_type = self._plans.JoinType.apply(kind)
        return self._plans.logical.Join(left, right, join_type, self.some(condition), node.hint())

    def generate(self, node: Any, generator: Any, child: Any) -> Any:
        output = node.generatorOutput()
        return self._plans.logical.Generate(generator, self.seq([]), True, node.qualifier(), output, child)


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
    inner_session = java_session(session)
    parameters, values = gateway.new_array(jvm.java.lang.Class, 1), gateway.new_array(jvm.java.lang.Object, 1)
    parameters[0], values[0] = inner_session.getClass(), inner_session
    loader.loadClass(_CLASS).getMethod("install", parameters).invoke(None, values)
