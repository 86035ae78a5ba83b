"""`engine import dbt` of projects for other warehouses: texts, notes at their lines, what compiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine_import.dbt.import_dbt import import_dbt
from engine_import.output.import_report import ImportOutcome, ImportReport, Item
from tests.engine_import.imported import model, written

pytestmark = pytest.mark.slow

ORDERS = "select 1 as id, 7 as amount, 'a,b' as tags, timestamp '2024-01-31 10:00:00' as ordered_at"
SOLD = """{{ config(materialized='table') }}

with o as (
    select * from {{ ref('orders') }}
),
ranked as (
    select id,
        SAFE_CAST(amount as INTEGER) as amount, # as it was
        json_value(tags, '$.a') as first_tag,
        {{ day('ordered_at') }} as day,
    from o
    where true
    qualify row_number() over (partition by id order by ordered_at desc) = 1
)
select * from ranked
"""
MACROS = {
    "day": "{% macro day(x) %}{{ adapter.dispatch('day')(x) }}{% endmacro %}",
    "bigquery__day": "{% macro bigquery__day(x) %}date_trunc({{ x }}, week){% endmacro %}",
    "default__day": "{% macro default__day(x) %}date_trunc({{ x }}, 'never'){% endmacro %}",
    "snowflake__day": "{% macro snowflake__day(x) %}datediff(month, {{ x }}, {{ x }}){% endmacro %}",
}


def imported(folder: Path, adapter: str) -> ImportReport:
    sold = model("sold", SOLD)
    sold["depends_on"] = {"nodes": ["model.shop.orders"], "macros": []}
    macros: dict[str, Any] = {
        f"macro.shop.{name}": {"name": name, "package_name": "shop", "path": "macros/days.sql", "macro_sql": code}
        for name, code in MACROS.items()
    }
    target = written(folder, model("orders", ORDERS), sold, macros=macros)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["metadata"]["adapter_type"] = adapter
    (target / "manifest.json").write_text(json.dumps(manifest))
    return import_dbt(target, folder / "new")


def named(report: ImportReport, name: str) -> Item:
    (item,) = (item for item in report.items if item.name == name)
    return item


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ImportReport]:
    folder = tmp_path_factory.mktemp("dialects")
    return folder / "new", imported(folder, "bigquery")


def test_a_model_of_bigquery_compiles(project: tuple[Path, ImportReport]) -> None:
    root, report = project
    assert named(report, "sold").outcome is ImportOutcome.COMPILES, report.lines()
    text = (root / "models/sold.sql").read_text()
    assert "        TRY_CAST(amount as BIGINT) as amount, -- as it was\n" in text
    assert ") where qualify_\n)" in text
    assert any(note.startswith("the SQL was translated from the dialect of bigquery") for note in report.notes)


def test_a_note_has_the_line_of_the_new_file(project: tuple[Path, ImportReport]) -> None:
    root, report = project
    (note,) = (note for note in named(report, "sold").notes if "json_value" in note)
    line = next(
        number
        for number, text in enumerate((root / "models/sold.sql").read_text().splitlines(), 1)
        if "get_json_object" in text
    )
    assert note.startswith(f"line {line}: json_value(): ")
    assert line > 8


def test_macros_are_translated_from_the_warehouse_that_they_name(project: tuple[Path, ImportReport]) -> None:
    text = (project[0] / "macros/days.sql").read_text()
    assert "{{ bigquery__day(x) }}" in text
    assert "date_sub({{ x }}, dayofweek({{ x }}) - 1)" in text
    assert "timestampdiff(MONTH, date_trunc('MONTH', {{ x }}), date_trunc('MONTH', {{ x }}))" in text


def test_without_a_known_adapter_the_text_stays(tmp_path: Path) -> None:
    report = imported(tmp_path, "databricks")
    assert named(report, "sold").outcome is ImportOutcome.FAILS
    assert "SAFE_CAST(amount as INTEGER)" in (tmp_path / "new/models/sold.sql").read_text()
