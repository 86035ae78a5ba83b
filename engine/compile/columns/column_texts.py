"""The user's text of the columns of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.columns.walk import path
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.select_items import ItemPlace


@lru_cache(maxsize=2048)
def expression(sql: str) -> exp.Expr | None:
    """An expression of a header; its places count from the begin of `select <sql>`."""
    try:
        tree = parse_text(f"select {sql}")
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


def columns_named(sql: str) -> set[str]:
    """The columns that an expression of a header names, in lower case."""
    tree = expression(sql)
    return {name.partition(".")[0] for name in dotted_names(tree)} if tree is not None else set()


def projections(text: str, places: Sequence[ItemPlace], tree: exp.Expr) -> list[str]:
    """Return the text of each item of the SELECT that names a query's columns, without aliases; empty if not known."""
    select = first_select(tree)
    items = select.expressions if select is not None else ()
    if len(places) != len(items):
        return []
    return [_item_without_alias(text, place, item) for place, item in zip(places, items, strict=True)]


def _item_without_alias(text: str, place: ItemPlace, item: exp.Expr) -> str:
    """An item without its alias; a star without the columns that it leaves out."""
    item_text = text[place.start : place.unaliased if isinstance(item, exp.Alias) else place.end]
    return item_text[: item_text.index("*") + 1] if item.is_star and "*" in item_text else item_text


def starts(text: str, places: Sequence[ItemPlace], tree: exp.Expr, names: list[str]) -> list[int]:
    """Return the offset of the item that gives each column of a query; that of the query where it is not known."""
    select = first_select(tree)
    if select is None or len(places) != len(select.expressions):
        begin = len(text) - len(text.lstrip())
        return [begin for _ in names]
    begins = [place.start for place in places]
    stars = [begin for begin, item in zip(begins, select.expressions, strict=True) if item.is_star]
    if len(places) == len(names) and not stars:
        return begins
    begin_by_name = {item.alias_or_name.lower(): begin for begin, item in zip(begins, select.expressions, strict=True)}
    return [begin_by_name.get(name.lower(), (stars or begins)[0]) for name in names]


def first_select(tree: exp.Expr) -> exp.Select | None:
    """The SELECT on the outside whose names count."""
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None
