"""Streaming tables end to end: files in, Iceberg rows out, once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.lab import EVENTS, Lab, event

pytestmark = pytest.mark.spark

PAID = """/*---
streams: [shop.events]
---*/
select id, at, amount from {{ source('shop', 'events') }} where kind = 'paid'
"""

HOURLY = """/*---
streams:
  shop.events:
    watermark: at delay 10 minutes
    max_files_per_trigger: 1
windows:
  hour: tumbling(at, 1 hour)
---*/
select hour.start as hour, count(*) as n, sum(amount) as amount
from {{ source('shop', 'events') }}
group by hour
"""


def hour(number: int) -> datetime:
    return datetime(2024, 5, 1, number, tzinfo=UTC)


def test_new_files_are_read_once_and_a_build_without_news_commits_nothing(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, "10:00"), event(2, "10:01", "open")])
    lab.land("b", [event(3, "10:02")])
    first = lab.build().model("paid")
    assert (first["rows_in"], first["rows_out"], first["status"]) == (3, 2, "success")

    before = lab.snapshot("paid")
    again = lab.build().model("paid")
    assert (again["status"], again["message"], again["rows_in"]) == ("unchanged", "no new data", 0)
    assert lab.snapshot("paid") == before

    lab.land("c", [event(4, "10:03")])
    third = lab.build().model("paid")
    assert (third["rows_in"], third["rows_out"], third["batches"]) == (1, 1, 1)
    assert lab.ids("paid") == [1, 3, 4]


def test_a_batch_without_rows_commits_nothing_and_is_recorded(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, "10:00")])
    lab.build()
    before, batch = lab.snapshot("paid"), lab.model_json("paid")["batch"]
    lab.land("b", [event(2, "10:01", "open")])
    result = lab.build().model("paid")
    assert (result["rows_in"], result["rows_out"]) == (1, 0)
    assert lab.snapshot("paid") == before
    assert lab.model_json("paid")["batch"] == batch + 1


def test_closed_windows_are_written_once_and_late_rows_are_counted(lab: Lab) -> None:
    lab.model("hourly", HOURLY)
    lab.land("a", [event(1, "10:05"), event(2, "10:50")])
    lab.land("b", [event(3, "11:40")])  # moves the watermark to 11:30
    lab.land("c", [event(4, "10:59"), event(5, "11:41")])  # 10:00 is closed by the batch after b's
    lab.land("d", [event(6, "10:58"), event(7, "13:00")])
    result = lab.build().model("hourly")
    # In batch c the late filter still uses the watermark with which batch b began (10:40), so event 4
    # counts; in batch d it is 11:30 and event 6 is late.
    assert result["late"] == 1
    assert sorted((r["hour"], r["n"]) for r in lab.rows("hourly")) == [(hour(10), 3), (hour(11), 2)]
    assert result["state_rows"] == 1
    assert result["watermark"].startswith("2024-05-01T12:50")


def test_commits_carry_markers_and_state_points_to_facts(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, "10:00")])
    lab.build()
    table = lab.table("paid")
    assert table is not None
    marks = table.history[0]
    state = lab.model_json("paid")
    assert marks.marker("model") == "paid"
    assert marks.marker("generation") == "1"
    assert int(marks.marker("batch-id") or -1) == state["batch"] == 0
    assert marks.marker("fingerprint") == state["fingerprint"]
    assert (marks.id, table.uuid) == (state["snapshot"], state["uuid"])
    assert (lab.state / "paid" / "1" / "facts" / f"{state['fingerprint']}.json").exists()
    assert (lab.root / ".engine" / "state").stat().st_mode & 0o777 == 0o700


def test_a_stream_of_a_model_reads_its_table_from_the_first_row_on(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, "10:00"), event(2, "10:10")])
    lab.build()
    lab.land("b", [event(3, "10:20", amount=5.0)])
    lab.build()
    lab.model("large", "/*---\nstreams: [paid]\n---*/\nselect id, amount * 2 as twice from {{ ref('paid') }}\n")
    first = lab.build().model("large")
    assert (first["rows_in"], first["rows_out"]) == (3, 3)
    lab.land("c", [event(4, "10:30")])
    second = lab.build().model("large")
    assert (second["rows_in"], second["rows_out"]) == (1, 1)
    assert lab.build().model("large")["status"] == "unchanged"
    assert sorted((r["id"], r["twice"]) for r in lab.rows("large")) == [(1, 2.0), (2, 2.0), (3, 10.0), (4, 2.0)]


def test_repeats_within_the_watermarks_delay_are_dropped(lab: Lab) -> None:
    lab.model(
        "unique_events",
        """/*---
streams:
  shop.events: {watermark: at delay 1 hour, dedup: [id], max_files_per_trigger: 1}
---*/
select id, amount from {{ source('shop', 'events') }}
""",
    )
    lab.land("a", [event(1, "10:00"), event(1, "10:00"), event(2, "10:01")])
    lab.land("b", [event(2, "10:01"), event(3, "10:02")])
    lab.build()
    assert lab.ids("unique_events") == [1, 2, 3]


def test_a_watermark_by_expression_adds_the_column(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS.replace("at timestamp", "at string"))
    lab.model(
        "hourly",
        HOURLY.replace("watermark: at delay", "watermark: cast(at as timestamp) as event_at delay").replace(
            "tumbling(at,", "tumbling(event_at,"
        ),
    )
    lab.land("a", [event(1, "10:05")])
    lab.land("b", [event(2, "12:00")])
    lab.build()
    assert [(r["hour"], r["n"]) for r in lab.rows("hourly")] == [(hour(10), 1)]


@pytest.mark.nightly_cases("hour, hour.end-hour.start as began", "began-hour.start as began", "1-hour.start as began")
@pytest.mark.parametrize(
    ("group", "select"),
    [
        ("hour", "hour.start as hour"),
        ("1", "hour.start as began"),
        ("began", "hour.start as began"),
        ("hour.start", "hour.start as began"),
        ("all", "hour as whole"),
        ("hour, hour.end", "hour.start as began"),
    ],
)
def test_every_way_to_group_by_a_window_is_accepted_by_spark(lab: Lab, group: str, select: str) -> None:
    text = HOURLY.replace("hour.start as hour, ", f"{select}, ").replace("group by hour", f"group by {group}")
    lab.model("hourly", text)
    lab.land("a", [event(1, "10:05"), event(2, "10:06")])
    lab.land("b", [event(3, "12:00")])
    lab.build()
    assert [r["n"] for r in lab.rows("hourly")] == [2]


def test_partitions_and_properties_reach_the_table(lab: Lab) -> None:
    lab.model(
        "paid",
        PAID.replace(
            "streams:",
            "partition_by: [day(at), 'bucket(4, id)']\ntable_properties: {write.parquet.compression-codec: gzip}\nstreams:",
        ),
    )
    lab.land("a", [event(1, "10:00")])
    lab.build()
    table = lab.table("paid")
    assert table is not None
    assert table.properties["write.parquet.compression-codec"] == "gzip"
    assert table.properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert table.properties["engine.model"] == "paid"
    files = data_files(lab, "paid")
    assert any("at_day=2024-05-01" in f and "id_bucket=" in f for f in files), files


def data_files(lab: Lab, table: str) -> list[str]:
    folder = lab.lake_path / "warehouse" / lab.schema / table / "data"
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*.parquet")]


def test_the_pyspark_script_of_a_model_gives_the_same_rows(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.model("hourly", HOURLY.replace("delay 10 minutes", "delay 10 minutes\n    dedup: [id]"))
    lab.land("a", [event(1, "10:05"), event(1, "10:05"), event(2, "10:50")])
    lab.land("b", [event(3, "12:40")])
    lab.build()
    text = (lab.root / "target/compiled/lab/models/hourly.py").read_text()
    text = text.replace(f"lake.{lab.schema}.hourly", f"lake.{lab.schema}.by_hand")
    monkeypatch.chdir(lab.root)
    # Spark resolves relative paths against the folder its JVM was started in.
    text = text.replace('"landing/', f'"{lab.root}/landing/').replace('"checkpoints/', f'"{lab.root}/checkpoints/')
    exec(compile(text, "hourly.py", "exec"), {})
    assert lab.rows("by_hand") == lab.rows("hourly") == [{"hour": hour(10), "n": 2, "amount": 2.0}]


def test_an_event_time_beyond_pythons_years_stops_neither_a_build_nor_the_docs(lab: Lab) -> None:
    hourly = "/*---\nstreams: {{shop.events: {{watermark: at delay 1 hour}}}}\nwindows: {{hour: 'tumbling(at, 1 hour)'}}\n---*/\nselect hour.start as hour, count(*) as n from {}{} group by hour"
    source = "{{ source('shop', 'events') }}"
    lab.model("hourly", hourly.format(source, ""))
    lab.land("a", [{"id": 1, "at": "2024-05-01T10:05:00Z"}, {"id": 2, "at": "+12345-01-01T00:00:00Z"}])
    lab.build()
    lab.land("b", [{"id": 3, "at": "+12345-01-01T05:00:00Z"}])
    lab.build()
    assert lab.run("docs", "generate").code == 0
    assert lab.run("show", "hourly", "--table").code == 0
