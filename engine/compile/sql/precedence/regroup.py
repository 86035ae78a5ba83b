"""Putting chains of operators together again in Spark's way: precedence climbing over the levels of its grammar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError

from engine.compile.sql.precedence.mixed_operators import (
    CHAINED,
    COMPARISON,
    LEVELS,
    PREDICATES,
    PREFIXES,
    TESTS,
    UNARY,
    WRITTEN,
    is_atom,
    is_written,
    number_below,
    operand_keys,
)

_NEEDS_BRACKETS = "Brackets are needed around NOT, IS, IN, LIKE or BETWEEN next to another operator"
_SHIFT = "shiftrightunsigned"


@dataclass(frozen=True, slots=True)
class _Operator:
    """A node of the chain without its operands; a negated predicate was written with NOT."""

    node: exp.Expr
    negated: bool = False

    def level(self) -> int:
        """Of an operator between two values; 0: a predicate."""
        if isinstance(self.node, exp.NullSafeEQ) and not is_written(self.node):
            return 0
        return LEVELS.get(type(self.node), 0)

    def with_operands(self, **operands: exp.Expr) -> exp.Expr:
        if isinstance(self.node, exp.Distance):
            return exp.Anonymous(this=_SHIFT, expressions=list(operands.values()))
        other_arguments = {key: value for key, value in self.node.args.items() if key not in operand_keys(self.node)}
        combined = type(self.node)(**operands, **other_arguments)
        return exp.Not(this=combined) if self.negated else combined


class _Separator:
    """The AND of a BETWEEN."""


_Item = exp.Expr | _Operator | _Separator


def regroup_operators(tree: exp.Expr) -> exp.Expr:
    """The tree with every chain of operators grouped as Spark does, without the marks."""
    for root in [node for node in tree.walk() if _is_root(node)]:
        grouped = _Chain(_items(root)).predicated()
        if root is tree:
            tree = grouped
        else:
            root.replace(grouped)
    for node in tree.walk():
        if node.comments and WRITTEN in node.comments:
            node.comments = [comment for comment in node.comments if comment != WRITTEN]
    return tree


def _is_root(node: exp.Expr) -> bool:
    """Whether a chain begins here: an operator that no other one has as an operand."""
    if is_atom(node):
        return False
    inner, parent = node, node.parent
    while parent is not None and (_is_added(parent) or isinstance(parent, exp.Not)):
        inner, parent = parent, parent.parent
    return parent is None or is_atom(parent) or inner.arg_key not in operand_keys(parent)


def _is_added(node: exp.Expr) -> bool:
    """Whether sqlglot added these brackets."""
    return isinstance(node, exp.Paren) and not is_written(node) and "start" not in node.meta


def _items(node: exp.Expr, negated: bool = False) -> Iterator[_Item]:
    """Operands and operators in the order of the text."""
    while _is_added(node):
        node = node.this
    if isinstance(node, exp.Not) and isinstance(node.this, PREDICATES) and not is_atom(node.this):
        yield from _items(node.this, negated=True)
    elif isinstance(node, exp.Not) or (isinstance(node, exp.Is) and isinstance(node.expression, CHAINED)):
        raise _needs_brackets([node])
    elif is_atom(node):
        yield node
    elif isinstance(node, PREFIXES):
        number = number_below(node.this) if isinstance(node, exp.Neg) else None
        if number is not None:
            yield _with_sign(node, number)
        else:
            yield _Operator(node)
            yield from _items(node.this)
    elif isinstance(node, exp.Collate):
        yield from _items(node.this)
        name, *other_items = _items(node.expression)
        yield _Operator(exp.Collate(expression=name))
        yield from other_items
    else:
        yield from _items(node.this)
        yield _Operator(node, negated)
        for key in operand_keys(node)[1:]:
            if key == "high":
                yield _Separator()
            yield from _items(node.args[key])


def _with_sign(minus: exp.Expr, number: exp.Literal) -> exp.Expr:
    """A number with its sign, below the casts and places behind it: `-1::int` is a cast of -1 (rule `number`)."""
    if number is minus.this:
        return minus
    value, operand = number.copy(), minus.this
    number.replace(exp.Neg(this=value))
    result: exp.Expr = operand
    return result


class _Chain:
    """Groups the items of a chain: precedence climbing over the levels of Spark's grammar."""

    def __init__(self, items: Iterator[_Item]) -> None:
        self._items = list(items)
        self._at = 0

    def predicated(self) -> exp.Expr:
        """Return a value and at most one predicate; raise ParseError if an operator follows without brackets."""
        result = self._value(COMPARISON)
        operator = self._next()
        if isinstance(operator, _Operator):
            self._at += 1
            result = self._predicate(operator, result)
        if self._at < len(self._items):
            raise _needs_brackets(self._items[self._at :])
        return result

    def _predicate(self, operator: _Operator, left_operand: exp.Expr) -> exp.Expr:
        if isinstance(operator.node, exp.Between):
            low = self._value(COMPARISON)
            self._at += 1
            return operator.with_operands(this=left_operand, low=low, high=self._value(COMPARISON))
        if isinstance(operator.node, TESTS):
            return operator.with_operands(this=left_operand)
        result = operator.with_operands(this=left_operand, expression=self._value(COMPARISON))
        escape = self._next()
        if isinstance(escape, _Operator) and isinstance(escape.node, exp.Escape):
            self._at += 1
            return escape.with_operands(this=result)
        return result

    def _value(self, least: int) -> exp.Expr:
        left_operand = self._operand()
        while isinstance(operator := self._next(), _Operator) and operator.level() >= least:
            self._at += 1
            left_operand = operator.with_operands(this=left_operand, expression=self._value(operator.level() + 1))
        return left_operand

    def _operand(self) -> exp.Expr:
        item = self._next()
        self._at += 1
        if isinstance(item, _Operator) and isinstance(item.node, PREFIXES):
            return item.with_operands(this=self._value(UNARY))
        if not isinstance(item, exp.Expr):
            raise _needs_brackets(self._items[self._at - 1 :])
        while isinstance(collate := self._next(), _Operator) and isinstance(collate.node, exp.Collate):
            self._at += 1
            item = collate.with_operands(this=item)
        return item

    def _next(self) -> _Item | None:
        return self._items[self._at] if self._at < len(self._items) else None


def _needs_brackets(rest: list[_Item]) -> ParseError:
    nodes = [item.node if isinstance(item, _Operator) else item for item in rest if not isinstance(item, _Separator)]
    places = [place.meta for node in nodes for place in node.walk() if "line" in place.meta]
    place = places[0] if places else {}
    return ParseError.new(
        _NEEDS_BRACKETS,
        description=_NEEDS_BRACKETS,
        line=place.get("line"),
        col=place.get("col"),
    )
