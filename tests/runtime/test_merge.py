"""Tables with a `unique_key`: each micro-batch is merged, and the newest row of a key is in the table."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any

import pytest

from engine.compile import compile_project
from engine.lake.merge_statement import Range
from engine.project import load_project
from engine.runtime.sinks.merge_output import Merges
from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCE = sources_yaml(
    events={
        "max_files_per_trigger": 1,
        "schema": "id int, part string, seq int, sub int, op string, v double, at timestamp, m map<string, int>",
    },
    names={"format": "csv", "path": "landing/names", "schema": "id int, name string"},
)
UPSERT = """/*---
streams: [shop.events]
unique_key: [part, id]
{more}---*/
select part, id, seq, sub, v, m, op from {{{{ source('shop', 'events') }}}}
"""
Row = dict[str, Any]
Key = tuple[str | None, int | None]


def change(
    part: str | None, number: int | None, seq: int | None, v: float, op: str = "u", sub: int = 0, **more: Any
) -> Row:
    return {"part": part, "id": number, "seq": seq, "sub": sub, "v": v, "op": op, **more}


def prepare(lab: Lab, *, more: str, batches: Iterable[list[Row]], name: str = "latest", text: str = UPSERT) -> Lab:
    lab.write("sources/shop.yml", SOURCE)
    lab.model(name, text.format(more=more))
    land(lab, batches)
    return lab


def land(lab: Lab, batches: Iterable[list[Row]]) -> None:
    for number, batch in enumerate(batches):
        lab.land(f"{len(list(lab.root.glob('landing/events/*'))):03}-{number:03}", batch)


def newest(batches: Iterable[list[Row]]) -> dict[Key, float]:
    """The golden table: a fold over all changes; an older one never wins, on a tie the earlier batch does."""
    known: dict[Key, tuple[tuple[int, int], Row]] = {}
    for batch in batches:
        best: dict[Key, tuple[tuple[int, int], Row]] = {}
        for row in batch:
            key, at = (row["part"], row["id"]), (-1 if row["seq"] is None else row["seq"], row["sub"])
            # On a tie within a batch all columns decide: `m` is NULL here, then `op`, then `v`.
            if key not in best or (at, row["v"], row["op"]) > (best[key][0], best[key][1]["v"], best[key][1]["op"]):
                best[key] = (at, row)
        for key, (at, row) in best.items():
            if key not in known or at > known[key][0]:
                known[key] = (at, row)
    return {key: row["v"] for key, (_, row) in known.items() if row["op"] != "d"}


def table(lab: Lab, name: str = "latest") -> dict[Key, float]:
    rows = lab.rows(name)
    found = {(r["part"], r["id"]): r["v"] for r in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def out_of_order(seed: int, batches: int, rows: int = 30) -> list[list[Row]]:
    """Inserts, updates and deletes of few keys, some with NULLs, in any order."""
    rng = random.Random(seed)

    def one() -> Row:
        number = rng.choice([1, 2, 3, 4, 5, None])
        op = rng.choice("ucccd")
        return change(
            rng.choice(["a", "b", None]), number, rng.randrange(40), rng.randrange(1000) / 4, op, rng.randrange(2)
        )

    return [[one() for _ in range(rows)] for _ in range(batches)]


@pytest.mark.nightly_cases("more")
@pytest.mark.parametrize(("seed", "number"), [(1, 3), (2, 6)], ids=["few", "more"])
def test_changes_in_any_order_give_the_newest_row_of_each_key(lab: Lab, seed: int, number: int) -> None:
    batches = out_of_order(seed, number)
    prepare(
        lab, more="sequence_by: [seq, sub]\ndelete_when: op = 'd'\nexclude: [op]\npartition_by: part\n", batches=batches
    )
    result = lab.build().model("latest")
    assert table(lab) == newest(batches)
    assert set(lab.rows("latest")[0]) == {"part", "id", "seq", "sub", "v", "m"}
    assert result["rows_updated"] > 0
    assert result["rows_deleted"] > 0
    facts = lab.table("latest")
    assert facts is not None
    assert sorted(int(s.marker("batch-id") or -1) for s in facts.history) == list(range(len(batches)))
    inserted = result["rows_out"] - result["rows_updated"]
    assert inserted - result["rows_deleted"] == len(table(lab))
    before = lab.snapshot("latest"), lab.snapshot("latest__deleted")
    assert lab.build().model("latest")["status"] == "unchanged"
    assert (lab.snapshot("latest"), lab.snapshot("latest__deleted")) == before
    # All in one batch.
    one = Lab(lab.root / "one", lab.session, lab.capsys)
    whole = [[row for batch in batches for row in batch]]
    prepare(one, more="sequence_by: [seq, sub]\ndelete_when: op = 'd'\n", batches=whole)
    one.build()
    assert table(one) == newest(whole)


def test_partitions_in_which_no_key_can_be_are_not_read(lab: Lab) -> None:
    prepare(lab, more="partition_by: part\n", batches=[[change("a'b", 1, 1, 1.0), change("c", 1, 1, 1.0)]])
    lab.build()
    (lost,) = (lab.lake_path / "warehouse" / lab.schema / "latest" / "data").glob("part=c/*.parquet")
    lost.rename(lost.with_suffix(".lost"))
    land(lab, [[change("a'b", 1, 1, 2.0), change("a'b", 2, 1, 2.0)]])
    lab.build()
    lost.with_suffix(".lost").rename(lost)
    assert table(lab) == {("a'b", 1): 2.0, ("a'b", 2): 2.0, ("c", 1): 1.0}


def test_without_a_sequence_the_batch_wins_and_two_rows_of_a_key_are_refused(lab: Lab) -> None:
    prepare(lab, more="", batches=[[change("a", 1, 9, 1.0), change(None, None, 9, 2.0)], [change("a", 1, 1, 3.0)]])
    lab.build()
    assert table(lab) == {("a", 1): 3.0, (None, None): 2.0}
    before = lab.snapshot("latest")
    land(lab, [[change("a", 7, 1, 1.0), change("a", 7, 2, 2.0), change("b", 1, 2, 2.0)]])
    failed = lab.run("build")
    assert failed.codes() == ["duplicate-key"]
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed"]
    assert '{"part":"a","id":7}' in found["message"]
    assert "sequence_by" in found["hint"]
    assert lab.snapshot("latest") == before


def test_maps_decide_ties_and_a_batch_without_rows_commits_nothing(lab: Lab) -> None:
    first = [change("a", 1, 1, 1.0, m={"x": 1}), change("a", 1, 1, 1.0, m={"x": 2}), change("b", 2, None, 1.0)]
    text = UPSERT.rstrip() + " where v > 0\n"
    prepare(
        lab, more="sequence_by: seq\n", batches=[first, [change("a", 9, 1, -1.0)], [change("b", 2, 0, 5.0)]], text=text
    )
    result = lab.build().model("latest")
    assert table(lab) == {("a", 1): 1.0, ("b", 2): 5.0}
    (tied,) = [dict(r["m"]) for r in lab.rows("latest") if r["id"] == 1]
    assert tied == {"x": 2}
    facts = lab.table("latest")
    assert facts is not None
    assert (result["batches"], [s.marker("batch-id") for s in facts.history]) == (3, ["2", "0"])
    assert facts.properties["write.merge.mode"] == "merge-on-read"
    assert facts.properties["write.merge.isolation-level"] == "snapshot"


COUNTS = """/*---
streams: [shop.events]
output_mode: update
---*/
select part, count(*) as n, sum(v) as v from {{ source('shop', 'events') }} group by part
"""
HOURS = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
output_mode: update
partition_by: day(hour) as day
---*/
select hour.start as hour, part, count(*) as n from {{ source('shop', 'events') }} group by hour, part
"""


