"""The lengths of time windows: what Spark rejects, and windows that run and are seldom what was meant."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.columns.walk import Walk
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.intervals import has_months, is_no_interval, seconds
from engine.compile.streaming.query_plan.stream_facts import error, warning

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
    """Report a subquery that stands for one value and gives several columns."""
    if not output.open and len(output.columns) != 1:
        message = f"a scalar subquery returns {_columns(len(output.columns))}"
        walk.fault(CODE, message, "Select one column, or struct(..) of them.", node)


def _names(count: int) -> str:
    return f"{count} name{'s' * (count != 1)}"


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


# Windows that a row is in.
_MANY = 1000
_WEEK = 604800


def length_fault(node: exp.Anonymous, kind: str, lengths: Sequence[exp.Expr]) -> QueryFinding | None:
    """Return what is wrong with the lengths of a `window` or `session`: its arguments behind the time."""
    wrong = next((length for length in lengths if is_no_interval(length)), None)
    if wrong is not None:
        message = f"'{wrong.name}' is not a length of time"
        return error("window-length", message, "Write a number and a unit, such as '10 minutes'.", node)
    if kind != "window":
        if any(_gives_interval(length) for length in lengths):
            message = "session_window() needs its gap as a string"
            return error("window-length", message, "Write session_window(ts, '5 minutes').", node)
        return None
    if any(has_months(length) for length in lengths):
        message = "a window cannot be a number of months or years"
        return error("window-months", message, "Use days or smaller units.", node)
    if any(not isinstance(length, exp.Literal) for length in lengths):
        message = "window() needs its lengths as strings"
        return error("window-length", message, "Write window(ts, '5 minutes').", node)
    return _size_fault(node, [seconds(length) for length in lengths])


def _size_fault(node: exp.Anonymous, lengths: Sequence[float | None]) -> QueryFinding | None:
    """What is wrong with size, slide and start in seconds; None: not known."""
    size, slide, start = (*lengths, None, None, None)[:3]
    if size is None:
        return None
    if size <= 0:
        return error("window-slide", "window must be longer than zero", "Write at least 1 second.", node)
    if slide is not None and not 0 < slide <= size:
        message = "the slide must be greater than zero and at most as long as the window"
        hint = "window(ts, size, slide): make the slide at most as long as the size."
        return error("window-slide", message, hint, node)
    if start is not None and abs(start) >= (slide if slide is not None else size):
        message = "the start of a window must be shorter than its slide"
        return error("window-slide", message, "Use a shorter start.", node)
    return None


def length_advice(node: exp.Anonymous, form: str, sizes: Sequence[float]) -> QueryFinding | None:
    """Return a warning of a window that runs and is seldom what was meant; `sizes` (size, slide, start) in seconds."""
    if form == "sliding" and len(sizes) > 1 and sizes[1] > 0 and sizes[0] / sizes[1] >= _MANY:
        message = f"each row is in {sizes[0] / sizes[1]:,.0f} windows, and is counted in every one"
        hint = "Make the slide longer, or the window shorter; the order is window(ts, size, slide)."
        return warning("window-many", message, hint, node)
    if form == "tumbling" and len(sizes) <= len(("size", "slide")) and sizes and sizes[0] % _WEEK == 0:
        message = "windows of weeks begin on Thursday at 00:00 UTC, as 1970-01-01 was one"
        hint = "Set a start: tumbling(ts, 7 days, 4 days) begins on Monday; 0 days keeps Thursday."
        return warning("window-week", message, hint, node)
    return None


def _gives_interval(node: exp.Expr) -> bool:
    """Whether an expression is an interval as written, or one of its branches is."""
    node = node.unnest()
    if isinstance(node, exp.Case):
        results = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        results = [node.args.get("true"), node.args.get("false")]
    else:
        return isinstance(node, exp.Interval)
    return any(result is not None and _gives_interval(result) for result in results)
