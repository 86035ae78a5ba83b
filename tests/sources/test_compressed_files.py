"""Compressed files as their own tools write them, and files that are not what their names say."""

from __future__ import annotations

import bz2
import gzip
import random
import struct
import zlib

import pyarrow as pa
import pytest

from tests.lab import Lab
from tests.sources.test_files import diagnosed, land, read, rows_of, sources, table

LINES = b'{"id": 1}\n{"id": 2}\n'
ROWS = [(1,), (2,)]


def block(codec: str) -> bytes:
    """A block as Hadoop writes it, with both sizes before it."""
    packed = pa.compress(LINES, codec=codec, asbytes=True)
    return struct.pack(">II", len(LINES), len(packed)) + packed


def snappy_frames() -> bytes:
    """The framing format of snappy: its mark, and the lines as they are with their sum (CRC-32C, masked)."""
    crc = 0xFFFFFFFF
    for byte in LINES:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return (
        b"\xff\x06\x00\x00sNaPpY" + b"\x01" + struct.pack("<I", len(LINES) + 4)[:3] + struct.pack("<I", masked) + LINES
    )


def frames(codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(LINES)
    return bytes(sink.getvalue())


def independent(lab: Lab) -> bytes:
    """Frames of lz4 as its own tool writes them."""
    assert lab.session is not None
    jvm = lab.session.spark._jvm
    sink = jvm.java.io.ByteArrayOutputStream()
    out = jvm.net.jpountz.lz4.LZ4FrameOutputStream(sink)
    out.write(bytearray(LINES))
    out.close()
    return bytes(sink.toByteArray())


READ = {
    "blocks.lz4": lambda: block("lz4_raw"),
    "frames.snappy": snappy_frames,
    "blocks.snappy": lambda: block("snappy"),
    "a.zst": lambda: frames("zstd"),
    "a.gz": lambda: gzip.compress(LINES),
    "a.bz2": lambda: bz2.compress(LINES),
    "a.deflate": lambda: zlib.compress(LINES),
}


@pytest.mark.spark
def test_files_are_read_as_each_tool_writes_them(lab: Lab) -> None:
    contents = {"frames.lz4": independent(lab), **{name: content() for name, content in READ.items()}}
    names = [name.replace(".", "_") for name in contents]
    sources(lab, *(table("json", "", "id int", f"landing/{name}", name) for name in names))
    for name, (file, content) in zip(names, contents.items(), strict=True):
        read(lab, name, "streamed")
        land(lab, f"{file.split('.')[0]}.json.{file.split('.')[1]}", content, folder=f"landing/{name}")
    lab.build()
    assert {name: rows_of(lab, f"{name}_streamed") for name in names} == dict.fromkeys(names, ROWS)


@pytest.mark.spark
def test_files_that_are_not_what_their_names_say_are_named(lab: Lab) -> None:
    noise = random.Random(5).randbytes(300)
    raw = pa.compress(LINES * 40, codec="snappy", asbytes=True)
    wrong = {
        "lz4": (LINES, noise, b"\x02\x21\x4c\x18" + noise, independent(lab)[:-6], raw, frames("lz4")),
        "snappy": (LINES, noise, raw, snappy_frames()[:-5], frames("lz4")),
        "zst": (LINES, noise, frames("zstd")[:-4]),
        "gz": (LINES, noise),
        "bz2": (LINES, noise, bz2.compress(LINES)[:-20]),
        "deflate": (LINES, noise),
    }
    cases = {f"{suffix}_{n}": (suffix, one) for suffix, contents in wrong.items() for n, one in enumerate(contents)}
    sources(lab, *(table("json", "on_bad_record: drop", "id int", f"landing/{name}", name) for name in cases))
    for name, (suffix, content) in cases.items():
        lab.model(name, f"select * from {{{{ source('shop', '{name}') }}}}\n")
        land(lab, f"a.json.{suffix}", content, folder=f"landing/{name}")
    found = diagnosed(lab.run("build"))
    assert set(found) == set(cases)
    for name, (suffix, _) in cases.items():
        code, text = found[name]
        assert code == "source-unreadable", name
        assert f"landing/{name}/a.json.{suffix} cannot be read" in text, text
    assert "it is not in the format of its name" in found["lz4_0"][1]
    assert "its blocks of lz4 depend on each other" in found["lz4_5"][1]
