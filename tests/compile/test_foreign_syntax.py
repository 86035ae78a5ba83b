"""SQL as other databases write it: what compile says, and what Spark says of the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compile.foreign_queries import ACCEPTED, REFUSED
from tests.compile.test_batch_queries import files, model, relations
from tests.lab import LabSession
from tests.project.small_projects import compiled, line

pytestmark = pytest.mark.slow


def test_what_spark_accepts_has_no_fault(tmp_path: Path) -> None:
    of_tables = {"duplicate-name", "column-storage"}
    found = [d for d in compiled(tmp_path, files(ACCEPTED)).manifest.errors if d.code not in of_tables]
    assert [f"{line(d)}: {ACCEPTED[int((d.node or 'm0')[1:])]}" for d in found] == []
    assert len(ACCEPTED) > 200


def test_what_spark_refuses_is_a_fault_at_its_place(tmp_path: Path) -> None:
    queries = [marked.replace("»", "") for _, marked in REFUSED]
    first: dict[str, str] = {}
    for found in compiled(tmp_path, files(queries)).manifest.errors:
        assert found.hint, found
        first.setdefault(str(found.location).partition(":")[0], f"{found.code} {found.location}")
    expected = {
        (file := f"models/m{number}.sql"): f"{code} {file}:1:{model(marked).index('»') + 1}"
        for number, (code, marked) in enumerate(REFUSED)
    }
    assert first == expected
    assert len(REFUSED) > 180


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_says_so(lab_session: LabSession) -> None:
    spark: Any = lab_session.spark
    different = []
    with relations(spark):
        for sql, refused in [(q, False) for q in ACCEPTED] + [(q.replace("»", ""), True) for _, q in REFUSED]:
            try:
                spark.sql(sql)
            except Exception:  # noqa: BLE001  two of them end as errors of Java
                different += [] if refused else [sql]
            else:
                different += [sql] if refused else []
    assert different == []
