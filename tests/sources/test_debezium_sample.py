"""The declaration that `engine source inspect` makes of change records, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from engine.sources.values.debezium_sample import ChangeSample, sample_of
from tests.project.small_projects import clean
from tests.sources.debezium_records import change, decimal, digits, of, recorded, struct, tombstone

TRUNCATE = "By default the connector does not send TRUNCATE. Set skipped.operations=none on it."


def sampled(lines: list[str]) -> ChangeSample | None:
    parts = [json.loads(line) for line in lines]
    return sample_of((json.dumps(part["key"]).encode(), json.dumps(part["value"]).encode()) for part in parts)


def test_recorded_columns_have_their_types() -> None:
    found = sampled(recorded("types"))
    assert found is not None
    assert found.key == ("id",)
    assert dict(found.columns) == {
        "id": "int", "n": "decimal(12, 2)", "m": "decimal(38, 2)", "v": "string", "d": "date", "t": "string",
        "t3": "string", "ts": "timestamp_ntz", "ts3": "timestamp_ntz", "tz": "timestamp", "ttz": "string",
        "iv": "bigint", "j": "string", "jb": "string", "x": "string", "u": "string", "ip": "string", "by": "binary",
        "b1": "boolean", "b3": "binary", "p": "struct<`x`: double, `y`: double, `wkb`: binary, `srid`: int>",
        "r": "float", "f": "double", "l": "array<string>", "li": "array<int>", "ld": "array<date>",
        "ln": "array<decimal(6, 2)>", "o": "boolean", "s": "smallint", "b": "bigint", "rg": "string",
    }  # fmt: skip
    assert found.notes == (TRUNCATE, "v: the scale differs from row to row. Declare decimal(p, s) if you know it.")


def test_the_newest_schema_counts() -> None:
    """A column was added while the records were written, and the scale of another one changed."""
    found = sampled(recorded("customers"))
    assert found is not None
    assert dict(found.columns) == {
        "id": "int", "name": "string", "credit": "decimal(14, 3)", "note": "string", "n": "int", "extra": "string"
    }  # fmt: skip
    # The columns have defaults, but the converter sends NULL as NULL.
    assert found.notes == (TRUNCATE,)


def test_a_table_without_a_key_and_a_truncate() -> None:
    found = sampled(recorded("others")[4:7])
    assert found == ChangeSample((("a", "int"), ("b", "string")), (), ())


def test_what_a_connector_may_lose() -> None:
    fields = {"id": of("int32"), "state": of("string", default="new"), "n": of("int64")}
    line = change("c", {"id": 1}, {"id": 1, "state": "new", "n": 1}, fields=fields, connector="mysql")
    found = sampled([tombstone({"id": 1}), line])
    assert found is not None
    defaults, truncate, unsigned = found.notes
    assert (
        defaults == "NULL may arrive as the default of state. Set replace.null.with.default=false on both converters."
    )
    assert truncate == TRUNCATE
    assert unsigned.startswith("n: an unsigned bigint above 2^63 arrives as a negative number.")


def test_without_schemas_only_kinds_of_json_are_known() -> None:
    after = {"id": 1, "credit": digits(5), "ok": True, "x": 1.5}
    found = sampled([change("c", {"id": 1}, after, schemas=False)])
    assert found is not None
    assert dict(found.columns) == {"id": "bigint", "credit": "string", "ok": "boolean", "x": "double"}
    assert found.notes[0].startswith("The records have no schema, so the types of decimals")


def test_nothing_is_known_of_other_records() -> None:
    assert sampled([tombstone({"id": 1}), '{"key": null, "value": {"ts_ms": 1}}', change("d", {"id": 1})]) is None
    assert sample_of([(None, b"no json"), (None, b"[]"), (None, None)]) is None


def test_the_columns_can_be_declared(tmp_path: Path) -> None:
    fields = {
        "id": of("int32"),
        "odd name": decimal(50),
        "m": of("map", values=of("int64")),
        "s": struct({"a b": of("int8")}),
    }
    found = sampled([*recorded("types"), change("c", {"id": 1}, {"id": 1}, fields=fields)])
    assert found is not None
    schema = json.dumps(", ".join(f"`{name}` {kind}" for name, kind in found.columns))
    source = f"""\
sources:
  - name: crm
    tables:
      - {{name: t, format: json, path: x, value: {{format: debezium, key: [id]}}, schema: {schema}}}
"""
    manifest = clean(tmp_path, {"sources/crm.yml": source})
    assert len(manifest.nodes["source.crm.t"].columns) == len(found.columns) + 4  # type: ignore[union-attr]
