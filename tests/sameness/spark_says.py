"""What Spark says of a query: its plan, its columns and its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.sameness.tables import COLUMNS, rows, schema

_CONF = {
    "spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false", "spark.sql.leafNodeDefaultParallelism": "1", "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.crossJoin.enabled": "true",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What Spark makes of a query.

    Attributes:
        refused: the condition of the error with which its analyser rejects it; empty: it accepts it.
        columns: name and type of each.
        plan: the optimised plan, as Spark's own object.
        frame: to compute the rows.
    """

    refused: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    plan: Any = None
    frame: Any = None


@dataclass(slots=True)
class Spark:
    """A session with the tables; answers are kept by their text."""

    session: Any
    _answers: dict[str, Answer] = field(default_factory=dict)
    _rows: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, value in _CONF.items():
            self.session.conf.set(key, value)
        for name in COLUMNS:
            self._make(name)

    def _make(self, name: str) -> None:
        """The rows as a relation inside the plan: most queries over it are computed by the optimiser, without a job."""
        values = ", ".join("('{}')".format(row.replace("\\", "\\\\").replace("'", "\\'")) for row in rows(name))
        text = f"select r.* from (select from_json(v, '{schema(name)}') as r from values {values} as x(v))"
        plan = self.session.sql(text)._jdf.queryExecution().optimizedPlan()
        ofrows = self.session._jvm.org.apache.spark.sql.classic.Dataset.ofRows
        ofrows(self.session._jsparkSession, plan).createOrReplaceTempView(name)

    def forget(self) -> None:
        """Let the answers go, whose plans Java holds."""
        self._answers.clear()
        self._rows.clear()

    def answer(self, sql: str) -> Answer:
        """Its analyser's and optimiser's answer to a query."""
        if sql not in self._answers:
            if len(self._answers) > 2000:
                self.forget()
            self._answers[sql] = self._ask(sql)
        return self._answers[sql]

    def _ask(self, sql: str) -> Answer:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            frame = self.session.sql(sql)
            columns = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
            plan = None
        except PySparkException as error:
            return Answer(error.getCondition() or type(error).__name__)
        except Py4JJavaError as error:
            return Answer(str(error.java_exception)[:80])
        try:
            plan = frame._jdf.queryExecution().optimizedPlan().canonicalized()
        except Exception:  # noqa: BLE001 - what is constant is computed here, and may fail
            plan = None
        return Answer(columns=columns, plan=plan, frame=frame)

    def same_plan(self, one: str, other: str) -> bool:
        """Whether both are one to the optimiser, whatever their columns are called."""
        plans = [self.answer(sql).plan for sql in (one, other)]
        return None not in plans and bool(plans[0].equals(plans[1]))

    def rows(self, sql: str, *, ansi: bool) -> Any:
        """The rows of a query, or the error that computing them ends with."""
        key = (sql, ansi)
        if key not in self._rows:
            self._rows[key] = self._compute(sql, ansi=ansi)
        return self._rows[key]

    def _compute(self, sql: str, *, ansi: bool) -> Any:
        try:
            self.session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
            frame = self.session.sql(sql) if not ansi else self.answer(sql).frame
            return [tuple(map(repr, row)) for row in frame.collect()]
        except Exception as error:  # noqa: BLE001 - whatever it is, both must end with it
            condition = getattr(error, "getCondition", lambda: None)()
            return f"error {condition or type(error).__name__}"
        finally:
            self.session.conf.set("spark.sql.ansi.enabled", "true")
