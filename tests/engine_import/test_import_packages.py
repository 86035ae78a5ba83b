"""`engine import dbt`: tests and macros of packages, types of seeds, hooks of runs and values of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.compile import compile_project
from engine.project import load_project
from engine_import.dbt.import_dbt import import_dbt
from engine_import.output.import_report import ImportOutcome, ImportReport, Item
from tests.engine_import.imported import model, written
from tests.engine_import.test_import_dbt import header, item, seed


def generic(name: str, package: str, column: str | None = None, **arguments: Any) -> dict[str, Any]:
    """A generic test of the model `orders` as a manifest has it; `config` are its settings."""
    config = arguments.pop("config", {})
    kwargs = {
        "model": "{{ get_where_subquery(ref('orders')) }}",
        **arguments,
        **({"column_name": column} if column else {}),
    }
    return {
        "resource_type": "test", "name": f"{package}_{name}_{column}", "package_name": "shop", "path": "t.sql", "raw_code": "",
        "original_file_path": "models/t.yml", "column_name": column, "attached_node": "model.shop.orders", "config": config,
        "test_metadata": {"name": name, "namespace": package, "kwargs": kwargs},
        "depends_on": {"nodes": ["model.shop.orders"], "macros": []},
    }  # fmt: skip


def imported(folder: Path, *nodes: dict[str, Any], adapter: str = "spark") -> tuple[Path, ImportReport]:
    orders = model("orders", "select 1 as id, 'a' as name")
    target = written(folder, orders, *nodes)
    manifest = target / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"adapter_type": "spark"', f'"adapter_type": "{adapter}"'))
    return folder / "new", import_dbt(target, folder / "new")


@pytest.mark.slow
def test_tests_of_dbt_expectations_are_at_their_columns_and_compile(tmp_path: Path) -> None:
    root, _ = imported(
        tmp_path,
        generic("expect_table_row_count_to_be_between", "dbt_expectations", min_value=1),
        generic("expect_column_values_to_be_in_set", "dbt_expectations", "name", value_set=["a", "b"]),
        generic("expect_column_pair_values_A_to_be_greater_than_B", "dbt_expectations", column_A="id", column_B="id"),
        generic("equal_rowcount", "dbt_utils", compare_model="ref('orders')", config={"fail_calc": "sum(coalesce(diff_count, 0))"}),
    )  # fmt: skip
    keys = header(root / "models/orders.sql")
    values = {"dbt_expectations.expect_column_values_to_be_in_set": {"arguments": {"value_set": ["a", "b"]}}}
    assert keys["columns"]["name"]["tests"] == [values]
    assert len(keys["data_tests"]) == 3
    assert (
        "test_expect_table_row_count_to_be_between"
        in (root / "packages/dbt_expectations/macros/dbt_expectations.sql").read_text()
    )
    assert compile_project(load_project(root)).manifest.errors == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "more", "expected"),
    [("snowflake", {}, r"^\d+$"), ("snowflake", {"is_raw": True}, r"^\\d+$"), ("duckdb", {}, r"^\\d+$")],
)
def test_regular_expressions_lose_the_escapes_of_a_literal(adapter, more, expected, tmp_path) -> None:
    test = generic("expect_column_values_to_match_regex", "dbt_expectations", "name", regex=r"^\\d+$", **more)
    root, _ = imported(tmp_path, test, adapter=adapter)
    (found,) = header(root / "models/orders.sql")["columns"]["name"]["tests"]
    assert found["dbt_expectations.expect_column_values_to_match_regex"]["arguments"]["regex"] == expected


@pytest.mark.slow
def test_types_of_dbt_expectations_are_those_of_spark(tmp_path: Path) -> None:
    test = generic("expect_column_values_to_be_of_type", "dbt_expectations", "id", column_type="integer")
    root, _ = imported(tmp_path, test, adapter="duckdb")
    (found,) = header(root / "models/orders.sql")["columns"]["id"]["tests"]
    assert found["dbt_expectations.expect_column_values_to_be_of_type"] == {"arguments": {"column_type": "int"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "code", "note"),
    [
        ("databricks", "select {{ dbt_date.week_start('d') }} as w", "week_start() is a Sunday here, and a Monday on databricks"),
        ("duckdb", "{{ dbt_date.get_date_dimension('2024-01-01', '2024-02-01') }}", "week_of_year() follows ISO 8601 here"),
        ("snowflake", "{{ dbt_date.get_date_dimension('2024-01-01', '2024-02-01') }}", None),
    ],
)  # fmt: skip
def test_weeks_that_differ_are_noted(adapter: str, code: str, note: str | None, tmp_path: Path) -> None:
    root, report = imported(tmp_path, model("days", code), adapter=adapter)
    assert (root / "packages/dbt_date/macros/dbt_date.sql").is_file()
    assert bool(note) == any("dbt_date." in found and (note or "") in found for found in report.notes)


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        (["007", "12"], "string", "code stays a string, so that 007 keeps its zeros; dbt makes a number of it"),
        (["7", "", "null"], "bigint", None),
        (["1.5", ".5", "2."], "double", None),
        (["2024-1-5", "2024-12-31"], "date", None),
        (["2024-02-04 2:02:21"], "timestamp", None),
        (["2016-09-01T00:00:00", "2016-09-01T00:00:00Z"], "timestamp", None),
        # dbt takes no time without seconds.
        (["2024-02-04 02:02"], "string", None),
        (["True", "false"], "boolean", None),
        (["a"], "string", None),
    ],
)
def test_types_of_seeds(values: list[str], kind: str, note: str | None, tmp_path: Path) -> None:
    root, report = with_seed(tmp_path, values)
    (table,) = yaml.safe_load((root / "sources/seeds.yml").read_text())["sources"][0]["tables"]
    assert table["schema"] == f"id bigint, code {kind}"
    assert table["options"].get("nullValue") == ("null" if "null" in values else None)
    assert [*item(report, "codes", "seed").notes] == ([note] if note else [])


@pytest.mark.slow
def test_a_declared_type_of_a_seed_counts(tmp_path: Path) -> None:
    root, report = with_seed(tmp_path, ["007"], column_types={"code": "varchar(5)"})
    assert "code string" in (root / "sources/seeds.yml").read_text()
    assert item(report, "codes", "seed").notes == ()
    numbered, _ = with_seed(tmp_path / "other", ["007"], column_types={"code": "integer"})
    assert "code int" in (numbered / "sources/seeds.yml").read_text()


def test_rows_of_a_seed_that_lack_values_are_filled_up(tmp_path: Path) -> None:
    root, report = with_seed(tmp_path, ["a", "b"], more='7\n8,"c, ""d"""\n')
    assert (root / "seeds/codes.csv").read_text() == 'id,code\n0,a\n1,b\n7,\n8,"c, ""d"""\n'
    assert item(report, "codes", "seed").notes == (
        "1 row had fewer values than columns: filled up in the file, as dbt does",
    )


