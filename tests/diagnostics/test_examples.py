"""The wrong examples of the explanations give their diagnostic, the right ones compile without it."""

from __future__ import annotations

import pytest

from engine.compile import compile_project
from engine.diagnostics.explanations import Example, Explanation, example_project, explanations
from engine.errors import Diagnostic, EngineError
from engine.project import load_project

pytestmark = pytest.mark.slow

WITH_EXAMPLES = [one for one in explanations().values() if one.wrong]


def diagnostics(root, examples: tuple[Example, ...]) -> tuple[Diagnostic, ...]:
    """What compiling the project of an example reports."""
    for example in (*example_project(), *examples):
        path = root / example.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.text, encoding="utf-8")
    try:
        return compile_project(load_project(root), env={}).manifest.diagnostics
    except EngineError as error:
        return error.diagnostics


@pytest.mark.parametrize("one", WITH_EXAMPLES, ids=lambda one: one.code)
def test_the_wrong_example_gives_the_diagnostic_and_the_right_one_does_not(one: Explanation, tmp_path) -> None:
    wrong = diagnostics(tmp_path / "wrong", one.wrong)
    assert {d.level.value for d in wrong if d.code == one.code} <= set(one.levels)
    assert one.code in {d.code for d in wrong}, [str(d) for d in wrong]
    assert {d.code for d in wrong if d.is_error} <= {one.code}, [str(d) for d in wrong]
    right = diagnostics(tmp_path / "right", one.right)
    assert [str(d) for d in right if d.is_error or d.code == one.code] == []
