from __future__ import annotations
from sqlglot import exp
from engine.compile.columns.walk import Walk
def column_name(walk: Walk, node: exp.Expr) -> tuple[str, bool]:
    return node.alias_or_name, True
