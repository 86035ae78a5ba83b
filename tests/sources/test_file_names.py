"""Which files are listed, against what Spark lists and reads: more than two hundred odd names, as a batch and as a stream."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine import local_paths
from engine.ignored_file_names import holds_rows, is_listed
from engine.sources import listing
from engine.sources.spec import Place, SourceSpec
from engine.state.file_log import logged
from tests.lab import Lab, event, run_alone

BEGINS = ("", "_", ".", "__", "_.", "._", "_metadata", "_common_metadata", "=", "-", "~", "#")
ENDS = ("a", "a=1", "a.json", "a._COPYING_", "a=1._COPYING_", "a.json_", "")
ODD = (
    "sp ace.json", " start", "end ", "pct%20.json", "pct%.json", "%41", "%C3%A9", "é%C3%A9", "+", "a&b;c,d|e",
    "\u00e9.json", "e\u0301.json", "日本.json", "😀", "\u2028x", "nbsp\u00a0", "zero\u200bwidth", "tab\t", "new\nline", "cr\r", "\x01",
    "[a]", "{a,b}", "*", "?", "a*?[b]{c}", "back\\slash", "\\*", "q'uote", 'dq"', "`", "$(id)", "a#b", "a?b=c", "^", "a=b=c",
    "_SUCCESS", "_committed_1", "_started_1", "_temporary", ".crc", ".part-0.json.crc", "_x_", "x_", "_k=v w", "_k=é", "...",
    "A" * 200, "part-00000-0000.c000.snappy.parquet", "_metadata.json", "_metadata=1", "_common_metadata.crc", "_METADATA", "_Metadata=1",
    "x._copying_", "_COPYING_", "._COPYING_", "x._COPYING_x", "_x=._COPYING_", "a.gz.json", "nul", "con", "-rf", "--", "0", "é=",
)  # fmt: skip
NAMES = sorted({*(begin + end for begin, end in product(BEGINS, ENDS)), *ODD} - {"", ".", "..", "é%C3%A9.gz"})
FOLDERS = ("_d", "_d=1", ".d", ".d=1", "d=1", "_metadata", "_common_metadata_d", "d._COPYING_", "d [x]", "d%20", "é", "e\u0301", "_d=._COPYING_")  # fmt: skip
STREAM = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"
SOURCE = """
sources:
  - name: shop
    tables:
      - name: events
        format: {format}
        path: landing/events
        schema: "{schema}"
