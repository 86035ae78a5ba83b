"""The columns of a query, and the names in it that no input has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.columns.column_scope import (
    NO_PLAN,
    OutputColumns,
    ScopeColumn,
)
from engine.compile.columns.column_texts import first_select, projections
from engine.compile.columns.expressions import value
from engine.compile.columns.queries import query
from engine.compile.columns.walk import Walk
from engine.compile.nodes.column_facts import (
    ColumnFacts,
    Derivation,
    InputColumns,
    Origin,
    QueryColumns,
)
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import has_aggregate
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.select_items import ItemPlace
from engine.compile.streaming.query_plan.logical_plan import LogicalPlan, PlanTooLargeError


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose names and types have been found, once; what else is asked of it starts from here.

    `noted` is what was found at each node; `named_at` what gives each column its name. `plan` None: too large, or
    nested too deeply.
    """

    tree: exp.Expr
    columns: QueryColumns
    noted: Walk
    named_at: tuple[int | str, ...] = ()
    plan: LogicalPlan | None = None


def bind(
    tree: exp.Expr,
    inputs: Mapping[str, InputColumns],
    windows: Mapping[str, TimeWindow],
    text: str,
    items: Sequence[ItemPlace] = (),
    *,
    with_uses: bool = False,
) -> BoundQuery:
    """Find what the names of a query mean, and the types of its expressions; the tree is only looked at.

    Inputs are keyed by the name in the tree (`@ref flights`, `@source ops.departures`), several parts joined by dots.
    `items` are those of the SELECT on the outside: left out, no column has a text. `with_uses`: also note what each
    name refers to.
    """
    walk = Walk(text, query, value, inputs, windows, uses={} if with_uses else None)
    output, columns = _columns(walk, tree, items)
    named_at = tuple(column.value.named_at for column in output.columns)
    return BoundQuery(tree, columns, walk, named_at, None if output.plan is NO_PLAN else output.plan)


def columns_of_value(sql: str, input_columns: InputColumns) -> QueryColumns:
    """What is known of an expression over the columns of one input: that of the only item of a SELECT."""
    text = f"select {sql} as value from `@input`"  # noqa: S608 - nothing runs it
    return columns_of(parse_text(text), {"@input": input_columns}, {}, text)


def columns_of(
    tree: exp.Expr,
    inputs: Mapping[str, InputColumns],
    windows: Mapping[str, TimeWindow],
    text: str,
) -> QueryColumns:
    return bind(tree, inputs, windows, text).columns


def _columns(walk: Walk, tree: exp.Expr, places: Sequence[ItemPlace]) -> tuple[OutputColumns, QueryColumns]:
    try:
        output = query(walk, tree, {}, None)
    except RecursionError:
        return OutputColumns([]), QueryColumns(None, unknown=("the query is nested too deeply",))
    except PlanTooLargeError as large:
        fault = QueryFinding("sql-too-large", str(large), "Name the columns that are needed instead of '*'.", 0)
        return OutputColumns([]), QueryColumns(None, unknown=("the query has too many columns",), faults=(fault,))
    texts, select = projections(walk.text, places, tree), first_select(tree)
    items = select.expressions if select is not None else ()
    columns = None if output.open else tuple(_facts(column, texts, items) for column in output.columns)
    return output, QueryColumns(
        columns,
        tuple(Origin(node, name, how) for (node, name), how in walk.influences),
        tuple(_reasons(walk, output)),
        tuple(sorted(walk.unresolved.values(), key=lambda missing: missing.offset)),
        tuple(walk.faults.values()),
    )


def _facts(column: ScopeColumn, texts: list[str], items: Sequence[exp.Expr]) -> ColumnFacts:
    value = column.value
    sql = texts[column.item] if 0 <= column.item < len(texts) else ""
    origins = tuple(Origin(node, name) for node, name in value.origins)
    derivation = Derivation.COPY if value.exact else Derivation.EXPRESSION
    if not value.exact and 0 <= column.item < len(items) and has_aggregate(items[column.item]):
        derivation = Derivation.AGGREGATE
    return ColumnFacts(column.name, value.type, origins, sql, column.named, derivation, value.window, value.certain)


def _reasons(walk: Walk, output: OutputColumns) -> list[str]:
    reasons = list(walk.reasons)
    if output.open:
        reasons.append(f"the columns of {output.rest or 'an input'} are unknown")
    reasons += [f"the type of {column.name} is not known" for column in output.columns if not column.value.type]
    return reasons
