"""Spark's dialect of sqlglot: its tokens, its parser."""

from __future__ import annotations

import threading
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.precedence.mixed_operators import is_doubtful
from engine.compile.sql.precedence.operator_tokens import are_mixed, marked, with_shifts
from engine.compile.sql.precedence.pipes import named, without_pipes
from engine.compile.sql.precedence.query_words import with_selects
from engine.compile.sql.precedence.regroup import regrouped
from engine.compile.sql.precedence.variant_paths import with_brackets

DIALECT = "spark"
# What the parser raises, beside its own errors, for what it did not foresee.
UNFORESEEN = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
# A tokenizer keeps its place in the text: each thread has its own.
_OWN = threading.local()


@cache
def spark() -> sqlglot.Dialect:
    """Spark's dialect; made by its name it would be made for each text again."""
    return sqlglot.Dialect.get_or_raise(DIALECT)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text in Spark's dialect; making what reads them takes half as long as reading a model.

    Raises:
        sqlglot.errors.TokenError: a quote or comment has no end.
    """
    if not hasattr(_OWN, "tokenizer"):
        _OWN.tokenizer = spark().tokenizer()
    tokens: list[Token] = _OWN.tokenizer.tokenize(text)
    return tokens


def _parser() -> sqlglot.Parser:
    """A parser that stops at the first error."""
    return spark().parser(error_level=ErrorLevel.IMMEDIATE)


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """Parse statements with the precedence of Spark's operators.

    Raises:
        ParseError: the text is not SQL; also where Spark requires brackets that sqlglot does not.
    """
    if ">>>" in text or "!>" in text or "!<" in text:
        tokens = with_shifts(tokens)
    if ":" in text:
        tokens = with_brackets(tokens)
    tokens = with_selects(without_pipes(tokens, text), text)
    trees = _parser().parse(tokens, text)
    if are_mixed(tokens) and any(tree is not None and is_doubtful(tree) for tree in trees):
        trees = [tree and regrouped(tree) for tree in _parser().parse(marked(tokens), text)]
    return [tree and named(tree, text) for tree in trees] if "|>" in text else trees


def parse_text(text: str) -> exp.Expr:
    """Parse one statement or expression.

    Raises:
        sqlglot.errors.SqlglotError: the text is not SQL, or more than one statement.
    """
    trees = parse_tokens(tokenize(text), text)
    if len(trees) != 1 or trees[0] is None:
        raise ParseError(f"one statement is expected: {text}")
    return trees[0]
