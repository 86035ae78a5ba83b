"""Which types a table holds, and which fields of `partition_by` and `sort_by` fit them: compile's verdict is Iceberg's.

fixtures/storable.json was measured with Spark 4.1.4 and Iceberg 1.12.0: for each column, as SQL, its type, the versions
of the format in which a table was made and written with it, what it could be partitioned and sorted by, and whether a
view was made with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.project.small_projects import clean, compiled, findings

MEASURED: dict[str, Any] = json.loads((Path(__file__).parent / "fixtures" / "storable.json").read_text())
FIELDS = {
    "identity": "partition_by: [c]",
    "sort": "sort_by: [c]",
    "bucket": "partition_by: ['bucket(4, c)']",
    "truncate": "partition_by: ['truncate(4, c)']",
    **{unit: f"partition_by: ['{unit}(c)']" for unit in ("year", "month", "day", "hour")},
}


def table(sql: str, *settings: str) -> str:
    header = "\n".join(["materialized: table", *settings])
    return f"/*---\n{header}\n---*/\nselect 1 as k, {sql} as c"


def codes(tmp_path: Path, models: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in models}
    files: dict[str, str | bytes] = {f"models/{name}.sql": text for name, text in models.items()}
    for diagnostic in compiled(tmp_path, files).manifest.diagnostics:
        if diagnostic.is_error:
            found[diagnostic.node or ""].append(diagnostic.code)
    return found


@pytest.mark.slow
def test_types_in_views(tmp_path: Path) -> None:
    models = {f"m{i}": f"/*---\nmaterialized: view\n---*/\nselect 1 as k, {sql} as c" for i, sql in enumerate(MEASURED)}
    found = codes(tmp_path, models)
    wrong = {sql: found[f"m{i}"] for i, (sql, m) in enumerate(MEASURED.items()) if (not found[f"m{i}"]) != m["view"]}
    # The types do not tell an array whose elements may be NULL from one without elements.
    assert wrong == {"array()": []}


@pytest.mark.slow
def test_types_in_both_versions_of_the_format(tmp_path: Path) -> None:
    models, wanted = {}, {}
    for number, (sql, measured) in enumerate(MEASURED.items()):
        for version in (2, 3):
            name = f"m{number}_v{version}"
            models[name] = table(sql, f"format_version: {version}")
            wanted[name] = [] if version in measured["versions"] else ["column-storage"]
    found = codes(tmp_path, models)
    assert {models[n]: f for n, f in found.items() if f != wanted[n]} == {}


@pytest.mark.slow
def test_partition_fields_and_orders_of_each_type(tmp_path: Path) -> None:
    models, wanted = {}, {}
    for number, (sql, measured) in enumerate(MEASURED.items()):
        for field, setting in FIELDS.items():
            if measured["versions"]:
                name = f"m{number}_{field}"
                models[name] = table(sql, setting, f"format_version: {measured['versions'][0]}")
                wanted[name] = [] if field in measured["fields"] else ["partition-type"]
    found = codes(tmp_path, models)
    # A build asks again about types that compile does not know.
    assert {models[n]: f for n, f in found.items() if f != wanted[n] and not ("collate" in models[n] and not f)} == {}


NUMBERS = {
    "ts - ts as d": "cast(cast(ts - ts as interval second) as decimal(18, 6)) as d",
    "interval '1' month as m": "cast(cast(interval '1' month as interval month) as int) as m",
}
SELECT = "/*---\nmaterialized: table\n---*/\nselect\n    id,\n    {}\nfrom {{{{ source('shop', 'orders') }}}}"
TOLD = [
    (
        "null as gone", "a:6:5 the column 'gone' is void (NULL without a type), which an Iceberg table cannot hold",
        "Give it a type: cast(null as string) as gone.",
    ),
    (
        "array() as tags", "a:6:5 the column 'tags.element' is void (NULL without a type), which an Iceberg table cannot hold",
        "Give it a type: cast(array() as array<string>) as tags.",
    ),
    (
        "ts - ts as d", "a:6:5 the column 'd' is interval day to second, which an Iceberg table cannot hold",
        "Store it as a string: cast(ts - ts as string) as d; ..",
    ),
    (
        "interval '1' month as m", "a:6:5 the column 'm' is interval month, which an Iceberg table cannot hold",
        "Store it as a string: cast(interval '1' month as string) as m; ..",
    ),
    (
        "parse_json(id) as v", "a:6:5 the column 'v' is variant, which needs 'format_version: 3'",
        "Set 'format_version: 3', or store it as a string: to_json(parse_json(id)) as v.",
    ),
    (
        "struct(item.price, null as x) as s",
        "a:6:5 the column 's.x' is void (NULL without a type), which an Iceberg table cannot hold",
        "Give it a type: cast(struct(item.price, null as x) as struct<price:double,x:string>) as s.",
    ),
    (
        "make_interval(1) as i", "a:6:5 the column 'i' is interval, which an Iceberg table cannot hold",
        "Store it as a string: cast(make_interval(1) as string) as i.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("column", "message", "hint"), TOLD)
def test_the_column_its_type_and_how_to_fix_it(column: str, message: str, hint: str, tmp_path: Path) -> None:
    (found,) = compiled(tmp_path, {"models/a.sql": SELECT.format(column)}).manifest.diagnostics
    assert found.location is not None
    assert f"a:{found.location.line}:{found.location.column} {found.message}" == message
    assert found.hint == hint.replace("..", f"or as a number: {NUMBERS.get(column)}.")


PARTITIONS = [
    ("bucket(16, amount)", "cannot take bucket(16, amount): 'amount' is double", "Write amount itself, or cast it: cast(amount as"),
    ("hour(d)", "cannot take hour(d): 'd' is date", "Write day(d) or bucket(16, d), or d itself."),
    ("day(id)", "cannot take day(id): 'id' is string", "Partition by a date or timestamp: select cast(id as timestamp)"),
    ("truncate(4, ts)", "cannot take truncate(4, ts): 'ts' is timestamp", "Write day(ts) or hour(ts) or bucket(16, ts), or ts itself."),
    ("item", "cannot take item: 'item' is struct<name:string,price:double>", "Partition by a column that is not a struct, array or map"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "message", "hint"), PARTITIONS)
def test_a_partition_field_that_does_not_fit_its_column(field: str, message: str, hint: str, tmp_path: Path) -> None:
    model = f"/*---\nmaterialized: table\npartition_by: ['{field}']\n---*/\n" + SELECT.split("---*/\n")[1]
    (found,) = compiled(
        tmp_path, {"models/a.sql": model.format("ts, amount, item, to_date(ts) as d")}
    ).manifest.diagnostics
    assert (found.code, found.location.line if found.location else 0) == ("partition-type", 3)
    assert message in found.message
    assert found.hint.startswith(hint)


def test_what_is_not_stored_is_not_looked_at(tmp_path: Path) -> None:
    models: dict[str, str | bytes] = {
        "models/excluded.sql": (
            "/*---\nstreams: [shop.orders]\nunique_key: id\nsequence_by: ts\nexclude: [gone]\n---*/\n"
            "select id, ts, null as gone from {{ source('shop', 'orders') }}"
        ),
        "models/inner.sql": "/*---\nmaterialized: ephemeral\n---*/\nselect interval '1' day as d",
        "models/outer.sql": "select timestamp'2024-01-01 00:00:00' + d as t from {{ ref('inner') }}",
        "models/seen.sql": "/*---\nmaterialized: view\n---*/\nselect 1 as k, null as c",
        "models/thirds.sql": "/*---\ntable_properties: {format-version: '3'}\n---*/\nselect 1 as k, null as c",
    }
    assert clean(tmp_path, models)


def test_a_table_of_nothing_but_null_has_nothing_to_write(tmp_path: Path) -> None:
    text = "/*---\nmaterialized: table\nformat_version: 3\n---*/\nselect null as a, struct(null as x) as b, {}"
    found = findings(tmp_path, {"models/a.sql": text.format("1 as k")})
    assert [d.message for d in found] == [
        "the column 'b.x' is void (NULL without a type), which an Iceberg table cannot hold"
    ]
    found = findings(tmp_path, {"models/a.sql": text.split("struct", maxsplit=1)[0] + "null as c"})
    assert len(found) == 2


def test_a_star_and_a_cte_lead_to_the_place_of_the_column(tmp_path: Path) -> None:
    star = "with a as (\n  select 1 as k, null as c\n)\nselect\n  2 as n, *\nfrom a"
    (found,) = findings(tmp_path, {"models/a.sql": star})
    assert (found.code, str(found.location)) == ("column-storage", "models/a.sql:5:11")
