"""The operators of Spark's grammar, as sqlglot's classes, and how tightly they bind."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

UNARY, COMPARISON = 9, 2
LEVELS: Final[dict[type[exp.Expr], int]] = {
    exp.Mul: 8, exp.Div: 8, exp.Mod: 8, exp.IntDiv: 8,
    exp.Add: 7, exp.Sub: 7, exp.DPipe: 7,
    # sqlglot has no `>>>`: its tokens are replaced by those of another operator that Spark does not have.
    exp.BitwiseLeftShift: 6, exp.BitwiseRightShift: 6, exp.Distance: 6,
    exp.BitwiseAnd: 5, exp.BitwiseXor: 4, exp.BitwiseOr: 3,
    exp.EQ: 2, exp.NEQ: 2, exp.LT: 2, exp.LTE: 2, exp.GT: 2, exp.GTE: 2, exp.NullSafeEQ: 2,
}  # fmt: skip
ARITHMETIC = {exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Add, exp.Sub}
PREFIXES = (exp.Neg, exp.BitwiseNot)
# With an operand to the right (IS [NOT] DISTINCT FROM too), and without.
_MATCHES = (exp.Like, exp.ILike, exp.RegexpLike, exp.NullSafeEQ, exp.NullSafeNEQ)
TESTS = (exp.Is, exp.In)
PREDICATES = (*_MATCHES, *TESTS, exp.Between, exp.Escape)
POSTFIXES = (exp.Cast, exp.TryCast, exp.Bracket, exp.Dot)
CHAINED = (*LEVELS, *PREFIXES, *PREDICATES, exp.Collate)
CHAINED_KINDS = frozenset(CHAINED)


def operand_keys(node: exp.Expr) -> tuple[str, ...]:
    """The arguments of an operator that are its operands, from left to right."""
    if isinstance(node, exp.Between):
        return ("this", "low", "high")
    if isinstance(node, (*TESTS, exp.Escape, exp.Collate, *PREFIXES)):
        return ("this",)
    return ("this", "expression")


def is_atom(node: exp.Expr) -> bool:
    """Whether a node is an operand: not an operator, or the call of a function that sqlglot reads as one."""
    return not isinstance(node, CHAINED) or "start" in node.meta


def number_below(node: exp.Expr) -> exp.Literal | None:
    """The number that casts and places (`1::int`, `1[0]`) are written behind, if it is one."""
    while isinstance(node, POSTFIXES) and "start" not in node.meta:
        node = node.this
    return node if isinstance(node, exp.Literal) and not node.is_string else None
