"""Where failing rows of data tests are kept."""

from __future__ import annotations

from engine.compile.declarations.target import Target
from engine.relations import Relation

# The table property that marks such a table.
FAILING_ROWS = "engine.test"


def failing_rows(target: Target, test: str) -> Relation:
    return Relation(target.catalog.name, f"{target.schema}_test_failures", test)
