"""Whether sqlglot may have grouped operators in another way than Spark."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

_RARE = {
    TokenType.AMP, TokenType.CARET, TokenType.PIPE, TokenType.DPIPE, TokenType.LR_ARROW, TokenType.COLLATE,
}  # fmt: skip
_COMPARING = {
    TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE,
    TokenType.IS, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.BETWEEN,
}  # fmt: skip
_DIVIDING = {
    TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.WHERE,
    TokenType.ON, TokenType.HAVING, TokenType.SELECT, TokenType.FROM,
}  # fmt: skip
# Marks the brackets of the text, which differ so from those that sqlglot adds, and `<=>`.
WRITTEN = "\x00written"


def mark_brackets(tokens: list[Token]) -> list[Token]:
    """The tokens with a comment at each bracket and `<=>`, which sqlglot keeps at the node that it makes."""
    kinds = {TokenType.L_PAREN, TokenType.NULLSAFE_EQ}
    return [
        Token(t.token_type, t.text, t.line, t.col, t.start, t.end, [*t.comments, WRITTEN])
        if t.token_type in kinds
        else t
        for t in tokens
    ]


def is_written(node: exp.Expr) -> bool:
    """Whether a node of marked tokens is a bracket of the text, or a `<=>` and not IS DISTINCT FROM."""
    return WRITTEN in (node.comments or ())


def are_mixed(tokens: list[Token]) -> bool:
    """Whether operators may follow each other without brackets, AND or OR: a quick look at the tokens only."""
    kinds = {token.token_type for token in tokens}
    if not kinds.isdisjoint(_RARE) or {TokenType.DASH, TokenType.DCOLON} <= kinds:
        return True
    comparing, between, outside = False, False, list[tuple[bool, bool]]()
    for token in tokens:
        kind = token.token_type
        if kind in _COMPARING:
            if comparing:
                return True
            comparing, between = True, kind is TokenType.BETWEEN
        elif kind is TokenType.L_PAREN:
            outside.append((comparing, between))
            comparing = between = False
        elif kind is TokenType.R_PAREN and outside:
            comparing, between = outside.pop()
        elif kind is TokenType.AND and between:
            between = False
        elif comparing and kind in _DIVIDING:
            comparing = False
    return False


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
