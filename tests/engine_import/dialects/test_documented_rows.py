"""Results that the documentation of warehouses gives, beside Spark's of the translation."""

from __future__ import annotations

from typing import Any

import pytest

from engine_import.dialects.translate import translated
from tests.engine_import.dialects.translations import DOCUMENTED
from tests.lab import LabSession


@pytest.mark.nightly
@pytest.mark.spark
def test_translations_have_the_documented_results(lab_session: LabSession) -> None:
    spark: Any = lab_session.spark
    different = []
    for adapter, expression, expected in DOCUMENTED:
        new = translated(f"select {expression}", adapter).text
        try:
            found = str(spark.sql(new).collect()[0][0])
        except Exception as error:  # noqa: BLE001 - whatever Spark says is what differs
            found = str(error).splitlines()[0][:200]
        if found != expected:
            different.append((adapter, new, expected, found))
    assert different == []
