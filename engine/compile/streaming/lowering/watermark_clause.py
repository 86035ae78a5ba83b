"""The WATERMARK clause."""

from __future__ import annotations

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.streaming.lowering.lower_expressions import PlanValue
from engine.compile.streaming.lowering.lowering_context import Env, Queries
from engine.compile.streaming.lowering.plan_scope import NamedRelation, PlanScope
from engine.compile.streaming.lowering.streaming_clauses import Clause
from engine.compile.streaming.query_plan.logical_plan import EventTime, LogicalPlan, PlanColumn, Projection
from engine.compile.streaming.query_plan.stream_facts import error


def event_time(queries: Queries, plan: LogicalPlan, clause: Clause, env: Env) -> LogicalPlan:
    """The relation with the clause behind it: this column carries the event time, and no other does."""
    scope = PlanScope([NamedRelation("", plan.columns, plan.open)], plan.columns, queries.number)
    values = queries.values(scope, env)
    exists = plan.open or any(column.name == clause.node.name.lower() for column in plan.columns)
    if isinstance(clause.node, exp.Column) and len(clause.node.parts) == 1 and not exists:
        message = f"column '{clause.node.name}' not found for the watermark"
        queries.report(error("watermark-missing-column", message, "Use a column of the relation.", clause.node))
        return plan
    value = values.of(clause.node)
    plan = queries.widened(plan, values)
    _check(queries, clause, value)
    if not clause.name and value.column is None:
        return plan
    if plan.streaming:
        plan = replace(plan, columns=tuple(replace(c, watermark=False) for c in plan.columns))
    number = value.column.id if value.column is not None else 0
    if clause.name:
        number = queries.number()
        plan = _named(plan, clause, value, number)
    columns = tuple(replace(c, watermark=plan.streaming) if c.id == number else c for c in plan.columns)
    before = value.column if plan.streaming and not clause.name else None
    uses = frozenset({number})
    return EventTime(node=clause.node, columns=columns, children=(plan,), uses=uses, open=plan.open, before=before)


def _named(plan: LogicalPlan, clause: Clause, value: PlanValue, number: int) -> LogicalPlan:
    """The column that `expression AS name` adds; Spark lists it first."""
    made = PlanColumn(number, clause.name, value.type)
    sources = ((number, value.refs), *((c.id, frozenset({c.id})) for c in plan.columns))
    columns = (made, *plan.columns)
    return Projection(node=clause.node, columns=columns, children=(plan,), sources=sources, open=plan.open)


def _check(queries: Queries, clause: Clause, value: PlanValue) -> None:
    if clause.delay is not None and clause.delay < 0:
        message = "the delay of a watermark is negative"
        queries.report(error("watermark-delay", message, "Write 0 seconds or more.", clause.node))
    if not clause.name and value.column is None:
        message = "the event time of a WATERMARK clause is an expression without a name"
        queries.report(error("watermark-needs-name", message, "Write WATERMARK <expression> AS <name>.", clause.node))
    elif value.type not in {"", "timestamp", "timestamp_ltz"}:
        message = f"the event time has the type {value.type}, not TIMESTAMP"
        queries.report(
            error("watermark-type", message, "Cast it: WATERMARK cast(.. AS timestamp) AS name.", clause.node)
        )
