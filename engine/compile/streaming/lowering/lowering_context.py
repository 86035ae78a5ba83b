"""What the parts of the lowering need of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.lowering.lower_expressions import ExpressionReader
from engine.compile.streaming.lowering.plan_scope import PlanScope
from engine.compile.streaming.query_plan.logical_plan import LogicalPlan
from engine.compile.streaming.query_plan.stream_facts import StreamFacts

# The CTEs that can be read, by name.
Env = Mapping[str, LogicalPlan]


class Queries(Protocol):
    """What FROM needs of the lowering of queries."""

    relations: Mapping[str, StreamFacts]

    def number(self) -> int:
        """A new id."""

    def report(self, finding: QueryFinding) -> None:
        """Note a fault of the SQL itself."""

    def query(self, node: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
        """Lower a query."""

    def values(self, scope: PlanScope, env: Env) -> ExpressionReader:
        """A reader of expressions."""

    def domain(self, node: exp.Expr, plan: LogicalPlan, refs: frozenset[int]) -> None:
        """Note a subquery that Spark computes by grouping the rows of a plan."""

    def widened(self, plan: LogicalPlan, values: ExpressionReader) -> LogicalPlan:
        """A plan with the columns that expressions made."""
