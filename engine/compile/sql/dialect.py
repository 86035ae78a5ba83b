"""Spark's dialect of sqlglot: its tokens, its parser; no other module calls sqlglot's parser or tokenizer."""

from __future__ import annotations

from functools import cache, lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType, tokenize
from engine.compile.sql.misread_tokens import correct_tokens, restore_names
from engine.compile.sql.precedence.mixed_operators import are_mixed, is_doubtful, mark_brackets
from engine.compile.sql.precedence.pipes import with_relation_names, without_pipes
from engine.compile.sql.precedence.query_words import with_selects
from engine.compile.sql.precedence.regroup import regroup_operators
from engine.compile.sql.precedence.variant_paths import with_brackets

__all__ = ["DIALECT", "UNFORESEEN", "parse_text", "parse_tokens", "spark", "tokenize", "tree_of"]

DIALECT = "spark"
# What the parser raises, beside its own errors, for what it did not foresee.
UNFORESEEN = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@cache
def spark() -> sqlglot.Dialect:
    """Spark's dialect; made by its name it would be made for each text again."""
    return sqlglot.Dialect.get_or_raise(DIALECT)


def _parser() -> sqlglot.Parser:
    """A parser that stops at the first error."""
    return spark().parser(error_level=ErrorLevel.IMMEDIATE)


def is_unknown(token: Token) -> bool:
    """Return whether the lexer stopped here; the word UNKNOWN, as in `a IS UNKNOWN`, has the same type."""
    return token.token_type is TokenType.UNKNOWN and token.text.lower() != "unknown"


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """Parse statements as Spark reads them: its words, and the precedence of its operators.

    Raises:
        ParseError: not SQL; also where Spark requires brackets that sqlglot does not.
    """
    if tokens and is_unknown(tokens[-1]):
        last = tokens[-1]
        raise ParseError.new("Unexpected character", description="Unexpected character", line=last.line, col=last.col)
    tokens = correct_tokens(tokens, text)
    if ":" in text:
        tokens = with_brackets(tokens)
    tokens = with_selects(without_pipes(tokens, text), text)
    trees = _parser().parse(tokens, text)
    if are_mixed(tokens) and any(tree is not None and is_doubtful(tree) for tree in trees):
        trees = [tree and regroup_operators(tree) for tree in _parser().parse(mark_brackets(tokens), text)]
    written = text.lower()
    if "window" in written or "pivot" in written:
        for tree in trees:
            if tree is not None:
                restore_names(tree)
    return [tree and with_relation_names(tree, text) for tree in trees] if "|>" in text else trees


def parse_text(text: str) -> exp.Expr:
    """Parse one statement or expression; raise SqlglotError if the text is not SQL, or more than one statement."""
    trees = parse_tokens(tokenize(text), text)
    if len(trees) != 1 or trees[0] is None:
        raise ParseError(f"one statement is expected: {text}")
    return trees[0]


@lru_cache(maxsize=64)
def tree_of(text: str) -> exp.Expr | None:
    """The tree of a text, to look at and not to change: others look at it, too; None: the text cannot be read."""
    try:
        return parse_text(text)
    except (SqlglotError, RecursionError, *UNFORESEEN):
        return None