@pytest.mark.nightly
def test_an_aggregate_in_update_mode_holds_the_latest_of_each_group(lab: Lab) -> None:
    prepare(lab, more="", batches=[], name="unused")
    (lab.root / "models" / "unused.sql").unlink()
    lab.model("counts", COUNTS)
    lab.model("hours", HOURS)

    def at(clock: str, part: str | None, v: float = 1.0) -> Row:
        return change(part, 1, 1, v, at=f"2024-05-01T{clock}:00Z")

    land(
        lab,
        [
            [at("10:05", "a"), at("10:06", None)],
            [at("10:59", "a"), at("12:30", "b")],
            [at("10:59", "a")],
            [at("10:58", "a")],
        ],
    )
    result = lab.build()
    assert {r["part"]: (r["n"], r["v"]) for r in lab.rows("counts")} == {"a": (4, 4.0), "b": (1, 1.0), None: (1, 1.0)}
    # The third batch still takes rows of hour 10, with the watermark with which the second began; the fourth does not.
    assert {(r["hour"].hour, r["part"]): r["n"] for r in lab.rows("hours")} == {
        (10, "a"): 3,
        (10, None): 1,
        (12, "b"): 1,
    }
    assert result.model("hours")["late"] == 1
    counted = result.model("counts")
    assert (counted["rows_out"], counted["rows_updated"], counted["rows_deleted"]) == (6, 3, 0)
    land(lab, [[at("12:40", None)]])
    lab.build()
    assert {r["part"]: r["n"] for r in lab.rows("counts")} == {"a": 4, "b": 1, None: 2}
    # Built anew, with the key and its windows.
    lab.build("-f", "-s", "counts")
    assert {r["part"]: r["n"] for r in lab.rows("counts")} == {"a": 4, "b": 1, None: 2}
    land(lab, [[at("12:41", "c")]])
    lab.build()
    assert {r["part"]: r["n"] for r in lab.rows("counts")} == {"a": 4, "b": 1, None: 2, "c": 1}


