"""What sqlglot reads, as other databases write it, and Spark does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from engine.compile.sql.precedence.pipes import SET
from engine.compile.types.builtin_functions import BUILTIN

Fault = tuple[str, str]
Absent = tuple[str, str, exp.Expr]
_ZONE = "Write from_utc_timestamp(ts, 'Europe/Berlin'), or convert_timezone(from, to, ts)."
_ALL_ROWS = 100
# Of Spark's own functions only these have names for their arguments (asked of 4.1).
_WITH_NAMES = {
    "count_min_sketch", "explode", "explode_outer", "inline", "inline_outer", "mask", "posexplode", "posexplode_outer",
    "variant_explode", "variant_explode_outer",
    # Spark reads over the name, or has another word for it.
    "collations", "identifier", "python_worker_logs", "range", "sql_keywords", "struct", "timediff", "timestampadd",
    "timestampdiff", "when",
}  # fmt: skip
_NO_STAR = (exp.Binary, exp.Neg, exp.Not, exp.Where, exp.Having, exp.Ordered, exp.Cast)


def absent_constructs(nodes: Iterable[exp.Expr]) -> Iterator[Absent]:
    for node in nodes:
        if isinstance(node, exp.With):
            yield from _repeated_ctes(node)
        elif isinstance(node, exp.Window):
            yield from _named_window(node)
        else:
            rule = _RULES.get(type(node))
            finding = rule(node) if rule is not None else None
            if finding is not None:
                yield (*finding, _node_with_place(node))


def _node_with_place(node: exp.Expr) -> exp.Expr:
    """The node, or the nearest around it that has a place in the text."""
    around: exp.Expr | None = node
    while around is not None and not any("start" in part.meta for part in around.walk()):
        around = around.parent
    return around or node


def _at_time_zone(node: exp.Expr) -> Fault | None:
    # A function that sqlglot reads as AT TIME ZONE has a place of its own.
    return None if "start" in node.meta else ("Spark has no AT TIME ZONE", _ZONE)


def _between(node: exp.Expr) -> Fault | None:
    if node.args.get("symmetric"):
        return "Spark has no BETWEEN SYMMETRIC", "Write between least(a, b) and greatest(a, b)."
    return None


def _compared_to(node: exp.Expr) -> Fault | None:
    if isinstance(node.this, exp.Query):
        message = f"Spark has no comparison with {node.key.upper()} of a subquery"
        return message, "Compare with max() or min() of it, or use IN."
    if isinstance(node.parent, (exp.Like, exp.ILike)):
        return None
    if isinstance(node, exp.Any) and isinstance(node.this, exp.Tuple):
        return "Spark has no comparison with ANY of several values", "Write x in (a, b)."
    return None


def _star(node: exp.Expr) -> Fault | None:
    for key, remedy in (("replace", "Write * except (a), then the new a."), ("rename", "List the columns.")):
        if node.args.get(key) and not node.meta.get(SET):
            return f"Spark has no * {key.upper()}", remedy
    item = node.parent if isinstance(node.parent, exp.Column) else node
    around = item.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(around, exp.Alias):
        return "* has no alias", "Name the columns: a as x, b as y."
    if isinstance(around, _NO_STAR) and "start" not in around.meta:
        return "* stands for columns, and not for a value", "Name one column."
    return None


def _named_argument(node: exp.Expr) -> Fault | None:
    """`upper(str => 'a')`; few of Spark's own functions have names for their arguments."""
    call = node.parent
    if not isinstance(call, exp.Func) or isinstance(call, exp.Cast):
        return None
    name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
    if name in _WITH_NAMES or (isinstance(call, exp.Anonymous) and name not in BUILTIN):
        return None
    return f"the argument '{node.name}' cannot be named here", "Write the arguments in their order, without '=>'."


def _having(node: exp.Expr) -> Fault | None:
    select = node.parent
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return None
    if any(item.is_star for item in select.expressions):
        return "HAVING needs GROUP BY", "Write WHERE, or group the rows."
    return None


