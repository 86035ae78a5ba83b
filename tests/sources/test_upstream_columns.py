"""What an upstream adds, takes away or retypes: the declared schema decides (Avro: the reader's), nothing is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml
from tests.sources.test_avro_kafka import AVRO, Shop, framed, shop
from tests.sources.test_files import land, spark_file

pytestmark = pytest.mark.spark
__all__ = ["shop"]

FILES = sources_yaml(
    "files",
    text={"schema": "id int, kind string", "on_bad_record": "quarantine"},
    columnar={"format": "parquet", "path": "landing/columnar", "schema": "id int, kind string"},
)
PLAIN = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "id", "type": "int"}, {"name": "kind", "type": "string", "default": "none"}],
}
MORE = {**PLAIN, "fields": [{"name": "first", "type": "double"}, *PLAIN["fields"]]}
LESS = {**PLAIN, "fields": PLAIN["fields"][:1]}
OTHER = {**PLAIN, "fields": [{"name": "id", "type": "string"}, PLAIN["fields"][1]]}
# number, what a record has, the Avro schema it is written with, its columns in Parquet
STEPS: list[tuple[int, dict[str, Any], Any, str]] = [
    (1, {"kind": "a"}, PLAIN, "id int, kind string"),
    (2, {"kind": "b", "first": 0.5}, MORE, "id int, kind string, first double"),
    (3, {}, LESS, "id int"),
]


def test_columns_that_come_go_and_change_their_type(shop: Shop) -> None:
    lab = shop.lab
    lab.write("sources/files.yml", FILES)
    for name in ("text", "columnar"):
        lab.model(
            f"{name}_table",
            f"/*---\nstreams: [files.{name}]\n---*/\nselect * from {{{{ source('files', '{name}') }}}}\n",
        )
    avro, plain = shop.topic(), shop.topic()
    reader = shop.registry.register(f"{avro}-value", PLAIN)
    shop.source(
        "binary",
        AVRO.replace("main}", f"main, schema_id: {reader}}}"),
        avro,
        'schema: "id int, kind string"',
        "on_bad_record: quarantine",
    )
    shop.source("lines", "json", plain, 'schema: "id int, kind string"', "on_bad_record: quarantine")
    for number, more, schema, columns in STEPS:
        row = {"id": number, **more}
        shop.send(avro, schema, [row])
        shop.broker.send(plain, [row])
        lab.land(str(number), [row], "landing/text")
        land(
            lab,
            f"{number}.parquet",
            spark_file(lab, "parquet", [tuple(row.values())], columns),
            folder="landing/columnar",
        )
    lab.build()
    missing = {"binary": "none"}  # the reader's default
    tables = ("binary", "lines", "text", "columnar")
    expected = {name: [(1, "a"), (2, "b"), (3, missing.get(name))] for name in tables}
    assert {name: rows(lab, name) for name in tables} == expected

    retyped = {"id": "four", "kind": "d"}
    other = shop.registry.register(f"{avro}-other", OTHER)
    shop.broker.send(avro, [framed(other, OTHER, retyped)])
    shop.broker.send(plain, [retyped])
    lab.land("4", [retyped], "landing/text")
    land(
        lab,
        "4.parquet",
        spark_file(lab, "parquet", [("four", "d")], "id string, kind string"),
        folder="landing/columnar",
    )
    result = lab.run("build")
    # The rows of the others that do not fit are in their quarantines.
    assert (result.code, sorted(result.codes())) == (1, ["bad-records"] * 3 + ["source-unreadable"])
    assert "4.parquet: id is string and not int" in result.text
    assert {name: rows(lab, name) for name in tables} == expected
    reasons = {
        name: [(r["reason"], bytes(r["raw"])) for r in lab.rows(f"{name}_table__quarantine")] for name in tables[:3]
    }
    line = json.dumps(retyped).encode()
    assert reasons == {
        "binary": [
            (
                f"incompatible writer schema {other}: the field 'id': string cannot be read as int",
                framed(other, OTHER, retyped),
            )
        ],
        "lines": [("'id' is not of type int: \"four\"", line)],
        "text": [("'id' is not of type int: \"four\"", line)],
    }


def rows(lab: Lab, name: str) -> list[tuple[int, str]]:
    return sorted((row["id"], row["kind"]) for row in lab.rows(f"{name}_table"))
