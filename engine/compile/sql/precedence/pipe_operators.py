"""What Spark reads as a query, or as a step of a pipe, and sqlglot does not: `TABLE t`, `VALUES ..`, `|> DROP a`.

Each becomes the SELECT that Spark makes of it (AstBuilder: visitTable, visitInlineTable, visitOperatorPipeRightSide).
A word that is put in has the place of the one that it is put in for.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

# What sqlglot calls the step of a pipe, with its number.
STEP = re.compile(r"__tmp(\d+)")
_SETS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
_OPENING, _CLOSING = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}


def with_selects(tokens: list[Token], text: str) -> list[Token]:
    """The tokens with a SELECT in place of what sqlglot does not read.

    Args:
        tokens: of a statement.
        text: that they are of.
    """
    lower = text.lower()
    if not any(word in lower for word in ("|>", "table", "values")):
        return tokens
    result: list[Token] = []
    # Behind the last name of DROP, by its place among the tokens.
    closed = 0
    for index, token in enumerate(tokens):
        if closed and index == closed:
            result.append(_as(tokens[index - 1], TokenType.R_PAREN, ")"))
            closed = 0
        kind, before = token.token_type, tokens[index - 1] if index else None
        if kind is TokenType.TABLE and _starts_query(tokens, index) and _names(tokens, index + 1):
            result += _selected(token)
        elif kind is TokenType.VALUES and _starts_query(tokens, index) and _stands_alone(tokens, index):
            result += [*_selected(token), token]
        elif kind is TokenType.DROP and before is not None and before.token_type is TokenType.PIPE_GT:
            closed = _end_of_names(tokens, index + 1)
            words = (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.EXCEPT, "EXCEPT")
            result += [_as(token, *word) for word in (*words, (TokenType.L_PAREN, "("))]
        else:
            result.append(token)
    return [*result, _as(tokens[-1], TokenType.R_PAREN, ")")] if closed else result


def repaired(tree: exp.Expr) -> exp.Expr:
    """A tree with pipes as that of the same query without: sqlglot makes CTEs of their steps, and leaves names alone.

    Keys of AGGREGATE become columns, and what `|> AS e` has named a relation; a query that is its last step alone is
    replaced by it.
    """
    for group in tree.find_all(exp.Group):
        for key in group.expressions:
            if type(key) is exp.Identifier:
                key.replace(exp.Column(this=key.copy()))
    for start in tree.find_all(exp.From):
        if isinstance(start.this, exp.TableAlias):
            start.set("this", exp.Table(this=start.this.this))
    for select in list(tree.find_all(exp.Select)):
        step = _last_step(select)
        if step is not None and select is tree:
            tree = step
        elif step is not None:
            select.replace(step)
    return tree


def _last_step(select: exp.Select) -> exp.Expr | None:
    """The last step of a pipe, if a query is `SELECT *` of it and nothing more, with those before it as its CTEs."""
    if _given(select) != {"with_", "from_", "expressions"}:
        return None
    clause, relation, (star, *others) = select.args["with_"], select.args["from_"].this, select.expressions
    *before, last = clause.expressions
    # PIVOT and samples belong to the relation.
    whole = type(star) is exp.Star and not _given(star) and not others and _given(relation) == {"this"}
    named = STEP.fullmatch(last.alias) is not None and relation.name == last.alias
    if not whole or not named or clause.args.get("recursive") or last.this.args.get("with_") is not None:
        return None
    step: exp.Expr = last.this.pop()
    if before:
        step.set("with_", exp.With(expressions=[one.pop() for one in before]))
    return step


def _given(node: exp.Expr) -> set[str]:
    """The arguments that a node has."""
    return {key for key, value in node.args.items() if value}


def _selected(token: Token) -> list[Token]:
    words = (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")
    return [_as(token, *word) for word in words]


def _as(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _starts_query(tokens: list[Token], index: int) -> bool:
    """Whether a query may begin here: at the begin, in brackets, behind UNION and its like, behind WITH."""
    if not index:
        return True
    before = tokens[index - 1].token_type
    if before in {TokenType.ALL, TokenType.DISTINCT} and index > 1:
        before = tokens[index - 2].token_type
    return before in {*_SETS, TokenType.L_PAREN} or (before is TokenType.R_PAREN and _ends_ctes(tokens, index - 1))


def _ends_ctes(tokens: list[Token], index: int) -> bool:
    """Whether a bracket closes a CTE: it is opened behind AS."""
    depth = 0
    for place in range(index, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if not depth:
            return tokens[place - 1].token_type is TokenType.ALIAS
    return False


def _names(tokens: list[Token], index: int) -> bool:
    """Whether the name of a relation comes: `table` may be a column, and `TABLE(..)` an argument."""
    return index < len(tokens) and tokens[index].token_type in {TokenType.VAR, TokenType.IDENTIFIER}


def _stands_alone(tokens: list[Token], index: int) -> bool:
    """Whether VALUES is a whole query, or a pipe follows; in brackets alone sqlglot reads it."""
    if not index or tokens[index - 1].token_type is not TokenType.L_PAREN:
        return True
    depth = 0
    for token in tokens[index:]:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth < 0:
            return False
        if not depth and token.token_type is TokenType.PIPE_GT:
            return True
    return False


def _end_of_names(tokens: list[Token], index: int) -> int:
    """The place behind a list of names, which commas and dots connect."""
    while index < len(tokens) and tokens[index].token_type not in {
        *_CLOSING, *_SETS, TokenType.PIPE_GT, TokenType.SEMICOLON,
    }:  # fmt: skip
        index += 1
    return index
