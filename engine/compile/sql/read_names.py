"""Which columns a query may read: every name in its text counts, so that nothing is missed."""

from __future__ import annotations

from itertools import pairwise

from sqlglot import exp

from engine.compile.sql.dialect import tokenize, tree_of
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.query_nodes import holds_relations

# Iceberg's columns of a row's place: compaction changes them.
_PLACES = {
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_metadata",
}  # fmt: skip
_NO_NAMES = {TokenType.STRING, TokenType.NUMBER}


def read_names(sql: str) -> tuple[str, ...] | None:
    """Return the words and signs of a query in lower case; None: it may read a column that is not named among them."""
    tree = tree_of(sql)
    if tree is None or names_by_strings(sql) or reads_unnamed(tree):
        return None
    tokens = tokenize(sql)
    if any(token.token_type is TokenType.TABLE for token in tokens):
        return None
    return tuple(token.text.lower() for token in tokens if token.token_type not in _NO_NAMES)


def reads_unnamed(tree: exp.Expr) -> bool:
    """Return whether a query reads columns whose names are not in its text."""
    return any(map(_reads_unnamed, tree.walk()))


def _reads_unnamed(node: exp.Expr) -> bool:
    """Whether a part of a query reads columns that are not in its text."""
    if isinstance(node, exp.Star):
        return not _counts_rows(node)
    if isinstance(node, exp.Join):
        return bool(node.args.get("method"))
    return isinstance(node, exp.Pivot) or renames_columns(node)


def renames_columns(relation: exp.Expr) -> bool:
    """Return whether it is something in FROM whose columns get other names by their places: `flights as f(a, b)`."""
    alias = relation.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns")) and not _makes_columns(relation)


def _counts_rows(star: exp.Star) -> bool:
    """Whether it is that of `count(*)`, which reads no column."""
    count = star.parent
    alone = isinstance(count, exp.Count) and count.this is star and not count.expressions
    return alone and not any(star.args.values())


def _makes_columns(relation: exp.Expr) -> bool:
    """Whether the columns of a relation are made in the query, of names and values in its text."""
    if isinstance(relation, exp.Table):
        # A function has no identifier.
        return not isinstance(relation.this, exp.Identifier)
    if isinstance(relation, exp.Subquery):
        return not holds_relations(relation)
    if isinstance(relation, exp.Lateral) and isinstance(relation.this, exp.Subquery):
        return not holds_relations(relation.this)
    return isinstance(relation, exp.CTE | exp.Values | exp.Lateral)


def names_by_strings(sql: str) -> bool:
    """Return whether a query names columns by strings: `identifier('ci' || 'ty')` is the column `city`."""
    return any(
        one.text.lower() == "identifier" and after.token_type is TokenType.L_PAREN
        for one, after in pairwise(tokenize(sql))
    )


def reads_places(sql: str) -> bool:
    """Return whether a query may read where a row is stored, which compaction changes."""
    return any(token.text.lower() in _PLACES for token in tokenize(sql))
