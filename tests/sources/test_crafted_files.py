"""Files of a source that were crafted: what Spark's readers make of lying sizes, and wrong bytes is a diagnostic."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lab import Lab
from tests.sources.test_files import ROWS, SCHEMA, land, spark_file

pytestmark = pytest.mark.spark
SEED = 31
TABLE = "/*---\nmaterialized: table\n---*/\n"


def flipped(content: bytes, chance: random.Random, begin: int) -> bytes:
    made = bytearray(content)
    for _ in range(20):
        made[chance.randrange(begin, len(made))] = chance.randrange(256)
    return bytes(made)


def crafted(format_: str, whole: bytes) -> dict[str, bytes]:
    chance = random.Random(f"{SEED}/{format_}")
    made = {
        "cut": whole[: len(whole) // 2],
        "no end": whole[:-3],
        "only its name": whole[:4],
        "noise": whole[:4] + chance.randbytes(4000) + whole[-4:],
        "flipped": flipped(whole, chance, 4),
        "another": b"PK\3\4" + whole,
    }
    if format_ == "parquet":
        made["a footer that is too long"] = whole[:-8] + struct.pack("<I", 0x7FFFFFF0) + whole[-4:]
    if format_ == "orc":
        made["a postscript that is too long"] = whole[:-1] + b"\xff"
    if format_ == "avro":
        made["a block of two billion"] = whole[:-40] + b"\xff\xff\xff\xff\x0f" * 4 + whole[-20:]
    return made


def test_crafted_files_are_diagnostics_and_the_session_goes_on(lab: Lab) -> None:
    tables = []
    for format_ in ("parquet", "orc", "avro"):
        for number, content in enumerate(crafted(format_, spark_file(lab, format_, ROWS, SCHEMA)).values()):
            name = f"{format_}_{number}"
            land(lab, f"crafted.{format_}", content, folder=f"landing/{name}")
            tables.append(f'      - {{name: {name}, format: {format_}, path: landing/{name}, schema: "{SCHEMA}"}}\n')
            lab.write(f"models/{name}.sql", f"{TABLE}select * from {{{{ source('shop', '{name}') }}}}")
    lab.write("sources/shop.yml", "sources:\n  - name: shop\n    tables:\n" + "".join(tables))
    result = lab.run("build")
    assert result.code == 1
    assert len(result.codes()) > 2 * len(tables) // 3
    # A flipped byte may be one of a value.
    assert set(result.codes()) == {"source-unreadable"}
    lab.write("models/after.sql", f"{TABLE}select 1 as id")
    assert lab.run("build", "--select", "after").code == 0
