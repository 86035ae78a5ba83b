"""Rows without Java: dates that Python does not have, and types that PyIceberg does not know."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ValidationError

from engine.cli.console.rows_text import format_rows
from engine.lake.catalog.iceberg_types import spark_type
from engine.lake.catalog.metadata_document import day_text, rows_of, time_text
from engine.lake.catalog.warehouse_paths import parse_metadata

DAYS = [
    (0, "1970-01-01"), (-719_162, "0001-01-01"), (2_932_896, "9999-12-31"), (-719_163, "0000-12-31"),
    (-719_528, "0000-01-01"), (-719_529, "-0001-12-31"), (2_932_897, "+10000-01-01"), (-721_354, "-0005-01-01"),
    (3_789_391, "+12345-01-01"),
]  # fmt: skip


@pytest.mark.parametrize(("days", "text"), DAYS)
def test_a_date_beyond_pythons_years_is_a_text_as_spark_prints_it(days: int, text: str) -> None:
    assert day_text(days) == text
    assert time_text(days * 86_400_000_000) == f"{text} 00:00:00"
    assert time_text((days + 1) * 86_400_000_000 - 500_000) == f"{text} 23:59:59.5"


FAR = 327_400_000_000_000_000


def test_values_beyond_pythons_years_stay_values_at_any_depth() -> None:
    zoned, plain = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
    table = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "at": pa.array([0, FAR, None], zoned),
            "local": pa.array([0, -FAR, None], plain),
            "day": pa.array([0, 3_789_391, None], pa.date32()),
            "listed": pa.array([[0, FAR], None, []], pa.list_(zoned)),
            "inside": pa.array(
                [{"at": FAR, "n": 1}, {"at": None, "n": 2}, None], pa.struct({"at": zoned, "n": pa.int32()})
            ),
            "mapped": pa.array([[("a", FAR)], [], None], pa.map_(pa.string(), zoned)),
        }
    )
    rows = rows_of(table)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    far = time_text(FAR)
    assert far == "+12344-11-22 20:26:40"
    assert rows[0] == (
        1,
        epoch,
        epoch.replace(tzinfo=None),
        date(1970, 1, 1),
        [epoch, far],
        {"at": far, "n": 1},
        [("a", far)],
    )
    assert rows[1] == (2, far, time_text(-FAR), "+12345-01-01", None, {"at": None, "n": 2}, [])
    assert rows[2] == (3, None, None, None, [], None, None)
    shown = format_rows((table.column_names, rows), "text")
    assert "| 1970-01-01 00:00:00 " in shown
    assert "['1970-01-01 00:00:00', '+12344-11-22 20:26:40']" in shown
    assert json.loads(format_rows((table.column_names, rows), "json").splitlines()[0])["listed"] == [
        "1970-01-01 00:00:00",
        far,
    ]


def metadata(type_: Any) -> str:
    fields = [
        {"id": 1, "name": "variant", "required": False, "type": "string"},
        {"id": 2, "name": "v", "required": False, "type": type_},
    ]
    return json.dumps({
        "format-version": 3, "table-uuid": "6f9a1c0e-0000-4000-8000-000000000000", "location": "file:///lake/t",
        "last-sequence-number": 1, "last-updated-ms": 1, "last-column-id": 9, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}], "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}], "next-row-id": 0,
    })  # fmt: skip


NESTED = {"type": "struct", "fields": [{"id": 3, "name": "x", "required": True, "type": "variant"}]}
LISTED = {"type": "list", "element-id": 3, "element": "variant", "element-required": False}
MAPPED = {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value": NESTED, "value-required": False}
TYPES = [
    ("variant", "variant"),
    (NESTED, "struct<x: variant>"),
    (LISTED, "array<variant>"),
    (MAPPED, "map<string, struct<x: variant>>"),
]


@pytest.mark.parametrize(("type_", "printed"), TYPES)
def test_a_variant_is_a_type_at_any_depth(type_: Any, printed: str) -> None:
    name, column = parse_metadata(metadata(type_)).schema().fields
    assert (name.name, spark_type(name.field_type)) == ("variant", "string")
    assert spark_type(column.field_type) == printed


@pytest.mark.parametrize("type_", ["no_type", {"type": "variant"}, 5, ["variant"]])
def test_metadata_of_another_kind_is_an_error_of_metadata(type_: Any) -> None:
    with pytest.raises((ValidationError, ValueError, TypeError)):
        parse_metadata(metadata(type_) + ("" if isinstance(type_, str) else " "))
