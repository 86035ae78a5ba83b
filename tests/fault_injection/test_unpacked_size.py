"""A file of a source that unpacks to more than Java's memory: one diagnostic, and builds go on without the file."""

from __future__ import annotations

import json
import zlib

import pytest

from tests.lab import Lab, run_alone
from tests.projects import sources_yaml

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SOURCE = sources_yaml(events={"format": "avro", "path": "landing", "schema": "id int"})
MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"
SCHEMA = {"type": "record", "name": "event", "fields": [{"name": "id", "type": "int"}]}
SYNC = b"sixteen bytes..."


def number(value: int) -> bytes:
    """A long as Avro writes it."""
    value <<= 1
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def container(records: int, unpacked: int) -> bytes:
    """A container file (Avro's specification, "Object Container Files") with one block of zeros, packed by deflate."""
    packing = zlib.compressobj(1, zlib.DEFLATED, -15)
    parts = [packing.compress(bytes(min(1 << 20, unpacked - at))) for at in range(0, unpacked, 1 << 20)]
    block = b"".join([*parts, packing.flush()])
    meta = {b"avro.schema": json.dumps(SCHEMA).encode(), b"avro.codec": b"deflate"}
    entries = b"".join(text(key) + text(value) for key, value in meta.items())
    header = b"Obj\x01" + number(len(meta)) + entries + b"\0" + SYNC
    return header + number(records) + text(block) + SYNC


def test_a_block_that_unpacks_to_more_than_java_has(lab: Lab) -> None:
    project = (lab.root / "project.yml").read_text()
    lab.write("project.yml", project.replace("spark: {", "spark: {driver_memory: 480m, "))
    lab.write("sources/shop.yml", SOURCE)
    lab.model("events", MODEL)
    bomb = lab.root / "landing/bomb.avro"
    bomb.parent.mkdir()
    bomb.write_bytes(container(700_000_000, 700_000_000))
    assert bomb.stat().st_size < 10_000_000
    ended = run_alone(lab.root, "build")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert ended.stdout.count('"java-ended"') == 1, ended.stdout
    assert "driver_memory" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    bomb.write_bytes(container(3, 3))
    lab.build()
    assert lab.ids("events") == [0, 0, 0]
