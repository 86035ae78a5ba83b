"""The user's text of the columns of a query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.columns.walk import path

_PIECE = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|[(),\[\]]"
    r"|\b(?:select|from|where|group|having|order|sort|cluster|distribute|lateral|limit|offset|window|union|except"
    r"|intersect|minus)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEAD = re.compile(r"\s*(?:distinct\b|all\b|/\*.*?\*/|--[^\n]*\n)?\s*", re.IGNORECASE | re.DOTALL)
_BLANK = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+", re.DOTALL)
_ALIAS = re.compile(r"(?<!\s)\s+as\s*$", re.IGNORECASE)
# Characters of an item around which comments are looked for.
_LONGEST = 5_000
_COMMENT = re.compile(r"^\s*(?:--[^\n]*\n|/\*.*?\*/)|(?:--[^\n]*|/\*.*?\*/)\s*$", re.DOTALL)


@lru_cache(maxsize=2048)
def expression(sql: str) -> exp.Expr | None:
    """An expression of a header; its places count from the begin of `select <sql>`."""
    try:
        tree = sqlglot.parse_one(f"select {sql}", dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    return tree.expressions[0] if isinstance(tree, exp.Select) and len(tree.expressions) == 1 else None


def dotted_names(tree: exp.Expr) -> Iterator[str]:
    """The columns, and the fields of structs, that an expression names, in lower case."""
    for node in tree.find_all(exp.Column):
        top: exp.Expr = node
        while isinstance(top.parent, exp.Dot) and top.parent.this is top:
            top = top.parent
        yield ".".join(identifier.name for identifier in path(top)[0]).lower()


def projections(text: str, tree: exp.Expr) -> list[str]:
    """The text of each item of the SELECT that names a query's columns; empty if it is not found."""
    select = first_select(tree)
    if select is None:
        return []
    spans = _spans(text)
    if len(spans) != len(select.expressions):
        return []
    shown = []
    for (start, end), item in zip(spans, select.expressions, strict=True):
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        begin = alias.meta.get("start", end) if isinstance(alias, exp.Identifier) else end
        if not start <= begin <= end:
            return []
        shown.append(_bare(text[start:begin], aliased=begin != end))
    return shown


def starts(text: str, tree: exp.Expr, names: list[str]) -> list[int]:
    """Where the item is that gives each column of a query; that of the query where it is not known.

    Args:
        text: that was parsed.
        tree: of it.
        names: of the columns, in order.
    """
    select = first_select(tree)
    spans = _spans(text) if select is not None else []
    if select is None or len(spans) != len(select.expressions):
        begin = len(text) - len(text.lstrip())
        return [begin for _ in names]
    begins = [match.end() for start, _ in spans if (match := _BLANK.match(text, start))]
    stars = [begin for begin, item in zip(begins, select.expressions, strict=True) if item.is_star]
    if len(spans) == len(names) and not stars:
        return begins
    named = {item.alias_or_name.lower(): begin for begin, item in zip(begins, select.expressions, strict=True)}
    return [named.get(name.lower(), (stars or begins)[0]) for name in names]


def _bare(text: str, *, aliased: bool) -> str:
    """An item without the word AS behind it and without the comments around it."""
    before, text = "", _ALIAS.sub("", text) if aliased else text
    while text != before and len(text) <= _LONGEST:
        before, text = text, _COMMENT.sub("", text).strip()
    return text


def first_select(tree: exp.Expr) -> exp.Select | None:
    """The SELECT on the outside whose names count."""
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None


def _spans(text: str) -> list[tuple[int, int]]:
    """Begin and end of the items of the outermost SELECT."""
    depth, begin = 0, -1
    spans: list[tuple[int, int]] = []
    for piece in _PIECE.finditer(text):
        word = piece[0].lower()
        if word in {"(", "["}:
            depth += 1
        elif word in {")", "]"}:
            depth -= 1
        elif depth or not (word == "," or word[0].isalpha()):
            continue
        elif begin < 0 and word == "select":
            head = _HEAD.match(text, piece.end())
            begin = head.end() if head else piece.end()
        elif begin >= 0 and word == ",":
            spans.append((begin, piece.start()))
            begin = piece.end()
        elif begin >= 0 and word != "select":
            return [*spans, (begin, piece.start())]
    return [*spans, (begin, len(text))] if begin >= 0 else []
