"""A tree as SQL for people: what sqlglot would write as another function keeps the name by which it is called."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from engine.compile.sql.dialect import spark

# Written as PERCENTILE_APPROX, which has other results.
_PERCENTILES = (exp.PercentileCont, exp.PercentileDisc)


def shown_sql(tree: exp.Expr, **options: Any) -> str:
    """Return SQL that names the functions of a tree, which stays as it is; it is shown, never run or compared."""
    named_tree = tree.copy() if tree.find(*_PERCENTILES) is not None else tree
    if named_tree is not tree:
        for call in list(named_tree.find_all(*_PERCENTILES)):
            call.replace(exp.Anonymous(this=call.sql_name(), expressions=[*call.iter_expressions()]))
    return str(named_tree.sql(spark(), **options))


def join_words(join: exp.Expr) -> str:
    """Return how a join is written: `LEFT SEMI JOIN`, `FULL JOIN`, `JOIN`."""
    words = (str(join.args.get(name) or "").upper() for name in ("method", "side", "kind"))
    return " ".join([*filter(None, words), "JOIN"])