def _in(node: exp.Expr) -> Fault | None:
    if node.args.get("field") is not None:
        return "the values after IN must be in parentheses", "Write x in (a, b), or array_contains(array, x)."
    if node.args.get("unnest") is not None:
        return "Spark has no IN UNNEST", "Write array_contains(array, x)."
    if not node.expressions and node.args.get("query") is None:
        return "IN has no values", "Write at least one value; use false for a condition that is never true."
    return None


def _order(node: exp.Expr) -> Fault | None:
    if isinstance(node.parent, (exp.Query, exp.Window, exp.WithinGroup, exp.WindowSpec)) or node.parent is None:
        return None
    # listagg() has it from WITHIN GROUP, too.
    if isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.GroupConcat):
        hint = "Sort the array: array_sort(collect_list(struct(b, a))), or sort_array(collect_list(a))."
        return "Spark has no ORDER BY inside the parentheses of a function", hint
    return None


def _count(node: exp.Expr) -> Fault | None:
    if isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Star):
        return "Spark has no count(table.*)", "Write count(*), or count(t.id) of a column."
    return None


def _arrow(node: exp.Expr) -> Fault | None:
    if "start" in node.meta or "only_json_types" not in node.args:
        return None
    sign = "->>" if isinstance(node, exp.JSONExtractScalar) else "->"
    hint = "Write item.name for a field, get_json_object(col, '$.name') for a JSON string."
    return f"Spark has no {sign}", hint


def _frame(node: exp.Expr) -> Fault | None:
    if str(node.args.get("kind") or "").upper() == "GROUPS":
        return "Spark has no frames of GROUPS", "Write ROWS or RANGE."
    if node.args.get("exclude") is not None:
        return "Spark has no EXCLUDE in a frame", "Compute it without EXCLUDE, and subtract the row's own value."
    return None


def _travel(node: exp.Expr) -> Fault | None:
    written = "FOR TIMESTAMP AS OF or FOR VERSION AS OF"
    return f"Spark has no {str(node.this).upper()} (..) after a table", f"Write {written}."


def _rows(node: exp.Expr) -> Fault | None:
    count = node.args.get("expression")
    count = count.unnest() if isinstance(count, exp.Expr) else count
    name = "LIMIT" if isinstance(node, exp.Limit) else "OFFSET"
    negative = isinstance(count, exp.Neg) and isinstance(count.this, exp.Literal)
    fraction = isinstance(count, exp.Literal) and not count.is_int
    if negative or fraction or isinstance(count, (exp.Null, exp.Query, exp.Rand)):
        return (
            f"{name} takes a non-negative integer",
            f"Write {name} 10.",
        )
    return None


def _sample(node: exp.Expr) -> Fault | None:
    percent = node.args.get("percent")
    if isinstance(percent, exp.Literal) and not percent.is_string and float(percent.name) > _ALL_ROWS:
        return f"a sample of {percent.name} percent is more than 100 percent", "Write a number up to 100."
    return None


def _lateral(node: exp.Expr) -> Fault | None:
    side, kind, method = (str(node.args.get(key) or "").upper() for key in ("side", "kind", "method"))
    if not isinstance(node.this, exp.Lateral):
        return None
    if method == "NATURAL" or node.args.get("using"):
        return "Spark has no NATURAL or USING with LATERAL", "Write JOIN LATERAL .. ON .."
    if side in {"RIGHT", "FULL"} or kind in {"SEMI", "ANTI"}:
        message = f"Spark has no {kind or side} JOIN LATERAL"
        return message, "Write JOIN LATERAL or LEFT JOIN LATERAL; for SEMI and ANTI, exists(..) in WHERE."
    return None


def _not_in_spark(message: str, hint: str) -> Callable[[exp.Expr], Fault | None]:
    return lambda _: (message, hint)


def _interval(node: exp.Expr) -> Fault | None:
    """`interval '1'`; sqlglot also reads the 1 of `interval 2 days + 1` so."""
    value = node.this
    if node.args.get("unit") is not None or not isinstance(value, exp.Literal) or any(map(str.isalpha, value.name)):
        return None
    return "an interval has no unit", "Write interval 1 day; numbers cannot be added to intervals."


