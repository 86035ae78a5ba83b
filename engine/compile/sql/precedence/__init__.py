"""Parsing with Spark's precedence of operators, which sqlglot's parser does not have.

In Spark's grammar (SqlBaseParser.g4, `valueExpression` and `booleanExpression`) `&` binds tighter than `^` and that
tighter than `|`, shifts bind tighter than all three, `||` is on the level of `+`, all comparisons are on one level,
and a predicate (IS, IN, LIKE, BETWEEN, ..) applies to everything to its left, comparisons included. sqlglot's tree
has the operands in the order of the text, so that a chain of operators is taken apart and put together again.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.dialect import parser, tokenize
from engine.compile.sql.precedence.mixed_operators import is_doubtful
from engine.compile.sql.precedence.operator_tokens import are_mixed, marked, with_shifts
from engine.compile.sql.precedence.regroup import regrouped


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """Parse statements with the precedence of Spark's operators.

    Raises:
        ParseError: the text is not SQL; also where Spark requires brackets that sqlglot does not.
    """
    if ">>>" in text or "!>" in text or "!<" in text:
        tokens = with_shifts(tokens)
    trees = parser().parse(tokens, text)
    if are_mixed(tokens) and any(tree is not None and is_doubtful(tree) for tree in trees):
        trees = [tree and regrouped(tree) for tree in parser().parse(marked(tokens), text)]
    return trees


def parse_text(text: str) -> exp.Expr:
    """Parse one statement or expression.

    Raises:
        sqlglot.errors.SqlglotError: the text is not SQL, or more than one statement.
    """
    trees = parse_tokens(tokenize(text), text)
    if len(trees) != 1 or trees[0] is None:
        raise ParseError(f"one statement is expected: {text}")
    return trees[0]
