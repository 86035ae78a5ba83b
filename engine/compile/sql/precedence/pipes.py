"""Pipes (`FROM t |> WHERE a > 1 |> SELECT b`) as the nested SELECTs that Spark makes of them.

sqlglot merges steps whose order counts and lacks some, so that its parser sees none: they are written out in the tokens
(SqlBaseParser.g4: operatorPipeRightSide, AstBuilder.visitOperatorPipeRightSide). A word that is put in has the place of
its sign `|>`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.precedence.pipe_steps import (
    MARK,
    RESULT,
    SETS,
    Item,
    PipeQuery,
    close_query,
    kind_of,
    side_by_side,
    tokens_of_items,
    visible_name,
    whole_query,
    with_step,
)

# Behind these a name follows, whatever else its word may be: `select offset, t.limit, a as window`.
_NAMING = {TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.ALIAS}
# Of a star with REPLACE, among its facts: it comes from the step SET. Spark has no other.
SET = "set"


def without_pipes(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens of nested SELECTs in place of those of pipes.

    Raises:
        ParseError: a step is none of Spark's, or groups by the number of a column.
    """
    return _flat(side_by_side(tokens, _flat)) if MARK in text else tokens


def with_relation_names(tree: exp.Expr, text: str) -> exp.Expr:
    """Return a tree whose relations in brackets have the names that they had before a step put them there."""
    for node in tree.find_all(exp.Identifier, exp.Star):
        if isinstance(node, exp.Star):
            node.meta[SET] = bool(node.args.get("replace")) and text[node.meta["start"]] == "|"
        elif node.name.startswith(MARK):
            node.set("this", node.name.removeprefix(MARK))
            node.meta.clear()
    return tree


def _flat(items: list[Item]) -> list[Token]:
    places = [index for index, item in enumerate(items) if kind_of(item) is TokenType.PIPE_GT]
    if not places:
        return list(chain.from_iterable(items))
    behind = _behind_ctes(items)
    query = _first_query(items[behind : places[0]], items[places[0]][0])
    for place, end in zip(places, [*places[1:], len(items)], strict=True):
        for step in _steps(items[place + 1 : end]):
            query = with_step(replace(query, sign=items[place][0]), step)
    return [*chain.from_iterable(items[:behind]), *whole_query(query)]


def _behind_ctes(items: list[Item]) -> int:
    """Where the query behind WITH begins."""
    if not items or kind_of(items[0]) is not TokenType.WITH:
        return 0
    for index in range(1, len(items) - 1):
        closes = len(items[index]) > 1 and kind_of(items[index - 1]) is TokenType.ALIAS
        if closes and kind_of(items[index + 1]) is not TokenType.COMMA:
            return index + 1
    return 0


def _steps(items: list[Item]) -> list[list[Item]]:
    """A step of a pipe; ORDER BY and the like behind it, and UNION, are steps of their own: of the query around."""
    steps: list[list[Item]] = [[]]
    for index, item in enumerate(items):
        kind, before = kind_of(item), kind_of(items[index - 1]) if index else None
        kinds = [kind_of(one) for one in steps[-1]]
        follows = kind in kinds if kinds[:1] and kinds[0] in RESULT else kind is not TokenType.OFFSET
        # `* except (a)` names columns.
        names = before in _NAMING or before is TokenType.STAR
        if index and not names and (kind in SETS or (kind in RESULT and follows)):
            steps.append([])
        steps[-1].append(item)
    return steps


def _first_query(items: list[Item], sign: Token) -> PipeQuery:
    """The query in front of the first sign."""
    kinds = [kind_of(item) for item in items]
    if kinds[:1] == [TokenType.TABLE] or (
        kinds[:1] == [TokenType.FROM] and not {TokenType.SELECT, TokenType.WHERE, *SETS} & {*kinds}
    ):
        relation = items[1:]
        alone = not {TokenType.COMMA, TokenType.JOIN, TokenType.LATERAL} & {*kinds}
        return PipeQuery(tokens_of_items(relation), sign, name=visible_name(relation) if alone else "", alone=alone)
    if kinds[:1] == [TokenType.VALUES]:
        return PipeQuery(tokens_of_items(items), sign)
    return close_query(PipeQuery([], sign), tokens_of_items(items))
