"""What sqlglot reads, as other databases write it, and Spark does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

ABSENT: tuple[type[exp.Expr], ...] = (exp.AtTimeZone, exp.Between, exp.Any, exp.All, exp.Star, exp.With)
Absent = tuple[str, str, exp.Expr]


def absent(nodes: Iterable[exp.Expr]) -> Iterator[Absent]:
    """Message, hint and place of each construct that Spark cannot read."""
    for node in nodes:
        if isinstance(node, exp.With):
            yield from _twice(node)
        elif isinstance(node, ABSENT):
            found = _fault(node)
            if found is not None:
                yield (*found, node)


def _fault(node: exp.Expr) -> tuple[str, str] | None:
    # A function that sqlglot reads as AT TIME ZONE has a place of its own.
    if isinstance(node, exp.AtTimeZone) and "start" not in node.meta:
        hint = "Write from_utc_timestamp(ts, 'Europe/Berlin'), or convert_timezone(from, to, ts)."
        return "Spark has no AT TIME ZONE", hint
    if isinstance(node, exp.Between) and node.args.get("symmetric"):
        return "Spark has no BETWEEN SYMMETRIC", "Write between least(a, b) and greatest(a, b)."
    if isinstance(node, (exp.Any, exp.All)) and isinstance(node.this, exp.Query):
        message = f"Spark has no comparison with {node.key.upper()} of a subquery"
        return message, "Compare with max() or min() of it, or use IN."
    if isinstance(node, exp.Star):
        for key, remedy in (
            ("replace", "Write * except (a), and the new a behind it."),
            ("rename", "List the columns."),
        ):
            if node.args.get(key):
                return f"Spark has no * {key.upper()}", remedy
    return None


def _twice(clause: exp.With) -> Iterator[Absent]:
    seen: set[str] = set()
    for cte in clause.expressions:
        name = cte.alias  # Spark tells the letter case apart here.
        if name in seen:
            yield f"two CTEs are called '{cte.alias}'", "Give one of them another name.", cte.args["alias"]
        seen.add(name)


def in_hint(node: exp.Expr) -> bool:
    """Whether a name stands in a hint (`/*+ broadcast(d) */`), where it reads nothing."""
    return node.find_ancestor(exp.Hint, exp.Select) is not None and isinstance(
        node.find_ancestor(exp.Hint, exp.Select), exp.Hint
    )
