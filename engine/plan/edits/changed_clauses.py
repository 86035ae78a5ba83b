"""Which clauses and columns of a query an edit changed, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlglot import exp

from engine.compile.nodes.facts import NO_FACTS, Facts
from engine.compile.sql.dialect import tree_of
from engine.compile.sql.same_expression import key_of

# Names that a sentence has at most.
_MOST = 5
_NAMES = {
    "from": "FROM",
    "joins": "JOIN",
    "laterals": "LATERAL VIEW",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "hint": "hint",
}
# Each step of a pipe reads the one before as a subquery.
_INNER = " of the subquery in FROM"


def with_clauses(sentence: str, before: Facts | None, after: Facts) -> str:
    """Return a sentence on an edited query with the edited parts in brackets; `before` None: they are not known."""
    names = changed_clauses(before, after) if before is not None else ()
    return f"{sentence} ({', '.join(names)})" if names else sentence


def changed_clauses(before: Facts, after: Facts) -> tuple[str, ...]:
    """Return the clauses and columns of a query that differ from those before; none: that cannot be told."""
    clauses: dict[str, None] = {}
    pairs = [("", before, after)]
    for name in sorted({*before.inlined, *after.inlined}):
        was, now = (facts.inlined.get(name, NO_FACTS) for facts in (before, after))
        pairs.append((f" of the ephemeral model '{name}'", was, now))
    for place, was, now in pairs:
        if was.sql == now.sql:
            continue
        old, new = tree_of(was.sql), tree_of(now.sql)
        if old is not None and new is not None:
            clauses |= dict.fromkeys(_of_query(old, new, place))
    more = len(clauses) - _MOST
    return (*islice(clauses, _MOST), f"{more} more") if more > 1 else tuple(clauses)


def _of_query(old: exp.Expr, new: exp.Expr, place: str) -> Iterator[str]:
    if type(old) is not type(new) or not isinstance(old, exp.Query) or not isinstance(new, exp.Query):
        return
    yield from _of_ctes(old, new, place)
    if isinstance(old, exp.SetOperation) and isinstance(new, exp.SetOperation):
        for side in ("this", "expression"):
            yield from _of_query(old.args[side], new.args[side], f" of a branch of {old.key.upper()}{place}")
        return
    if not isinstance(old, exp.Select) or not isinstance(new, exp.Select):
        return
    yield from _of_columns(old, new, place)
    args = [{key.strip("_"): value for key, value in one.args.items()} for one in (old, new)]
    for key in dict.fromkeys((*_NAMES, *args[0], *args[1])):
        if key not in {"with", "expressions"} and _differ(args[0].get(key), args[1].get(key)):
            yield from (_of_subquery(old, new, place) if key == "from" else ()) or (
                f"{_NAMES.get(key, key.upper())}{place}",
            )


def _of_subquery(old: exp.Select, new: exp.Select, place: str) -> tuple[str, ...]:
    before, after = (one.args["from_"].this if one.args.get("from_") else None for one in (old, new))
    if not isinstance(before, exp.Subquery) or not isinstance(after, exp.Subquery) or before.alias != after.alias:
        return ()
    return tuple(_of_query(before.this, after.this, place if place.startswith(_INNER) else f"{_INNER}{place}"))


def _of_ctes(old: exp.Query, new: exp.Query, place: str) -> Iterator[str]:
    before, after = ({cte.alias_or_name: cte.this for cte in one.ctes} for one in (old, new))
    for name in dict.fromkeys((*before, *after)):
        if name in before and name in after:
            yield from _of_query(before[name], after[name], f" of CTE '{name}'{place}")
        else:
            yield f"{'new ' if name in after else 'removed '}CTE '{name}'{place}"


def _of_columns(old: exp.Select, new: exp.Select, place: str) -> Iterator[str]:
    before, after = ({item.alias_or_name: item for item in one.expressions} for one in (old, new))
    for name in dict.fromkeys((*before, *after)):
        if name not in after or name not in before:
            yield f"{'new' if name in after else 'removed'} column '{name}'{place}"
        elif _differ(before[name], after[name]):
            yield f"column '{name}'{place}"
    if before.keys() == after.keys() and list(before) != list(after):
        yield f"the order of the columns{place}"


def _differ(old: Any, new: Any) -> bool:
    """Whether two parts of trees differ, which sqlglot compares in one letter case; or in a gap, which has no key."""
    return old != new or key_of(old) != key_of(new)
