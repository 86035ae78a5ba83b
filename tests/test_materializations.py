"""A materialization says what it means (docs/design/024-layers-and-rooms.md): who asks for its word has to be found for each
new one. Ask the model: `stored`, `keeps_rows`, `streaming`, `computed_when_read`, `recomputed`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.compile import Materialized
from tests.test_layers import ROOT, modules

MOST = 10
# What is left reads a record of an earlier version (facts of a table, a manifest, an event), or writes a header.
LEFT = {
    "engine/api/plan_report/durations.py": 1,
    "engine_import/dbt/import_models.py": 1,
    "engine/plan/against_manifest.py": 1,
    "engine/plan/changed_query.py": 3,
    "engine/plan/history_edits.py": 1,
    "engine/runtime/lifecycle/replaced_materialization.py": 1,
    "engine/runtime/operations/drop_table.py": 1,
}


def is_named(node: ast.AST) -> bool:
    """Whether an expression is a materialization that is written down, or several."""
    if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        return any(is_named(item) for item in node.elts)
    if isinstance(node, ast.Attribute) and node.attr == "value":
        return is_named(node.value)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Materialized"


def is_materialization(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "value":
        return is_materialization(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "materialized"
    return isinstance(node, ast.Attribute) and node.attr == "materialized"


def questions(tree: ast.AST) -> Iterator[ast.AST]:
    """What compares a materialization with its word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            compared = any(map(is_materialization, sides)) and not all(map(is_materialization, sides))
            if compared or any(map(is_named, sides)):
                yield node
        elif isinstance(node, ast.Match) and is_materialization(node.subject):
            yield node


def asked_by(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return sum(1 for _ in questions(ast.parse(text))) if "aterialized" in text else 0


@pytest.mark.slow
def test_nobody_asks_a_model_for_the_word_of_its_materialization() -> None:
    found = {path.relative_to(ROOT.parent).as_posix(): asked_by(path) for path in modules()}
    assert {name: count for name, count in found.items() if count} == LEFT, (
        "ask what it means: engine/compile/nodes/materialization.py"
    )
    assert sum(LEFT.values()) <= MOST


@pytest.mark.parametrize(
    "text",
    [
        "model.materialized is Materialized.VIEW", "kind is not Materialized.TABLE", 'model.materialized == "view"',
        "model.materialized in {Materialized.VIEW, Materialized.EPHEMERAL}", "model.materialized in _STORED",
        'facts["materialized"] == Materialized.VIEW.value', 'facts["materialized"] == "view"', 'model.materialized.value == "view"',
    ],
)  # fmt: skip
def test_the_rule_sees_a_question_of_each_form(text: str) -> None:
    assert len(list(questions(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text", ["old['materialized'] != new.materialized", "model.computed_when_read", "{Materialized.VIEW: 1}"]
)
def test_the_rule_lets_others_pass(text: str) -> None:
    assert list(questions(ast.parse(text))) == []


def test_what_each_means() -> None:
    asked = ("in_catalog", "inlined", "keeps_rows", "streaming", "computed_when_read", "recomputed")
    found = {kind.value: {name for name in asked if getattr(kind.traits, name)} for kind in Materialized}
    assert found == {
        "streaming_table": {"in_catalog", "keeps_rows", "streaming"},
        "table": {"in_catalog", "keeps_rows", "recomputed"},
        "view": {"in_catalog", "computed_when_read"},
        "ephemeral": {"inlined"},
    }
