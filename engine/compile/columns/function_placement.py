"""Where a function is and what is written behind it: OVER, FILTER, DISTINCT, frames, grouping sets."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope, ColumnValue
from engine.compile.columns.walk import Walk
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.types.builtin_functions import AGGREGATES, BUILTIN, RANKING
from engine.compile.types.comparable_types import NUMBERS, TIMES, family

CODE = "misplaced-expression"
_WRAPPING = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)
_GROUPING = {"grouping", "grouping_id", "grouping__id"}
# Functions that are not allowed everywhere.
PLACED = RANKING | _GROUPING
_SETS = ("rollup", "cube", "grouping_sets")
# Functions of which Spark fixes the frame.
_FRAMED = {"cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank", "row_number"}
# Aggregates that sort by themselves (WindowResolution.validateResolvedWindowExpression).
_WHOLE_WINDOWS = {"listagg", "median", "percentile_cont", "percentile_disc", "string_agg"}
# A frame does not begin with the last row, nor end with the first.
_NEVER = ("UNBOUNDED", "FOLLOWING"), ("UNBOUNDED", "PRECEDING")
_WHOLE_FRAME = ("UNBOUNDED", "PRECEDING", "CURRENT ROW")


def check_placement(walk: Walk, name: str, node: exp.Expr, arguments: Sequence[exp.Expr]) -> None:
    """Report a call that is not where Spark computes such a function."""
    if name in RANKING:
        around = node.parent
        while isinstance(around, _WRAPPING):
            around = around.parent
        if not isinstance(around, exp.Window):
            walk.fault(CODE, f"{name}() needs OVER", "Add OVER (PARTITION BY .. ORDER BY ..) after it.", node)
    elif name in _GROUPING:
        check_grouping(walk, name, node, arguments)
    if name in BUILTIN and name not in AGGREGATES and any(isinstance(a, exp.Distinct) for a in arguments):
        walk.fault(CODE, f"{name}() is not an aggregate function and takes no DISTINCT", "Remove DISTINCT.", node)


def check_grouping(walk: Walk, name: str, node: exp.Expr, arguments: Sequence[exp.Expr]) -> None:
    """Report GROUPING() and its like without grouping sets, or of a column that is not a key."""
    select = node.find_ancestor(exp.Select)
    group = select.args.get("group") if select is not None else None
    if group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None:
        hint = "Group by rollup(..), cube(..) or grouping sets (..)."
        walk.fault(CODE, f"{name}() needs grouping sets, and the query has none", hint, node)
        return
    keys = _plain_keys(group)
    if keys is None:
        return
    names = [argument.name.lower() if isinstance(argument, exp.Column) else "" for argument in arguments]
    wrong = [n for n in names if n not in keys] if name == "grouping" else names if names and names != keys else []
    if wrong:
        message = (
            f"{name}() takes grouping columns{'' if name == 'grouping' else ', all of them, in the order of GROUP BY'}"
        )
        walk.fault(CODE, message, f"The grouping columns are: {', '.join(keys)}.", node)


def _plain_keys(group: exp.Expr) -> list[str] | None:
    """The names of the keys, if all of them are columns."""
    keys: dict[str, None] = {}
    for key in ("expressions", *_SETS):
        for item in group.args.get(key) or ():
            for part in item.walk():
                if isinstance(part, exp.Column):
                    keys[part.name.lower()] = None
                elif not isinstance(
                    part, (exp.Identifier, exp.Tuple, exp.Paren, exp.Rollup, exp.Cube, exp.GroupingSets)
                ):
                    return None
    return list(keys)


def check_filter(walk: Walk, function: exp.Expr, where: exp.Expr) -> None:
    """Report FILTER after a function that is not an aggregate, and what Spark does not compute inside it."""
    name = walk.name_of(function)
    if name in BUILTIN and name not in AGGREGATES:
        walk.fault(
            CODE,
            f"{name}() is not an aggregate function and takes no FILTER",
            "Write case when .. then .. end.",
            function,
        )
    for part in where.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(part, exp.Window) or is_aggregate(part):
            description = "a function with OVER" if isinstance(part, exp.Window) else "an aggregate"
            walk.fault(CODE, f"{description} is used in FILTER", "Compute it in a subquery.", part, where)
            return


def inner_function(function: exp.Expr) -> exp.Expr:
    """The function itself, without FILTER, IGNORE NULLS and the like."""
    while isinstance(function, _WRAPPING):
        function = function.this
    return function


def check_over(walk: Walk, node: exp.Expr, function: exp.Expr) -> None:
    """Report OVER behind what Spark does not compute over a window of rows."""
    within = isinstance(function, exp.WithinGroup) or function.find(exp.WithinGroup) is not None
    function = inner_function(function)
    name = walk.name_of(function)
    if name in BUILTIN and name not in AGGREGATES | RANKING:
        message = f"{name}() is not an aggregate or window function and takes no OVER"
        walk.fault(CODE, message, "Remove OVER, or aggregate: max(..) over (..).", function, node)
    if (
        (within or name == "median")
        and name in _WHOLE_WINDOWS
        and any(_has_order(part) for part in (node, named_window(node)))
    ):
        message = f"{name}() over a window takes all its rows: no ORDER BY and no frame"
        walk.fault(CODE, message, "Write OVER (PARTITION BY ..).", function, node)
    if isinstance(function.args.get("this"), exp.Distinct):
        message = "a function with OVER takes no DISTINCT"
        walk.fault(CODE, message, "Write size(collect_set(x) over (..)), or group in a subquery.", function, node)


def _has_order(window: exp.Expr | None) -> bool:
    return window is not None and (window.args.get("order") is not None or window.args.get("spec") is not None)


def named_window(window: exp.Expr) -> exp.Expr | None:
    select = window.find_ancestor(exp.Select)
    windows = (select.args.get("windows") or ()) if select is not None else ()
    name = window.alias.lower()
    return next((one for one in windows if name and one.name.lower() == name), None)


def check_over_alias(walk: Walk, window: exp.Expr, scope: ColumnScope) -> None:
    """Report OVER that names an alias of the SELECT list that it is in.

    Spark: UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW.
    """
    if not scope.aliases or scope.open:
        return
    select = window.find_ancestor(exp.Select)
    windows = (select.args.get("windows") or ()) if select is not None else ()
    named_windows = (one for one in windows if one.name.lower() == window.alias.lower())
    for part in (window, *named_windows):
        for column in part.find_all(exp.Column):
            name = column.parts[0].name.lower()
            inside = column.find_ancestor(exp.Select, exp.Lambda) is select
            if name in scope.aliases and inside and not scope.reads(name):
                message = f"'{column.parts[0].name}' is an alias of the same SELECT, and is used in OVER"
                hint = "Write its expression again, or compute it in a subquery or CTE."
                walk.fault(CODE, message, hint, column, window)
                return


def check_frame(
    walk: Walk, node: exp.Expr, spec: exp.Expr | None, function: str, order: Sequence[tuple[exp.Expr, ColumnValue]]
) -> None:
    """Report a frame (ROWS or RANGE BETWEEN ..) that the function or the order does not allow.

    `spec` is the frame of the OVER or of the window that it names.
    """
    if spec is None:
        return
    kind = str(spec.args.get("kind") or "").upper()
    start, end = spec.args.get("start"), spec.args.get("end")
    if function in _FRAMED and (function in {"lag", "lead"} or not _is_whole(spec, kind, function)):
        walk.fault(CODE, f"{function}() takes no frame", "Remove ROWS or RANGE BETWEEN ...", node)
        return
    sides = [str(spec.args.get(key) or "").upper() for key in ("start_side", "end_side")]
    backwards = (str(start).upper(), sides[0]) == _NEVER[0] or (str(end).upper(), sides[1]) == _NEVER[1]
    if sides == ["FOLLOWING", "PRECEDING"] or backwards:
        walk.fault(CODE, "the frame starts after its end", "Write BETWEEN .. PRECEDING AND .. FOLLOWING.", node)
        return
    for bound in (start, end):
        if isinstance(bound, exp.Expr):
            _check_bounds(walk, node, kind, bound, order)


def _is_whole(spec: exp.Expr, kind: str, function: str) -> bool:
    start, side, end = (spec.args.get(key) for key in ("start", "start_side", "end"))
    expected_kind = "RANGE" if function == "cume_dist" else "ROWS"
    return kind == expected_kind and (start, str(side).upper(), end or "CURRENT ROW") == _WHOLE_FRAME


def _check_bounds(
    walk: Walk, node: exp.Expr, kind: str, bound: exp.Expr, order: Sequence[tuple[exp.Expr, ColumnValue]]
) -> None:
    interval = isinstance(bound, exp.Interval)
    if bound.find(exp.Column) is not None:
        walk.fault(CODE, "a frame has constant bounds", "Write a number, or an interval.", bound, node)
        return
    if kind == "ROWS" and isinstance(bound, exp.Literal) and not bound.is_int:
        walk.fault(CODE, "ROWS counts whole rows", "Write ROWS 1 PRECEDING.", bound, node)
        return
    if kind == "ROWS":
        if interval:
            walk.fault(CODE, "ROWS counts rows, not time", "Write RANGE BETWEEN INTERVAL ..", bound, node)
        return
    if len(order) != 1:
        message = f"RANGE with a distance needs one column in ORDER BY, not {len(order)}"
        walk.fault(CODE, message, "Sort by one number or timestamp, or use ROWS.", bound, node)
        return
    by = family(order[0][1].type)
    # Spark casts the distance to the type that it sorts by: an interval to a whole number, too.
    fits = by in {"small", "bigint", "decimal", *TIMES} if interval else by in {*NUMBERS, "date"}
    if by and not fits and isinstance(bound, (exp.Interval, exp.Literal)):
        message = f"RANGE cannot be computed from {order[0][1].type} in {'intervals' if interval else 'numbers'}"
        walk.fault(
            CODE, message, "Sort by a number with a numeric bound, or by a timestamp with an interval.", bound, node
        )
