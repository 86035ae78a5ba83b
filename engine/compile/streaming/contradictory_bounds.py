"""Bounds of a join that no pair of rows can meet: `b.ts between a.ts and a.ts - interval 1 hour`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.streaming.query_plan.logical_plan import Join

_SECONDS = {"WEEK": 604800.0, "DAY": 86400.0, "HOUR": 3600.0, "MINUTE": 60.0, "SECOND": 1.0, "MILLISECOND": 0.001}
# A column by its text, and so many seconds after it.
_Point = tuple[str, float]
# A comparison of two points, and whether both may be equal.
_AtMost = tuple[exp.Expr, exp.Expr, bool]


def contradiction(join: Join) -> exp.Expr | None:
    """The condition with which the time bounds of a join exclude each other; None: some rows can meet them."""
    least: dict[tuple[str, str], tuple[float, bool]] = {}
    for condition in join.conditions:
        for smaller, greater, equal in _comparisons(condition.node):
            one, other = _point(smaller), _point(greater)
            if one is None or other is None or one[0] == other[0]:
                continue
            # one - other is at most this; the second is False where it must be less.
            bound = other[1] - one[1], equal
            least[one[0], other[0]] = min(least.get((one[0], other[0]), bound), bound)
            back = least.get((other[0], one[0]))
            if back is not None and (bound[0] + back[0] < 0 or (bound[0] + back[0] == 0 and not (equal and back[1]))):
                return condition.node
    return None


def _comparisons(node: exp.Expr) -> Iterator[_AtMost]:
    match node:
        case exp.Between():
            yield node.args["low"], node.this, True
            yield node.this, node.args["high"], True
        case exp.LT() | exp.LTE():
            yield node.this, node.expression, isinstance(node, exp.LTE)
        case exp.GT() | exp.GTE():
            yield node.expression, node.this, isinstance(node, exp.GTE)


def _point(node: exp.Expr) -> _Point | None:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.sql().lower(), 0.0
    if not isinstance(node, (exp.Add, exp.Sub)):
        return None
    moved, by = _point(node.this), _seconds(node.expression.unnest())
    if moved is None or by is None:
        return None
    return moved[0], moved[1] + (by if isinstance(node, exp.Add) else -by)


def _seconds(node: exp.Expr) -> float | None:
    unit = _SECONDS.get(node.text("unit").upper().removesuffix("S")) if isinstance(node, exp.Interval) else None
    number = node.this.this if isinstance(node.this, exp.Neg) else node.this
    if unit is None or not isinstance(number, exp.Literal):
        return None
    try:
        return float(number.name) * (-unit if isinstance(node.this, exp.Neg) else unit)
    except ValueError:
        return None
