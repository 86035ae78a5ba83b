"""What the parts of the lowering need of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from engine.compile.rules.model import RuleFinding, StreamFacts
from engine.compile.rules.native import Native
from engine.compile.rules.plan import Plan
from engine.compile.rules.scope import Scope
from engine.compile.rules.values import Values

# The CTEs that can be read, by name.
Env = Mapping[str, Plan]


class Queries(Protocol):
    """What FROM needs of the lowering of queries."""

    relations: Mapping[str, StreamFacts]
    native: Native

    def number(self) -> int:
        """A new id."""

    def report(self, finding: RuleFinding) -> None:
        """Note a fault of the SQL itself."""

    def query(self, node: exp.Expr, env: Env, outer: Scope | None) -> Plan:
        """Lower a query."""

    def values(self, scope: Scope, env: Env) -> Values:
        """A reader of expressions."""

    def domain(self, node: exp.Expr, plan: Plan, refs: frozenset[int]) -> None:
        """Note a subquery that Spark computes by grouping the rows of a plan."""

    def widened(self, plan: Plan, values: Values) -> Plan:
        """A plan with the columns that expressions made."""
