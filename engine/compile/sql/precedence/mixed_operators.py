"""Whether sqlglot may have grouped operators in another way than Spark."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.sql.precedence.operators import (
    ARITHMETIC,
    CHAINED,
    CHAINED_KINDS,
    COMPARISON,
    LEVELS,
    POSTFIXES,
    PREDICATES,
    PREFIXES,
    is_atom,
    number_below,
    operand_keys,
)


def is_doubtful(tree: exp.Expr) -> bool:
    """Whether sqlglot's grouping may differ from Spark's anywhere."""
    return any(type(node) in CHAINED_KINDS and _may_differ(node) for node in tree.walk())


def _may_differ(node: exp.Expr) -> bool:
    if isinstance(node, exp.Distance):
        return True
    if is_atom(node):
        return False
    if isinstance(node, exp.Collate):
        return True
    if isinstance(node, exp.Neg):
        return isinstance(node.this, POSTFIXES) and number_below(node.this) is not None
    if isinstance(node, exp.Is) and isinstance(node.expression, CHAINED):
        return True
    operands = [(key, operand) for key in operand_keys(node) if (operand := node.args.get(key)) is not None]
    return any(_mixes(node, key, operand) for key, operand in operands)


def _mixes(node: exp.Expr, key: str, operand: exp.Expr) -> bool:
    """Whether an operator and that of its operand are any but two of arithmetic, or one of it in a comparison."""
    inner = operand
    while isinstance(inner, exp.Paren | exp.Not):
        inner = inner.this
    if isinstance(operand, exp.Not) and not isinstance(inner, PREDICATES):
        return True
    if is_atom(inner) or isinstance(inner, PREFIXES):
        return False
    level, below = LEVELS.get(type(node), 0), LEVELS.get(type(inner), 0)
    if inner is not operand:
        # Brackets that sqlglot may have added.
        return level <= COMPARISON and below <= COMPARISON
    if level > COMPARISON and key == "this" and type(node) is type(inner):
        return False
    if {type(node), type(inner)} <= ARITHMETIC:
        return False
    return not level <= COMPARISON < below