def test_rows_that_fail_a_check_go_to_the_quarantine_and_an_older_good_row_stays(lab: Lab) -> None:
    checks = "expectations: [{name: small, check: v < 100, on_fail: quarantine}]\n"
    more = "sequence_by: seq\ndelete_when: op = 'd'\n" + checks
    batches = [
        [change("a", 1, 1, 1.0), change("a", 1, 2, 500.0)],
        [change("a", 1, 3, 600.0, "d"), change("b", 1, 1, 2.0)],
    ]
    prepare(lab, more=more, batches=batches)
    result = lab.build().model("latest")
    assert table(lab) == {("a", 1): 1.0, ("b", 1): 2.0}
    assert result["quarantined"] == 2
    assert lab.table("latest__deleted") is None
    assert len(lab.rows("latest__quarantine")) == 2


def test_deletes_are_forgotten_after_their_time(lab: Lab) -> None:
    more = "sequence_by: seq\ndelete_when: op = 'd'\ndeletes_remembered: 1 hour\n"
    prepare(lab, more=more, batches=[[change("a", 1, 5, 1.0, "d")], [change("a", 1, 4, 1.0)]])
    lab.build()
    assert table(lab) == {}
    assert len(lab.rows("latest__deleted")) == 1
    # Two batches of one build may be further apart than a second, and two builds nearer.
    lab.model("latest", UPSERT.format(more=more.replace("1 hour", "1 second")))
    time.sleep(1.1)
    land(lab, [[change("b", 1, 5, 1.0, "d")], [change("a", 1, 4, 2.0)]])
    lab.build()
    # The second delete has put the first one out of mind.
    assert [r["key"] for r in lab.rows("latest__deleted")] == [{"part": "b", "id": 1}]
    assert table(lab) == {("a", 1): 2.0}


def test_a_key_in_an_hour_that_a_zone_has_twice_is_one_key(lab: Lab) -> None:
    text = "/*---\nstreams: [shop.events]\nunique_key: [at, id]\npartition_by: day(at)\n---*/\n"
    lab.model("paid", text + "select id, at, amount from {{ source('shop', 'events') }}\n")
    lab.land("a", [{"id": 1, "at": "2024-11-03T06:30:00Z", "amount": 1.0}])
    lab.build()
    compiled = compile_project(load_project(lab.root))
    session = lab.session.spark.newSession()  # type: ignore[union-attr]
    # 01:30 there is 05:30 and 06:30 of UTC.
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    rows = session.read.schema("id int, at timestamp, amount double").json(f"file:{lab.root}/landing/events")
    merged = Merges(compiled.manifest.models[0], f"lake.{lab.schema}.paid", None).prepare(rows, "a query")
    assert [part.column for part in merged.ranges] == ["at"]
    merged.commit({"batch-id": "7", "run-id": "another"})
    merged.close()
    assert len(lab.rows("paid")) == 1
    # Days are numbers too.
    days = Range("on", "date", "19722", "19723")
    assert days.sql(0).endswith("date_from_unix_date(CAST(:greatest_0 AS int))")
    assert days.parameters(0) == {"least_0": "19722", "greatest_0": "19723"}
