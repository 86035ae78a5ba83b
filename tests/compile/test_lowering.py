"""The fixture pairs under fixtures/lowering: the specification of what a model's SQL becomes."""

from __future__ import annotations

import pytest

from tests.compile.cases import Case, read_cases
from tests.project.small_projects import ORDERS, compiled, lines

OTHERS: dict[str, str | bytes] = {
    "models/flights.sql": f"/*---\nstreams: [shop.orders]\n---*/\n{ORDERS}",
    "models/routes.sql": ORDERS,
    "models/renamed.sql": f"/*---\nalias: other\nschema: marts\n---*/\n{ORDERS}",
    "macros/quoted.sql": "{% macro quoted(name) %}`{{ name }}`{% endmacro %}",
}
CASES = read_cases("lowering")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_sql_that_runs(case: Case, tmp_path):
    model = f"/*---\n{case.header}\n---*/\n{case.given}\n"
    manifest = compiled(tmp_path, {**OTHERS, "models/case.sql": model}).manifest
    found = tuple(d for d in manifest.diagnostics if d.code not in {"window-unused", "watermark-unused"})
    assert lines(found) == []
    assert manifest.model("case").sql == case.expected


def test_there_are_cases():
    assert len(CASES) > 30