"""


def fill(top: Path, chance: random.Random) -> None:
    """A tree with all names as files, some of them in folders of all kinds, and an empty file in each."""
    folders = [top, *(top / name for name in FOLDERS), *(top / one / two for one in FOLDERS[:6] for two in FOLDERS[:6])]
    for folder in folders:
        folder.mkdir(parents=True)
    for folder in folders:
        (folder / "empty").touch()
        for name in NAMES if folder == top else chance.sample(NAMES, 20):
            if not (folder / name).exists():
                (folder / name).write_text("a row\n")


def spec(top: Path) -> SourceSpec:
    return SourceSpec("s.t", "text", "", settings={"path": str(top)})


def test_there_are_enough_names():
    assert len(NAMES) > 140
    assert {(is_listed(name), holds_rows(name)) for name in NAMES} == {
        (True, True), (False, False), (True, False), (False, True),
    }  # fmt: skip


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_files_are_listed_as_spark_reads_them(lab_session, tmp_path, seed):
    session = lab_session.spark
    top, checkpoint = tmp_path / "landing [1]", tmp_path / "checkpoint"
    fill(top, random.Random(seed))
    place = Place(tmp_path)
    ours = {file.uri for file in listing.listed_here(spec(top), place) or ()}
    assert len(ours) > 200
    options = {"recursiveFileLookup": "true", "maxFileAge": "36500d"}
    path = listing.for_spark(spec(top), place)
    batch = session.read.format("text").options(**options).load(path).selectExpr("_metadata.file_path")
    with_rows = {uri for uri in ours if not uri.endswith("/empty")}
    assert {local_paths.decoded(row[0]) for row in batch.collect()} == with_rows

    read: list[Any] = []
    stream = session.readStream.format("text").schema("value string").options(**options).load(path)
    query = (
        stream.selectExpr("_metadata.file_path")
        .writeStream.foreachBatch(lambda frame, _: read.extend(frame.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert {local_paths.decoded(row[0]) for row in read} == with_rows
    # What the stream has noted is what is listed, so that nothing of it is ever missing.
    assert {local_paths.decoded(file.uri) for file in logged(checkpoint, 0)} == ours


@pytest.mark.spark
def test_rows_below_hive_folders_that_begin_with_an_underscore_are_never_missed(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE.format(format="json", schema="id int, at timestamp"))
    lab.model("stream", STREAM)
    lab.model("batch", STREAM.partition("*/\n")[2])
    lab.land("a", [event(1)])
    lab.build()
    lab.land("b", [event(2)], "landing/events/_date=2024-05-02")
    assert "b.json" in lab.run("plan").text
    lab.land("_c=1", [event(3)])
    lab.build()
    assert lab.ids("stream") == lab.ids("batch") == [1, 2, 3]
    again = lab.build()
    assert {e["message"] for e in again.events if e["event"] == "ModelFinished"} <= {"no new data", "unchanged"}


@pytest.mark.spark
def test_a_stream_is_not_stuck_by_a_file_of_such_a_name_that_it_has_noted(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE.format(format="json", schema="id int, at timestamp"))
    lab.model("stream", STREAM)
    lab.land("a", [event(1)])
    lab.build()
    lab.land("b", [event(2)], "landing/events/_date=2024-05-02")
    noted_and_not_read(lab, "stream")
    assert lab.run("plan").codes() == []
    lab.build()
    assert lab.ids("stream") == [1, 2]


@pytest.mark.spark
def test_the_summaries_of_parquet_may_come_and_go(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE.format(format="json", schema="id int, at timestamp"))
    lab.model("stream", STREAM)
    lab.land("a", [event(1)])
    summary = lab.root / "landing/events/_metadata"
    summary.write_text("a")
    lab.build()
    summary.write_text("another")
    lab.land("b", [event(2)])
    noted_and_not_read(lab, "stream")
    summary.unlink()
    assert lab.run("plan").codes() == []
    lab.build()
    assert lab.ids("stream") == [1, 2]


@pytest.mark.spark
@pytest.mark.parametrize("locale", ["C"])
def test_names_are_the_same_in_every_locale(tmp_path: Path, locale: str) -> None:
    alone = Lab(tmp_path, None, None)
    alone.write("sources/shop.yml", SOURCE.format(format="json", schema="id int, at timestamp"))
    alone.model("stream", STREAM)
    for number, name in enumerate(("a", "é", "日本")):
        alone.land(name, [event(number)])
    ended = run_alone(tmp_path, "build", env={"LC_ALL": locale})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert alone.ids("stream") == [0, 1, 2]


def noted_and_not_read(lab: Lab, name: str) -> None:
    """Leave what a build leaves that ends after Spark has noted new files and before it has read them."""
    checkpoint = lab.state / name / "1" / "checkpoint"
    last = max(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
    entry = max(int(path.name) for path in (checkpoint / "sources/0").iterdir() if path.name.isdigit()) + 1
    known = (checkpoint / f"sources/0/{entry - 1}").read_text()
    new = [path for path in (lab.root / "landing/events").rglob("*") if path.is_file() and path.name not in known]
    new += [path for path in (lab.root / "landing/events").glob("_metadata") if path not in new]
    lines = [
        json.dumps({"path": f"file://{path}", "timestamp": path.stat().st_mtime_ns // 1_000_000, "batchId": entry})
        for path in new
    ]
    (checkpoint / f"sources/0/{entry}").write_text("\n".join(["v1", *lines]))
    offsets = (checkpoint / f"offsets/{last}").read_text()
    (checkpoint / f"offsets/{last + 1}").write_text(offsets.replace(f'"logOffset":{entry - 1}', f'"logOffset":{entry}'))
