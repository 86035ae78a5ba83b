"""How an expression is grouped, as nested tuples that Spark's tree and sqlglot's give alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from sqlglot import exp

BINARY = (
    "or", "and", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "!>", "!<", "|", "^", "&", "<<", ">>", ">>>", "+",
    "-", "||", "*", "/", "%", "div", "like", "ilike", "rlike", "regexp", "not like", "not ilike", "not rlike",
    "is distinct from", "is not distinct from",
)  # fmt: skip
BEHIND = (
    "is null", "is not null", "is true", "is not false", "is unknown", "in (c, d)", "not in (c, d)", "between c and d",
    "not between c and d", "like c escape '!'", "::int", "collate utf8_lcase",
)  # fmt: skip
BEFORE = ("not", "-", "~", "!", "+")
_NAMES = {
    exp.Or: "Or", exp.And: "And", exp.EQ: "EqualTo", exp.LT: "LessThan", exp.LTE: "LessThanOrEqual",
    exp.GT: "GreaterThan", exp.GTE: "GreaterThanOrEqual", exp.NullSafeEQ: "EqualNullSafe", exp.Add: "Add",
    exp.Sub: "Subtract", exp.DPipe: "Concat", exp.Mul: "Multiply", exp.Div: "Divide", exp.Mod: "Remainder",
    exp.IntDiv: "IntegralDivide", exp.BitwiseAnd: "BitwiseAnd", exp.BitwiseOr: "BitwiseOr",
    exp.BitwiseXor: "BitwiseXor", exp.BitwiseLeftShift: "ShiftLeft", exp.BitwiseRightShift: "ShiftRight",
    exp.Like: "Like", exp.ILike: "ILike", exp.RegexpLike: "RLike", exp.Not: "Not", exp.Neg: "UnaryMinus",
    exp.BitwiseNot: "BitwiseNot", exp.TryCast: "Cast", exp.Cast: "Cast", exp.Collate: "Collate",
}  # fmt: skip


def texts() -> list[str]:
    """Every two operators side by side, and every two with the first in brackets."""
    pairs = [f"a {one} b {other} c" for one, other in product(BINARY, repeat=2)]
    pairs += [f"a {one} b {behind}" for one, behind in product(BINARY, BEHIND)]
    pairs += [f"a {behind} {one} e" for one, behind in product(BINARY, BEHIND)]
    pairs += [f"{before} a {one} b" for before, one in product(BEFORE, BINARY)]
    pairs += [f"{before} a {behind}" for before, behind in product(BEFORE, BEHIND)]
    pairs += [f"(a {one} b) {other} c" for one, other in product(BINARY, repeat=2)]
    return pairs


def of_spark(tree: str) -> Any:
    """The groups of Spark's tree, given as the JSON of `TreeNode.toJSON`."""
    return _read(iter(json.loads(tree)))


def _read(nodes: Iterator[dict[str, Any]]) -> Any:
    node = next(nodes)
    name = node["class"].rsplit(".", 1)[-1].split("$")[0]
    below = [_read(nodes) for _ in range(node["num-children"])]
    made = _OF_SPARK.get(name)
    return made(node, below) if made else (name, *below)


_OF_SPARK: dict[str, Callable[[dict[str, Any], list[Any]], Any]] = {
    "UnresolvedAttribute": lambda node, _: node["nameParts"].strip("[]"),
    "Literal": lambda node, _: str(node["value"]).lower(),
    "UnresolvedFunction": lambda node, below: (node["nameParts"].strip("[]"), *below),
    "IsNotNull": lambda _, below: ("Not", ("IsNull", *below)),
    "IsUnknown": lambda _, below: ("IsNull", *below),
    # It changes nothing but the type of a string, and sqlglot leaves it out.
    "UnaryPositive": lambda _, below: below[0],
    "Collate": lambda _, below: ("Collate", below[0]),
}


def of_tree(node: exp.Expr) -> Any:
    """The groups of sqlglot's tree."""
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    operands = (
        [node.this]
        if isinstance(node, exp.Unary | exp.Cast | exp.TryCast | exp.Collate)
        else [node.this, node.expression]
    )
    result = (_NAMES[type(node)], *map(of_tree, operands))
    return ("Not", result) if node.args.get("negate") else result


_SPECIAL: dict[type[exp.Expr], Callable[[exp.Expr], Any]] = {
    exp.Paren: lambda n: of_tree(n.this),
    exp.Column: lambda n: n.name,
    exp.Literal: lambda n: n.name,
    exp.Boolean: lambda n: str(n.this).lower(),
    exp.NEQ: lambda n: ("Not", ("EqualTo", of_tree(n.this), of_tree(n.expression))),
    exp.NullSafeNEQ: lambda n: ("Not", ("EqualNullSafe", of_tree(n.this), of_tree(n.expression))),
    exp.Is: lambda n: (
        ("IsNull", of_tree(n.this))
        if isinstance(n.expression, exp.Null)
        else ("EqualNullSafe", of_tree(n.this), of_tree(n.expression))
    ),
    exp.In: lambda n: ("In", of_tree(n.this), *map(of_tree, n.expressions)),
    exp.Between: lambda n: ("between", of_tree(n.this), of_tree(n.args["low"]), of_tree(n.args["high"])),
    exp.Escape: lambda n: of_tree(n.this),
    exp.Anonymous: lambda n: ("ShiftRightUnsigned", *map(of_tree, n.expressions)),
}