def test_a_line_break_in_a_value_of_a_seed(tmp_path: Path) -> None:
    root, _ = with_seed(tmp_path, ['"a\nb"'])
    (table,) = yaml.safe_load((root / "sources/seeds.yml").read_text())["sources"][0]["tables"]
    assert table["options"] == {"header": True, "multiLine": True}


def with_seed(folder: Path, values: list[str], more: str = "", **config: Any) -> tuple[Path, ImportReport]:
    target = written(folder, seed("codes", config=config))
    (folder / "seeds").mkdir()
    lines = "".join(f"{n},{value}\n" for n, value in enumerate(values))
    (folder / "seeds" / "codes.csv").write_text(f"id,code\n{lines}{more}")
    return folder / "new", import_dbt(target, folder / "new")


@pytest.mark.parametrize(
    ("when", "sql", "answer"),
    [
        ("start", "create schema if not exists audit", "not needed: schemas are created"),
        ("end", "GRANT select ON all tables IN schema x TO role y", "rights are given in the catalog"),
        ("end", "insert into log values (1)", "write it as post_hook of the model that is built last"),
        ("start", "insert into log values (1)", "write it as pre_hook of the model that is built first"),
        ("end", "{{ drop_old_schemas() }}", "a macro that runs a statement cannot be called"),
        ("start", "create or replace function f(a int) as (a)", "as a macro under macros/"),
    ],
)
def test_hooks_of_runs_are_named_with_what_to_do(when: str, sql: str, answer: str, tmp_path: Path) -> None:
    hook = model("shop-on-run-0", sql, tags=[f"on-run-{when}"], resource_type="operation")
    _, report = imported(tmp_path, hook)
    found: Item = item(report, "shop-on-run-0", "hook")
    assert found.outcome is ImportOutcome.NOT_IMPORTED
    assert found.reason.startswith(f"on-run-{when}: {sql}: ")
    assert answer in found.reason


def test_a_view_with_the_time_of_the_run_is_a_table(tmp_path: Path) -> None:
    code = "select '{{ run_started_at.strftime(\"%Y\") }}' as at, id from {{ ref('orders') }}"
    stamped = model("stamped", code, config={"materialized": "view"})
    plain = model("plain", "select 'run_started_at' as at from {{ ref('orders') }}", config={"materialized": "view"})
    root, report = imported(tmp_path, stamped, plain)
    assert header(root / "models/stamped.sql")["materialized"] == "table"
    assert "was a view with a value of dbt's last run" in item(report, "stamped").notes[0]
    assert item(report, "stamped").outcome is ImportOutcome.COMPILES
    assert header(root / "models/plain.sql")["materialized"] == "view"