_RULES: dict[type[exp.Expr], Callable[[exp.Expr], Fault | None]] = {
    exp.All: _compared_to,
    exp.Any: _compared_to,
    exp.AtTimeZone: _at_time_zone,
    exp.Between: _between,
    exp.Count: _count,
    exp.Glob: _not_in_spark("Spark has no GLOB", "Write LIKE 'a%', or RLIKE and a regular expression."),
    exp.Having: _having,
    exp.HistoricalData: _travel,
    exp.In: _in,
    exp.Interval: _interval,
    exp.JSONExtract: _arrow,
    exp.JSONExtractScalar: _arrow,
    exp.Join: _lateral,
    exp.Limit: _rows,
    exp.Kwarg: _named_argument,
    exp.Offset: _rows,
    exp.Order: _order,
    exp.Overlaps: _not_in_spark("Spark has no OVERLAPS", "Write a.start < b.end and b.start < a.end."),
    exp.PivotAny: _not_in_spark("Spark has no ANY in a PIVOT", "List the values: for id in ('a', 'b')."),
    exp.SimilarTo: _not_in_spark("Spark has no SIMILAR TO", "Write RLIKE and a regular expression."),
    exp.Slice: _not_in_spark(
        "Spark has no array slices [a:b]", "Write slice(tags, 1, 2) for two elements from the first on."
    ),
    exp.Star: _star,
    exp.TableSample: _sample,
    exp.Unnest: _not_in_spark("Spark has no UNNEST", "Write explode(tags), in FROM LATERAL VIEW explode(tags) t AS x."),
    exp.WindowSpec: _frame,
}
ABSENT: tuple[type[exp.Expr], ...] = (exp.With, exp.Window, *_RULES)


def _named_window(node: exp.Window) -> Iterator[Absent]:
    """FILTER before OVER, `over w` that the WINDOW clause does not define, and `over (w order by a)`."""
    if isinstance(node.this, exp.Filter):
        hint = "Write sum(case when .. then a end) OVER (..)."
        yield "Spark has no FILTER of a function with OVER", hint, node
    name = node.args.get("alias")
    if node.arg_key == "windows":
        yield from _window_twice(node)
        return
    if not isinstance(name, exp.Identifier):
        return
    if any(node.args.get(key) for key in ("order", "partition_by", "spec")):
        hint = "Write PARTITION BY and ORDER BY of both inside OVER (..)."
        yield "Spark cannot extend a window of the WINDOW clause", hint, name
        return
    select = node.find_ancestor(exp.Select)
    windows = select.args.get("windows") or () if select is not None else ()
    if name.name not in {window.name for window in windows}:  # Spark is case-sensitive here.
        hint = "Add WINDOW w AS (PARTITION BY a ORDER BY b) after the query."
        yield f"window '{name.name}' not found in the WINDOW clause", hint, name


def _window_twice(node: exp.Window) -> Iterator[Absent]:
    windows = node.parent.args.get("windows") or () if node.parent is not None else ()
    same = [window for window in windows if window.name == node.name]
    if len(same) > 1 and same[0] is not node:
        yield f"two windows have the name '{node.name}'", "Give one of them another name.", node


def _repeated_ctes(clause: exp.With) -> Iterator[Absent]:
    names: set[str] = set()
    for cte in clause.expressions:
        name = cte.alias  # Spark is case-sensitive here.
        if name in names:
            yield f"two CTEs have the name '{cte.alias}'", "Give one of them another name.", cte.args["alias"]
        names.add(name)


def in_hint(node: exp.Expr) -> bool:
    """Whether a name is in a hint (`/*+ broadcast(d) */`), where it reads nothing."""
    return node.find_ancestor(exp.Hint, exp.Select) is not None and isinstance(
        node.find_ancestor(exp.Hint, exp.Select), exp.Hint
    )
