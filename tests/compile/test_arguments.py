"""How many arguments functions take, and which of them must be constants: what compile says, and Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.compile.sql.argument_counts import counts
from engine.compile.sql.parse import parse
from engine.errors import Diagnostic
from engine.jinja import Rendered
from tests.fixtures import read_rows
from tests.lab import LabSession
from tests.project.small_projects import findings, line

MISTAKES = Path(__file__).parent / "fixtures/mistakes.txt"
FIXTURE = (Path(__file__).parent / "fixtures" / "constants.txt").read_text(encoding="utf-8")
CONSTANTS = [line.split(" ", 1) for line in FIXTURE.splitlines() if line and not line.startswith("#")]
# Only the grammar gives them three arguments, of which the first is a unit; without OVER Spark does not count.
_OTHERWISE = {"dateadd", "date_add", "datediff", "date_diff", "ntile", "lag", "lead", "mode", "window"}


def codes(sql: str) -> list[str]:
    found: list[Diagnostic] = []
    parse(Rendered(sql, sql, "models/m.sql"), "m", found)
    return [diagnostic.code for diagnostic in found]


def calls(name: str) -> list[tuple[str, bool]]:
    return [
        (f"select {name}({', '.join(['null'] * number)}) as x", counts()[name].takes(number)) for number in range(10)
    ]


@pytest.mark.slow
def test_each_function_takes_as_many_arguments_as_spark_says() -> None:
    assert len(counts()) > 470
    for name in counts():
        for sql, right in calls(name) if name != "any" else ():  # which compares, too
            assert ("argument-count" in codes(sql)) != right, sql


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_counts_so(lab_session: LabSession) -> None:
    spark: Any = lab_session.spark
    different = []
    for name in [name for name in counts() if name not in _OTHERWISE][::4]:
        for sql, right in calls(name)[:5]:
            try:
                spark.sql(sql)
            except Exception as error:  # noqa: BLE001  of any kind, as null has no fitting type
                told = str(error)
                wrong = "WRONG_NUM_ARGS" in told or "REQUIRED_PARAMETER_NOT_FOUND" in told
            else:
                wrong = False
            different += [sql] if wrong == right else []
    assert different == []


@pytest.mark.slow
def test_a_column_where_a_constant_must_be_is_a_fault() -> None:
    told = {sql: "argument-constant" in codes(sql) for _, sql in CONSTANTS}
    assert [sql for said, sql in CONSTANTS if told[sql] != (said == "refused")] == []
    assert len(CONSTANTS) > 150


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_wants_constants_there(lab_session: LabSession) -> None:
    spark: Any = lab_session.spark
    different = []
    for said, sql in CONSTANTS:
        try:
            spark.sql(sql)
        except Exception:  # noqa: BLE001  it has a dozen kinds for it
            different += [] if said == "refused" else [sql]
        else:
            different += [sql] if said == "refused" else []
    assert different == []


@pytest.mark.parametrize(("sql", "finding", "hint"), read_rows(MISTAKES, "arguments", 3))
def test_the_place_and_the_signature(sql: str, finding: str, hint: str, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, {"models/m.sql": sql + " from {{ source('shop', 'orders') }}"})
    assert line(found).replace("models/m.sql:", "") == finding
    assert hint in (found.hint or "")


@pytest.mark.parametrize("sql", [sql for (sql,) in read_rows(MISTAKES, "right_calls", 1)])
def test_what_is_no_call_or_a_right_one(sql: str, tmp_path: Path) -> None:
    text = sql.replace("{o}", "{{ source('shop', 'orders') }}")
    assert [line(d) for d in findings(tmp_path, {"models/m.sql": text}) if d.is_error] == []
