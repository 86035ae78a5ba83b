"""Tables of a project as sources of dbt: what the file says, and that no other file is replaced.

That dbt-core 1.12 parses it without a deprecation, and finds its sources and tests, was tried by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.cli.main import invoke
from tests.projects import write_files

pytestmark = pytest.mark.slow

FILES = {
    "project.yml": "name: shop\n",
    "sources/web.yml": "sources: [{name: web, tables: [{name: orders, format: json, path: landing, "
    "schema: 'id int, amount double, at timestamp'}]}]\n",
    "models/orders.sql": """/*---
description: "Orders, {{ '{{' }} as }} they came."
streams: [web.orders]
tags: [daily]
meta: {owner: "{{ '{%' }} sales %}", level: 2}
columns:
  id: {description: The number., tests: [not_null, unique, {accepted_values: {values: [1]}}]}
---*/
select id, amount, at from {{ source('web', 'orders') }}
""",
    "models/latest.sql": "/*---\nmaterialized: view\nalias: newest\n---*/\nselect max(at) as at from {{ ref('orders') }}\n",
    "models/inner.sql": "/*---\nmaterialized: ephemeral\n---*/\nselect id from {{ ref('orders') }}\n",
    "models/report.sql": "/*---\nmaterialized: table\nschema: reports\n---*/\nselect id from {{ ref('inner') }}\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_files(tmp_path, FILES)
    return tmp_path


def exported(root: Path, *options: str) -> dict[str, Any]:
    assert invoke(["export", "dbt-sources", "--out", "out.yml", *options, "--project-dir", str(root)]) == 0
    found: dict[str, Any] = yaml.safe_load((root / "out.yml").read_text())
    return found


def test_a_source_for_each_schema_has_tables_and_views(shop: Path) -> None:
    found = exported(shop)
    assert found["version"] == 2
    sources = {source["name"]: source for source in found["sources"]}
    assert {name: (source["database"], source["schema"]) for name, source in sources.items()} == {
        "shop": ("lake", "shop"),
        "shop_reports": ("lake", "shop_reports"),
    }
    tables = {table["name"]: table for table in sources["shop"]["tables"]}
    assert set(tables) == {"orders", "latest"}
    assert tables["latest"]["identifier"] == "newest"
    orders = tables["orders"]
    assert orders["description"] == "Orders, { { as }} they came."
    assert orders["config"] == {
        "meta": {
            "owner": "{ % sales %}",
            "level": 2,
            "headrace": {"materialized": "streaming_table", "file": "models/orders.sql", "reads": ["web.orders"]},
        },
        "tags": ["daily"],
    }
    assert orders["columns"] == [
        {"name": "id", "data_type": "int", "description": "The number.", "data_tests": ["not_null", "unique"]},
        {"name": "amount", "data_type": "double"},
        {"name": "at", "data_type": "timestamp"},
    ]


def test_the_database_is_named_or_left_out(shop: Path) -> None:
    (source,) = exported(shop, "--database", "iceberg", "-s", "orders")["sources"]
    assert (source["name"], source["database"]) == ("shop", "iceberg")
    (source,) = exported(shop, "--database", "", "-s", "orders")["sources"]
    assert "database" not in source


def test_its_own_file_is_replaced_and_no_other(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported(shop)
    exported(shop, "-s", "orders")
    (shop / "out.yml").write_text("version: 2\n")
    assert invoke(["export", "dbt-sources", "--out", "out.yml", "--project-dir", str(shop)]) == 2
    assert "was not written by this command" in capsys.readouterr().err
    assert (shop / "out.yml").read_text() == "version: 2\n"


def test_it_is_printed_for_other_programs(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["export", "dbt-sources", "-s", "latest", "--project-dir", str(shop)]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert [table["name"] for table in printed["sources"][0]["tables"]] == ["latest"]
