"""The fixture pairs under fixtures/headers: a model's header, and every finding that it gives.

The header begins in line 2 of the model, below `/*---`; `-- sql` is the query below it, `-- schema` the columns of
the source that it reads. A finding is `level code line:column message`, and its hint in the line below.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import Diagnostic
from tests.fixtures import Pair, read_pairs
from tests.project.small_projects import COLUMNS, ORDERS, findings, model, orders_with

CASES = read_pairs(Path(__file__).parent / "fixtures" / "headers", "*.txt")


def shown(diagnostic: Diagnostic) -> str:
    place = str(diagnostic.location).removeprefix("models/a.sql:")
    hint = f"\n  {diagnostic.hint}" if diagnostic.hint else ""
    return f"{diagnostic.level.value} {diagnostic.code} {place} {diagnostic.message}{hint}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_wrong_with_a_header(case: Pair, tmp_path: Path) -> None:
    source = orders_with(case.parts.get("schema", COLUMNS))
    files = {**source, **model(case.given, case.parts.get("sql", ORDERS))}
    assert "\n".join(shown(found) for found in findings(tmp_path, files)) == case.expected


def test_there_are_cases() -> None:
    assert len(CASES) > 250
