"""The fixture pairs under fixtures/lowering: the specification of what a model's SQL becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import Pair, read_pairs
from tests.project.small_projects import ORDERS, compiled, lines, model

OTHERS: dict[str, str | bytes] = {
    "models/flights.sql": f"/*---\nstreams: [shop.orders]\n---*/\n{ORDERS}",
    "models/routes.sql": ORDERS,
    "models/renamed.sql": f"/*---\nalias: other\nschema: marts\n---*/\n{ORDERS}",
    "macros/quoted.sql": "{% macro quoted(name) %}`{{ name }}`{% endmacro %}",
}
CASES = read_pairs(Path(__file__).parent / "fixtures" / "lowering")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_sql_that_runs(case: Pair, tmp_path):
    manifest = compiled(tmp_path, {**OTHERS, **model(case.parts["header"], case.given, "case")}).manifest
    found = tuple(d for d in manifest.diagnostics if d.code not in {"window-unused", "watermark-unused"})
    assert lines(found) == []
    assert manifest.model("case").sql == case.expected


def test_there_are_cases():
    assert len(CASES) > 30
