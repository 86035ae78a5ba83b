"""Two versions of a Python file, compared without their names, docstrings and comments.

Names may differ if the renaming is one to one: within a function or class for its parameters and variables, within
the file for functions, classes, attributes, keyword arguments and modules. Strings are compared as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import zip_longest

# Fields of the syntax tree that hold a name.
_LOCAL = {(ast.Name, "id"), (ast.arg, "arg"), (ast.ExceptHandler, "name"), (ast.MatchAs, "name"),
          (ast.MatchStar, "name"), (ast.MatchMapping, "rest")}  # fmt: skip
_GLOBAL = {(ast.FunctionDef, "name"), (ast.AsyncFunctionDef, "name"), (ast.ClassDef, "name"), (ast.Attribute, "attr"),
           (ast.keyword, "arg"), (ast.alias, "name"), (ast.alias, "asname"), (ast.ImportFrom, "module")}  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class DifferenceError(Exception):
    """Something other than a name differs; the text begins with the line in the new version."""


class _Names:
    """The renamings of a scope."""

    def __init__(self) -> None:
        self.new_by_old: dict[str, str] = {}
        self.old_by_new: dict[str, str] = {}

    def pair(self, old: str, new: str, line: int) -> None:
        if self.new_by_old.setdefault(old, new) != new:
            raise DifferenceError(f"{line}: {old} is {self.new_by_old[old]} elsewhere, and {new} here")
        if self.old_by_new.setdefault(new, old) != old:
            raise DifferenceError(f"{line}: {new} stands for {self.old_by_new[new]} and for {old}")


def compare(old: str, new: str) -> set[tuple[str, str]]:
    """Return the renamed names of a file, before and after.

    Raises:
        DifferenceError: the versions differ in more than names, docstrings and comments.
    """
    renamed: set[tuple[str, str]] = set()
    _compare(ast.parse(old), ast.parse(new), _Names(), _Names(), renamed)
    return renamed


def _compare(old: ast.AST, new: ast.AST, local: _Names, shared: _Names, renamed: set[tuple[str, str]]) -> None:
    line = getattr(new, "lineno", 1)
    if type(old) is not type(new):
        raise DifferenceError(f"{line}: {type(old).__name__} became {type(new).__name__}")
    inner = _Names() if isinstance(old, _SCOPES) else local
    for field in old._fields:
        before, after = getattr(old, field, None), getattr(new, field, None)
        if isinstance(before, str) and isinstance(after, str) and (type(old), field) in _LOCAL | _GLOBAL:
            (inner if (type(old), field) in _LOCAL else shared).pair(before, after, line)
            if before != after:
                renamed.add((before, after))
        elif isinstance(before, list) and isinstance(after, list):
            _compare_lists(_body(old, field, before), _body(new, field, after), line, inner, shared, renamed)
        elif isinstance(before, ast.AST) and isinstance(after, ast.AST):
            _compare(before, after, inner, shared, renamed)
        elif before != after:
            raise DifferenceError(f"{line}: {before!r} became {after!r}")


def _compare_lists(
    old: list[object], new: list[object], line: int, local: _Names, shared: _Names, renamed: set[tuple[str, str]]
) -> None:
    for before, after in zip_longest(old, new):
        if isinstance(before, ast.AST) and isinstance(after, ast.AST):
            _compare(before, after, local, shared, renamed)
        elif isinstance(before, str) and isinstance(after, str):
            # Names of `global` and `nonlocal`.
            local.pair(before, after, line)
        elif before is not after and before != after:
            place = getattr(after or before, "lineno", line)
            raise DifferenceError(f"{place}: {'added' if before is None else 'removed'}")


def _body(node: ast.AST, field: str, items: list[object]) -> list[object]:
    """The statements of a body without its docstring."""
    if field == "body" and isinstance(node, _DOCUMENTED):
        return list(_without_docstring(items))
    return items


def _without_docstring(items: list[object]) -> Iterator[object]:
    for index, item in enumerate(items):
        text = isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
        if index or not text:
            yield item
