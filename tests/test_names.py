"""Names say what they hold, and functions stay short: counts that may only fall."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ENGINE = Path(__file__).parent.parent / "engine"
# A participle or a pronoun alone: found what, known to whom, left of what?
_BARE = frozenset(
    [
        "answer",
        "asked",
        "begun",
        "both",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "got",
        "heard",
        "held",
        "here",
        "kept",
        "killed",
        "known",
        "left",
        "look",
        "lost",
        "made",
        "meant",
        "named",
        "of",
        "others",
        "pending",
        "plain",
        "previous",
        "put",
        "recorded",
        "said",
        "seen",
        "sent",
        "shown",
        "stored",
        "taken",
        "tried",
        "used",
        "told",
        "them",
        "there",
        "these",
        "they",
        "those",
        "wanted",
        "what",
        "which",
        "whose",
    ]
)
MOST_BARE_NAMES = 187
MOST_DOCSTRINGS = 0.0885
MOST_BRANCHES, MOST_LINES = 25, 80
_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case, ast.comprehension, ast.Assert)

pytestmark = pytest.mark.slow


@cache
def _modules() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(ENGINE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ENGINE.rglob("*.py"))
    }


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return None


def _branches(function: ast.FunctionDef) -> int:
    nodes = [*ast.walk(function)]
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    conditions = sum(len(node.ifs) for node in nodes if isinstance(node, ast.comprehension))
    return sum(isinstance(node, _BRANCHES) for node in nodes) + operands + conditions


def _functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]


def test_names_say_what_they_hold() -> None:
    names = (_name(node) for module in _modules().values() for node in ast.walk(module))
    bare = Counter(name.strip("_") for name in names if name is not None and name.strip("_") in _BARE)
    assert bare.total() <= MOST_BARE_NAMES, bare.most_common(10)


def test_functions_are_short_and_have_few_branches() -> None:
    large = {
        f"{path} {function.name}"
        for path, module in _modules().items()
        for function in _functions(module)
        if _branches(function) > MOST_BRANCHES or (function.end_lineno or 0) - function.lineno >= MOST_LINES
    }
    assert large == set()


def test_docstrings_are_a_small_part_of_the_lines() -> None:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    lines = docstrings = 0
    for path, module in _modules().items():
        lines += (ENGINE / path).read_text(encoding="utf-8").count("\n")
        for node in ast.walk(module):
            if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
                docstrings += (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    assert docstrings / lines <= MOST_DOCSTRINGS
