"""What the parts of the lowering need of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.lowering.lower_expressions import ExpressionReader
from engine.compile.streaming.lowering.plan_scope import PlanScope
from engine.compile.streaming.query_plan.logical_plan import LogicalPlan, PlanColumn
from engine.compile.streaming.query_plan.stream_facts import StreamFacts

# The CTEs that can be read, by name.
Env = Mapping[str, LogicalPlan]


class Queries(Protocol):
    """What FROM needs of the lowering of queries."""

    bound: BoundQuery
    relations: Mapping[str, StreamFacts]

    def number(self) -> int:
        """A new id."""

    def report(self, finding: QueryFinding) -> None:
        """Note a fault of the SQL itself."""

    def query(self, node: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
        """Lower a query."""

    def scope(self, outer: PlanScope | None, *plans: LogicalPlan) -> PlanScope:
        """The columns of plans, for the names in expressions over them."""

    def numbered(self, columns: Sequence[PlanColumn], output: OutputColumns | None) -> tuple[PlanColumn, ...]:
        """The columns as new ones, with the ids that names refer to."""

    def stage(self, node: exp.Expr, number: int) -> OutputColumns | None:
        """The columns of an item of FROM as it is read (0), under an alias (1), behind its pivots."""

    def values(self, scope: PlanScope, env: Env) -> ExpressionReader:
        """A reader of expressions."""

    def domain(self, node: exp.Expr, plan: LogicalPlan, refs: frozenset[int]) -> None:
        """Note a subquery that Spark computes by grouping the rows of a plan."""

    def widened(self, plan: LogicalPlan, values: ExpressionReader) -> LogicalPlan:
        """A plan with the columns that expressions made."""
