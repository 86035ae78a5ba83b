"""Small changes of a module's syntax tree: another comparison, another connective, an entry of a set left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_NO_CODE = {"decorator_list", "returns", "annotation", "type_comment"}
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change.

    Attributes:
        path: of the module.
        line: of the change.
        function: that it is in, by its first line; 0: the module itself.
        shown: the change in words.
        source: of the whole module with it.
    """

    path: Path
    line: int
    function: int
    shown: str
    source: str


def mutants(path: Path) -> list[Mutant]:
    """All changes of a module that this knows, in the order of its lines."""
    text = path.read_text(encoding="utf-8")
    found = []
    for number in range(sum(1 for _ in _places(ast.parse(text)))):
        tree = ast.parse(text)
        node, change = next(place for at, place in enumerate(_places(tree)) if at == number)
        function = _function(tree, node)
        before = ast.unparse(node)
        change()
        shown = f"{before}  ->  {ast.unparse(node)}"
        found.append(Mutant(path, node.lineno, function, shown, ast.unparse(tree)))
    return sorted(found, key=lambda one: one.line)


def _function(tree: ast.Module, node: ast.expr) -> int:
    """The first line of the outermost function around a node, as profilers name it; decorators count."""
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef) and outer.lineno <= node.lineno <= (outer.end_lineno or 0):
            return min([outer.lineno, *(one.lineno for one in outer.decorator_list)])
    return 0


_Place = tuple[ast.expr, Callable[[], None]]


def _places(tree: ast.Module) -> Iterator[_Place]:
    for node in _code(tree):
        if isinstance(node, ast.Compare):
            yield from _compared(node)
        elif isinstance(node, ast.BoolOp):
            yield node, lambda node=node: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, lambda node=node: setattr(node, "op", ast.Invert()) or _unnegated(node)
        elif isinstance(node, ast.IfExp):
            yield node, lambda node=node: _swapped(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            yield node, lambda node=node: setattr(node.func, "id", _CALLS[node.func.id])
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
            yield node, lambda node=node: setattr(node, "op", _ARITHMETIC[type(node.op)]())
        elif isinstance(node, ast.Set) and len(node.elts) > 1:
            yield node, lambda node=node: node.elts.pop()
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, lambda node=node: setattr(node, "value", not node.value)


def _compared(node: ast.Compare) -> Iterator[_Place]:
    for at, operator in enumerate(node.ops):
        other = _COMPARISONS[type(operator)]
        yield node, lambda node=node, at=at, other=other: node.ops.__setitem__(at, other())


def _unnegated(node: ast.UnaryOp) -> None:
    """`not x` becomes `bool(x)`."""
    node.op = ast.Not()
    node.operand = ast.UnaryOp(ast.Not(), node.operand)
    ast.fix_missing_locations(node)


def _swapped(node: ast.IfExp) -> None:
    node.body, node.orelse = node.orelse, node.body


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple) for part in (node.left, node.right)
    )


def _code(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of what runs: no annotations, words of messages, or imports for the type checker.

    Nor what only guards against mistakes: whether a class is frozen, whether `zip` is strict.
    """
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        if isinstance(node, ast.JoinedStr | ast.arguments | ast.AnnAssign):
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                stack.append(node.value)
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name in _NO_CODE or (isinstance(node, ast.ClassDef) and name == "keywords"):
                continue
            parts = value if isinstance(value, list) else [value]
            stack += [part for part in reversed(parts) if isinstance(part, ast.AST)]
