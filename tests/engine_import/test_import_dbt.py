"""`engine import dbt`: what a manifest that dbt itself wrote becomes, and what the report says of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from engine.cli.main import invoke
from engine.compile import DataTest, compile_project
from engine.project import load_project
from engine_import.dbt.import_dbt import import_dbt
from engine_import.dialects.syntax.sql_tree import TOO_DEEP
from engine_import.dialects.translate import translated
from engine_import.output.import_report import ImportOutcome, ImportReport
from tests.engine_import.imported import model, real_project, written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dbt")
    report = import_dbt(real_project(folder / "shop"), folder / "new")
    return folder / "new", report


def item(report: ImportReport, name: str, kind: str = "model"):
    (found,) = [each for each in report.items if (each.kind, each.name) == (kind, name)]
    return found


def header(path) -> dict:
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text[text.index("/*---") + 5 : text.index("---*/")]) or {}


def query(path) -> str:
    return path.read_text(encoding="utf-8").partition("---*/\n")[2]


def test_the_summary_counts_what_compiles(imported):
    _, report = imported
    assert report.summary == "8 of 11 models compile; 2 marked as drafts, 1 not imported"
    assert {each.name for each in report.models if each.outcome is ImportOutcome.COMPILES} == {
        "stg_orders", "stg_customers", "customers", "by_kind", "prices_v1", "prices_v2", "price_list",
        "qualified",
    }  # fmt: skip


FAILING = model(
    "failing", "select 1 as id\n{% if var('all', true) %}\nqualify row_number() over (order by 1) = 1\n{% endif %}"
)


def test_a_model_that_does_not_compile_has_line_reason_and_code(tmp_path):
    report = import_dbt(written(tmp_path / "shop", FAILING), tmp_path / "new")
    failed = item(report, "failing")
    assert (failed.outcome, failed.code) == (ImportOutcome.FAILS, "qualify-not-supported")
    assert failed.reason.startswith("line 6: Spark has no QUALIFY")
    text = (tmp_path / "new" / "import-report.md").read_text()
    assert "| model failing | models/failing.sql | line 6: Spark has no QUALIFY" in text


def test_the_sql_is_translated_from_the_dialect_of_the_adapter(imported):
    root, report = imported
    text = query(root / "models/marts/qualified.sql")
    assert "row_number() over (partition by order_id order by ordered_at desc) = 1 as qualify_" in text
    assert text.endswith(") where qualify_\n")
    assert item(report, "qualified").notes == ()


def test_the_reports_in_the_folder_say_the_same(imported):
    root, report = imported
    data = json.loads((root / "import-report.json").read_text())
    assert data["summary"] == report.summary
    assert data["models"] == {
        "total": 11, "compiles": 8, "does not compile": 0, "draft": 2, "not imported": 1,
    }  # fmt: skip
    text = (root / "import-report.md").read_text()
    assert report.summary in text


def test_the_compiler_finds_nothing_else_in_the_project_as_it_is_written(imported):
    root, _ = imported
    errors = compile_project(load_project(root)).manifest.errors
    # The draft that another model reads.
    assert {(error.node, error.code) for error in errors} == {("by_kind", "unknown-ref")}


def test_config_becomes_a_header_and_descriptions_are_read_back_unchanged(imported):
    root, _ = imported
    keys = header(root / "models/staging/stg_orders.sql")
    assert keys["tags"] == ["staging"]
    assert keys["meta"] == {"owner": "sales", "group": "sales"}
    assert "config(" not in query(root / "models/staging/stg_orders.sql")
    compiled = compile_project(load_project(root)).manifest.model("stg_orders")
    assert compiled.description == (
        "Orders, cleaned.\nA comment may end with */ and braces such as {{ not_jinja }} stay text: \"quoted\", 'single'."
    )


def test_tests_are_at_their_columns(imported):
    root, _ = imported
    columns = header(root / "models/staging/stg_orders.sql")["columns"]
    assert sorted(columns["order_id"]["tests"]) == ["is_positive", "not_null", "unique"]
    assert columns["customer_id"]["tests"] == [
        {"relationships": {"arguments": {"to": "ref('customers')", "field": "customer_id"}}}
    ]
    assert columns["amount"]["tests"] == [{"dbt_utils.accepted_range": {"arguments": {"min_value": 0}}}]
    nodes = compile_project(load_project(root)).manifest.nodes
    tests = {node.name for node in nodes.values() if isinstance(node, DataTest)}
    assert {"is_positive_stg_orders_order_id", "no_negative_totals"} <= tests


def test_a_column_that_the_query_does_not_return_is_left_out_and_named(imported):
    root, report = imported
    assert "no_longer_there" not in header(root / "models/staging/stg_orders.sql")["columns"]
    notes = "; ".join(item(report, "stg_orders").notes)
    assert "the query does not return no_longer_there: left out of the columns, with 1 test" in notes


def test_an_incremental_model_is_a_draft_with_what_to_decide(imported):
    root, report = imported
    text = (root / "models/marts/events_log.sql").read_text()
    assert header(root / "models/marts/events_log.sql")["enabled"] is False
    assert "#      streams: [raw.events]" in text
    assert "watermark: created_at delay 1 hour" in text
    draft = item(report, "events_log")
    assert draft.outcome is ImportOutcome.DRAFT
    assert "as a table it compiles" in draft.notes
    assert "as a stream, with the keys in its comment, it compiles" in draft.notes
    # What counted in incremental runs only is kept as a comment that renders to nothing.
    assert re.search(
        r"\{#- In dbt, in incremental runs only:\n-- new rows only .*\{\{ this \}\}\)\n-#\}", text, re.DOTALL
    )


def test_keys_of_a_merge_are_suggested(imported):
    root, report = imported
    text = (root / "models/marts/daily_sales.sql").read_text()
    assert "#      unique_key: [ordered_on, kind]\n#      sequence_by: updated_at" in text
    assert any(
        "'stg_orders' cannot be read as a stream: it is a table" in note for note in item(report, "daily_sales").notes
    )
    assert item(report, "by_kind").notes[-1] == "reads daily_sales, still a draft"


def test_incremental_models_can_become_tables(tmp_path):
    report = import_dbt(real_project(tmp_path / "shop"), tmp_path / "new", incremental="table")
    assert report.summary == "10 of 11 models compile; 1 not imported"
    assert header(tmp_path / "new/models/marts/daily_sales.sql") == {"materialized": "table", "schema": "marts"}


def test_a_view_over_a_source_is_a_table_and_one_over_a_model_a_view(imported):
    root, _ = imported
    assert header(root / "models/staging/stg_orders.sql")["materialized"] == "table"
    assert header(root / "models/marts/price_list.sql")["materialized"] == "view"


def test_a_seed_is_a_file_a_source_and_a_table(imported):
    root, report = imported
    assert (root / "seeds/countries.csv").read_text().startswith("customer_id,country")
    (table,) = yaml.safe_load((root / "sources/seeds.yml").read_text())["sources"][0]["tables"]
    assert table["schema"] == "customer_id bigint, country string, code string, since date, share double"
    assert query(root / "models/seeds/countries.sql") == "select * from {{ source('seeds', 'countries') }}\n"
    assert item(report, "countries", "seed").outcome is ImportOutcome.IMPORTED


def test_versions_of_a_model_are_models(imported):
    root, _ = imported
    assert "ref('prices_v2') }} union all" in query(root / "models/marts/price_list.sql")
    assert "ref('prices_v1')" in query(root / "models/marts/price_list.sql")
    keys = header(root / "models/marts/prices_v1.sql")
    assert keys["contract"] is True
    assert keys["columns"] == {"id": {"type": "int", "tests": ["not_null"]}, "price": {"type": "decimal(2, 1)"}}


def test_snapshots_of_both_strategies_are_tables_with_history(imported):
    root, _ = imported
    keys = header(root / "models/customers_history.sql")
    assert keys == {
        "materialized": "table", "history": True, "unique_key": ["id"], "sequence_by": "changed_at",
        "on_schema_change": "append_columns",
    }  # fmt: skip
    compared = header(root / "models/kinds_history.sql")
    assert compared["check"] == ["orders"]
    assert "deletes" not in compared


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("model", "scored", "a Python model"),
        ("unit test", "only_new_rows", "it replaces is_incremental()"),
        ("macro", "generate_schema_name", "'schema: marts' makes <target schema>_marts"),
    ],
)
def test_what_is_not_imported_has_its_reason(kind, name, reason, imported):
    _, report = imported
    assert item(report, name, kind).outcome is ImportOutcome.NOT_IMPORTED
    assert reason in item(report, name, kind).reason


def test_an_analysis_is_a_file_that_is_not_built(imported):
    root, report = imported
    assert (root / "analyses/biggest.sql").read_text() == "select * from {{ ref('customers') }} order by orders desc\n"
    found = item(report, "biggest", "analysis")
    assert found.outcome is ImportOutcome.IMPORTED
    assert 'engine compile --inline "$(cat analyses/biggest.sql)"' in found.notes[0]


def test_sources_keep_freshness_and_tests_and_get_names(imported):
    root, _ = imported
    (source,) = yaml.safe_load((root / "sources/raw.yml").read_text())["sources"]
    tables = {table["name"]: table for table in source["tables"]}
    assert set(tables) == {"orders", "customers_eu", "events"}
    assert tables["orders"]["table"] == "landing.orders"
    assert tables["orders"]["freshness"] == {"warn_after": "12 hours", "error_after": "1 day"}
    assert tables["orders"]["columns"]["id"]["tests"] == ["not_null", "unique"]
    assert "source('raw', 'customers_eu')" in query(root / "models/staging/stg_customers.sql")


def test_exposures_keep_their_readers(imported):
    root, report = imported
    (exposure,) = yaml.safe_load((root / "models/exposures.yml").read_text())["exposures"]
    assert exposure == {
        "name": "weekly_report",
        "type": "dashboard",
        "owner": {"name": "Sales team"},
        "depends_on": ["ref('daily_sales')"],
        "enabled": False,
    }
    found = item(report, "weekly_report", "exposure")
    assert found.outcome is ImportOutcome.IMPORTED
    assert found.notes == ("left out until daily_sales is decided",)


def test_what_an_exposure_reads_and_has_no_table_is_left_out_and_noted(tmp_path):
    target = real_project(tmp_path / "shop")
    data = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    exposure = data["exposures"]["exposure.shop.weekly_report"]
    reads = ["model.shop.customers", "source.shop.raw.Customers-EU", "model.shop.stg_customers", "model.shop.scored"]
    exposure |= {"depends_on": {"nodes": reads, "macros": []}, "url": "javascript:alert(1)", "type": "poster"}
    exposure |= {"owner": {"email": None, "name": None}, "maturity": "high", "tags": ["weekly"], "meta": {"floor": 3}}
    (target / "manifest.json").write_text(json.dumps(data), encoding="utf-8")
    report = import_dbt(target, tmp_path / "new")
    (found,) = yaml.safe_load((tmp_path / "new/models/exposures.yml").read_text())["exposures"]
    assert found == {
        "name": "weekly_report", "type": "application", "owner": {"name": "unknown"}, "maturity": "high",
        "depends_on": ["ref('customers')", "source('raw', 'customers_eu')"], "tags": ["weekly"], "meta": {"floor": 3},
    }  # fmt: skip
    assert item(report, "weekly_report", "exposure").notes == (
        "without stg_customers, which has no table here", "without scored, which has no table here",
    )  # fmt: skip
    manifest = compile_project(load_project(tmp_path / "new")).manifest
    assert [e.depends_on for e in manifest.exposures] == [("model.customers", "source.raw.customers_eu")]


def test_variables_come_from_the_project_beside_the_manifest(imported, tmp_path):
    root, _ = imported
    assert yaml.safe_load((root / "project.yml").read_text()) == {
        "name": "shop", "vars": {"least_amount": 10, "currency": "eur"},
    }  # fmt: skip
    target = written(tmp_path / "alone", model("m", "select 1 as a"))
    report = import_dbt(target, tmp_path / "new")
    assert any("dbt_project.yml was not found" in note for note in report.notes)


def test_dispatch_leads_to_the_macro_of_the_warehouse_whose_sql_is_translated(imported):
    root, _ = imported
    text = (root / "macros/money.sql").read_text()
    assert "return(duckdb__cents_to_units(column))" in text
    assert "({{ column }} / 100)::decimal(16, 2)" in text


def test_macros_of_packages_that_are_called_are_named(tmp_path):
    calls = {"nodes": [], "macros": ["macro.dbt_utils.get_column_values", "macro.shop_utils.tax"]}
    code = "select {{ dbt_utils.get_column_values('a') }} as a, {{ shop_utils.tax('b') }} as b"
    report = import_dbt(written(tmp_path / "shop", model("m", code, depends_on=calls)), tmp_path / "new")
    assert item(report, "dbt_utils.get_column_values", "macro").reason.startswith(
        "a macro of a package, called 1 time: Temp"
    )
    assert item(report, "shop_utils.tax", "macro").reason.endswith("write it to packages/shop_utils/macros/")


@pytest.mark.parametrize(
    ("code", "kept", "left_out"),
    [
        ("a {% if is_incremental() %}b{% endif %} c", "a  c", ("b",)),
        ("a {% if not is_incremental() %}b{% else %}c{% endif %}", "a b", ("c",)),
        ("{% if is_incremental() and var('x') %}b{% endif %}c", "c", ("b",)),
        ("{% if is_incremental() %}b{% else %}{% if is_incremental() %}x{% endif %}c{% endif %}", "c", ("b", "x")),
        ("{% if is_incremental() %}{% if a %}b{% endif %}{% endif %}c", "c", ("{% if a %}b{% endif %}",)),
        ("{# {% if is_incremental() %} #}c", "{# {% if is_incremental() %} #}c", ()),
        ("{% raw %}{% if is_incremental() %}{% endraw %}c", "{% raw %}{% if is_incremental() %}{% endraw %}c", ()),
    ],
)
def test_what_a_full_refresh_runs_is_left(code, kept, left_out):
    from engine_import.templates.incremental_blocks import full_query

    full = full_query(code)
    assert (full.template, full.left_out, full.unclear) == (kept, left_out, False)


@pytest.mark.parametrize(
    "code",
    [
        "{% if is_incremental() or x %}a{% endif %}",
        "{% if x %}a{% elif is_incremental() %}b{% endif %}",
        "{% if is_incremental() %}a{% elif x %}b{% endif %}",
        "{% set new = is_incremental() %}{% if new %}a{% endif %}",
    ],
)
def test_what_is_not_clear_is_left_and_said(code):
    from engine_import.templates.incremental_blocks import full_query

    assert (full_query(code).template, full_query(code).unclear) == (code, True)


def test_calls_of_dbts_macros_are_found_in_code_alone(tmp_path):
    code = "select {{ date_trunc('day', 'ts') }}, {{ 'x' | replace('x', 'length(y)') }} as r, length(a) as l from t"
    import_dbt(written(tmp_path / "shop", model("m", code)), tmp_path / "new")
    text = query(tmp_path / "new/models/m.sql")
    assert "{{ dbt.date_trunc('day', 'ts') }}" in text
    assert "{{ 'x' | replace('x', 'length(y)') }} as r, length(a) as l" in text


def test_the_command_prints_what_is_left_to_do(tmp_path, capsys):
    target = real_project(tmp_path / "shop")
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert "8 of 11 models compile; 2 marked as drafts" in out
    assert "draft: model events_log (models/marts/events_log.sql): incremental (append)" in out
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "json"), "--log-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"]["total"] == 11
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "all"), "--must-compile"]) == 1
    assert "8 of 11 models compile" in capsys.readouterr().out
    assert (tmp_path / "all" / "import-report.md").is_file()


def test_an_existing_project_is_never_touched(tmp_path, capsys):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "project.yml").write_text("name: mine\n")
    target = real_project(tmp_path / "shop")
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "new")]) == 2
    assert "an import never overwrites a file" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["project.yml"]


def seed(name: str, **more: object) -> dict[str, object]:
    return {**model(name, "", schema="raw", **more), "resource_type": "seed", "original_file_path": f"seeds/{name}.csv"}


def test_a_source_that_is_a_seed_is_read_as_ref(tmp_path) -> None:
    def source(table: str, schema: str) -> dict[str, object]:
        return {
            "source_name": "ecom",
            "name": table,
            "schema": schema,
            "package_name": "shop",
            "resource_type": "source",
        }

    query = "select id from {{ source('ecom', 'raw_orders') }} union all select id from {{ source(\"ecom\", \"far\") }}"
    reads = {"nodes": ["source.shop.ecom.raw_orders", "source.shop.ecom.far"], "macros": []}
    target = written(
        tmp_path,
        seed("raw_orders"),
        model("orders", query, depends_on=reads),
        sources={
            "source.shop.ecom.raw_orders": source("raw_orders", "RAW"),
            "source.shop.ecom.far": source("far", "raw"),
        },
    )
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "raw_orders.csv").write_text("id\n007\n")
    report = import_dbt(target, tmp_path / "new")
    text = (tmp_path / "new/models/orders.sql").read_text()
    assert "{{ ref('raw_orders') }}" in text
    assert "{{ source('ecom', 'far') }}" in text
    assert "raw_orders" not in (tmp_path / "new/sources/ecom.yml").read_text()
    assert "the source ecom.raw_orders is the seed raw_orders, and read as ref('raw_orders')" in report.notes
    assert "id string" in (tmp_path / "new/sources/seeds.yml").read_text()


NESTED = (
    ("(", ")"), ("[", "]"), ("coalesce(", ", 1)"), ("(select ", " as a)"), ("cast(", " as int)"), ("(", ")::int"),
    ("case when (", ") = 1 then 2 end"), ("extract(year from ", ")"), ("dateadd(day, ", ", x)"), ("exists (select 1 where ", ")"),
)  # fmt: skip


@pytest.mark.parametrize("warehouse", ["snowflake", "bigquery", "duckdb", "redshift"])
def test_deep_nesting_is_noted_and_costs_nothing_that_doubles_with_each_level(warehouse: str) -> None:
    for opening, closing in NESTED:
        for levels in (70, 300):
            text = f"select {opening * levels}1{closing * levels} as a"
            assert (TOO_DEEP in [note.message for note in translated(text, warehouse).notes]) == (levels > 80)


def test_a_model_that_is_nested_too_deeply_does_not_stop_the_others(tmp_path: Path) -> None:
    deep = model("deep", f"select {'(' * 300}1{')' * 300} as id")
    target = written(tmp_path, model("ok", "select 1 as id"), deep)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["metadata"]["adapter_type"] = "snowflake"
    (target / "manifest.json").write_text(json.dumps(manifest))
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "new")]) == 0
    assert {path.name for path in (tmp_path / "new/models").iterdir()} == {"ok.sql", "deep.sql"}
    assert TOO_DEEP in (tmp_path / "new/import-report.md").read_text()
