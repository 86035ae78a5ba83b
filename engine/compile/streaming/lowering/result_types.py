"""Types of expressions: those that the columns of the query have, with what streams ask beyond them: collations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from engine.compile.types import spark_types

TIMES = frozenset({"timestamp", "timestamp_ntz", "timestamp_ltz"})
NUMBERS = frozenset({
    "tinyint", "smallint", "int", "integer", "bigint", "float", "double", "byte", "short", "long",
})  # fmt: skip
_HANDING_ON = (
    exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.Substring, exp.Concat, exp.Trim, exp.Lower, exp.Upper,
)  # fmt: skip
_COLLATE = " collate "


def result_type(node: exp.Expr, parts: Sequence[str], types: Mapping[int, str]) -> str:
    """The type of a call; empty if it is not known.

    Args:
        node: the call.
        parts: the types of what it is made of.
        types: those that are known of the query, by the identity of the node.
    """
    if isinstance(node, exp.Collate):
        base = ((parts[0] if parts else "") or "string").partition(_COLLATE)[0]
        return f"{base}{_COLLATE}{node.expression.name.lower()}"
    if isinstance(node, _HANDING_ON) and (collated := next((part for part in parts if _COLLATE in part), "")):
        return collated
    type_ = types.get(id(node))
    if type_ is None and isinstance(node, exp.Cast):
        # The expression of a WATERMARK clause is not part of the query; a collation is not part of its types.
        return spark_types.of_node(node.to) or str(node.to.sql(dialect="spark").lower())
    return type_ or ""
