"""The nodes of a parsed query by their class, from one walk: no question about a query walks its whole tree again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from sqlglot import exp

# For who only hands nodes on; questions about what they are, are asked in this folder and where queries are bound.
TreeNode: TypeAlias = exp.Expr
_Node = TypeVar("_Node", bound=exp.Expr)
_LASTING: tuple[type[exp.Expr], ...] = (
    exp.Query, exp.Join, exp.Table, exp.CTE, exp.AggFunc, exp.Anonymous, exp.Where, exp.Pivot, exp.Star,
    exp.Window, exp.Explode, exp.Inline, exp.Stack, exp.Rand, exp.Randn, exp.Randstr, exp.Shuffle, exp.Uniform,
    exp.Uuid,
)  # fmt: skip
_SEVERAL = 2
# What only a relation can have behind it: brackets around that hold relations, and not a query.
_OF_RELATIONS = ("alias", "joins", "pivots", "sample", "laterals")


def holds_relations(node: exp.Subquery) -> bool:
    """Return whether brackets in FROM hold relations (Spark's AliasedRelation), and not a query (AliasedQuery)."""
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return any(inner.args.get(key) for key in _OF_RELATIONS) or holds_relations(inner)
    return not isinstance(inner, exp.Query)


def is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def computes(select: exp.Expr) -> bool:
    """Whether a SELECT does more than choose and name columns."""
    items = select.expressions if isinstance(select, exp.Select) else ()
    return any(not isinstance(item.unalias(), (exp.Column, exp.Star)) for item in items)


def is_one_row(limit: exp.Expr) -> bool:
    """Whether it is LIMIT 1, or a sample of one row."""
    number = limit.args.get("expression") or limit.args.get("size")
    return isinstance(number, exp.Literal) and number.this == "1"


def column_names(node: exp.Expr) -> Iterator[str]:
    """The names, in lower case, of the columns in a part of a query, without what is before a dot."""
    return (column.name.lower() for column in node.find_all(exp.Column))


def relations(select: exp.Expr) -> Iterator[exp.Expr]:
    """What FROM and the joins of a SELECT read."""
    start = select.args.get("from_")
    if start is not None:
        yield start.this
    for around in (start.this if start is not None else None, select):
        yield from (join.this for join in (around.args.get("joins") if around is not None else None) or ())


class QueryNodes:
    """The nodes of a tree by their class; those of one class are in the order of a walk through it."""

    __slots__ = ("_below", "_kinds", "_nodes")

    def __init__(self, nodes: dict[type[exp.Expr], list[exp.Expr]]) -> None:
        self._nodes = nodes
        self._below: dict[int, list[str]] | None = None
        # The classes of the nodes, by each that they are derived from: sqlglot's have a class of their own, with which
        # issubclass() takes long.
        self._kinds: dict[type, list[type[exp.Expr]]] = {}
        for kind in nodes:
            for base in kind.__mro__:
                self._kinds.setdefault(base, []).append(kind)

    @classmethod
    def of_tree(cls, tree: exp.Expr) -> QueryNodes:
        nodes: dict[type[exp.Expr], list[exp.Expr]] = {}
        for node in tree.walk():
            nodes_of_class = nodes.get(type(node))
            if nodes_of_class is None:
                nodes[type(node)] = [node]
            else:
                nodes_of_class.append(node)
        return cls(nodes)

    def lasting(self) -> QueryNodes:
        """Only what later passes ask for: queries, relations, joins, calls that some clauses cannot contain."""
        kinds = self._derived(_LASTING)
        return QueryNodes({kind: nodes for kind, nodes in self._nodes.items() if kind in kinds})

    def every(self, *kinds: type[_Node]) -> list[_Node]:
        """The nodes of some classes and of those derived from them."""
        classes = self._derived(kinds)
        if len(classes) < _SEVERAL:
            return [*self._nodes[classes.pop()]] if classes else []  # type: ignore[list-item]
        return [node for kind, nodes in self._nodes.items() if kind in classes for node in nodes]  # type: ignore[misc]

    def _derived(self, kinds: Iterable[type]) -> set[type[exp.Expr]]:
        """The classes of nodes that are some classes, or derived from them."""
        return {kind for base in kinds for kind in self._kinds.get(base, ())}

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
