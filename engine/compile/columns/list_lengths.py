"""Lists that Spark wants to be as long as each other: names behind AS, and what a subquery gives."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.columns.walk import Walk

CODE = "column-count"


def check_names(walk: Walk, identifiers: list[exp.Identifier], output: OutputColumns) -> None:
    """Report names behind AS that are more or fewer than the columns they are for."""
    if output.open or len(identifiers) == len(output.columns):
        return
    message = f"{_names(len(identifiers))} for {_columns(len(output.columns))}"
    walk.fault(CODE, message, "Give every column a name, or none of them.", identifiers[0])


def check_in_subquery(walk: Walk, node: exp.Expr, subquery: exp.Expr, output: OutputColumns) -> None:
    """Report a subquery behind IN that gives more or fewer columns than are before it."""
    count = len(node.expressions) if isinstance(node, (exp.Tuple, exp.Struct)) else 1
    if not output.open and len(output.columns) != count:
        message = f"IN compares {_columns(count)} with {_columns(len(output.columns))} of the subquery"
        hint = "Select as many columns as there are values before IN."
        walk.fault(CODE, message, hint, subquery, node)


def check_scalar_subquery(walk: Walk, node: exp.Expr, output: OutputColumns) -> None:
    if not output.open and len(output.columns) != 1:
        message = f"a scalar subquery returns {_columns(len(output.columns))}"
        walk.fault(CODE, message, "Select one column, or struct(..) of them.", node)


def _names(count: int) -> str:
    return f"{count} name{'s' * (count != 1)}"


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"
