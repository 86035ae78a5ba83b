"""The nodes of a parsed query by their class, from one walk: no question about a query walks its whole tree again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sqlglot import exp

_Node = TypeVar("_Node", bound=exp.Expr)
_LASTING: tuple[type[exp.Expr], ...] = (
    exp.Query, exp.Join, exp.Table, exp.CTE, exp.AggFunc, exp.Anonymous, exp.Where, exp.Pivot, exp.Star,
    exp.Window, exp.Explode, exp.Inline, exp.Stack, exp.Rand, exp.Randn, exp.Randstr, exp.Shuffle, exp.Uniform,
    exp.Uuid,
)  # fmt: skip
# What only a relation can have behind it: brackets around that hold relations, and not a query.
_OF_RELATIONS = ("alias", "joins", "pivots", "sample", "laterals")


def holds_relations(node: exp.Subquery) -> bool:
    """Whether brackets in FROM hold relations, and not a query: Spark's AliasedRelation, where it has AliasedQuery.

    `((select ..) a join b)` begins as `((select ..))` does, which is a query in brackets twice.
    """
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return any(inner.args.get(key) for key in _OF_RELATIONS) or holds_relations(inner)
    return not isinstance(inner, exp.Query)


def relations(select: exp.Expr) -> Iterator[exp.Expr]:
    """What FROM and the joins of a SELECT read."""
    start = select.args.get("from_")
    if start is not None:
        yield start.this
    for around in (start.this if start is not None else None, select):
        yield from (join.this for join in (around.args.get("joins") if around is not None else None) or ())


class QueryNodes:
    """The nodes of a tree; those of one class are in the order of a walk through it.

    Args:
        nodes: by their class.
    """

    __slots__ = ("_below", "_nodes")

    def __init__(self, nodes: dict[type[exp.Expr], list[exp.Expr]]) -> None:
        self._nodes = nodes
        self._below: dict[int, list[str]] | None = None

    @classmethod
    def of(cls, tree: exp.Expr) -> QueryNodes:
        """All nodes of a tree."""
        nodes: dict[type[exp.Expr], list[exp.Expr]] = {}
        for node in tree.walk():
            known = nodes.get(type(node))
            if known is None:
                nodes[type(node)] = [node]
            else:
                known.append(node)
        return cls(nodes)

    def lasting(self) -> QueryNodes:
        """Only what later passes ask for: queries, relations, joins, calls that some clauses cannot contain."""
        return QueryNodes({kind: nodes for kind, nodes in self._nodes.items() if issubclass(kind, _LASTING)})

    def every(self, *kinds: type[_Node]) -> list[_Node]:
        """The nodes of some classes and of those derived from them."""
        return [node for kind, nodes in self._nodes.items() if issubclass(kind, kinds) for node in nodes]  # type: ignore[misc]

    def read_below(self, node: exp.Expr) -> list[str]:
        """The names, in lower case, of the relations that are read in a part of the tree."""
        if self._below is None:
            self._below = _below(self.every(exp.Table))
        return self._below.get(id(node), [])


def _below(tables: list[exp.Table]) -> dict[int, list[str]]:
    """The names of tables by every node that they are in, by its identity."""
    children: dict[int, list[str]] = {}
    for table in tables:
        name = table.name.lower()
        node: exp.Expr | None = table
        while node is not None:
            children.setdefault(id(node), []).append(name)
            node = node.parent
    return children
