"""Records that cannot be read as declared: each policy in stateless and stateful models, counted, exactly once."""

from __future__ import annotations

import json
import os

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: landing/events
        schema: "id int, at timestamp, kind string, amount double"
        on_bad_record: {policy}
      - name: refunds
        format: json
        path: landing/refunds
        schema: "id int, refunded_at timestamp, amount double"
        on_bad_record: {policy}
"""
STATELESS = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
---*/
select id from {{ source('shop', 'events') }} where id > 0
"""
HOURLY = """/*---
streams:
  shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 1}
windows:
  hour: tumbling(at, 1 hour)
---*/
select hour.start as hour, max(id) as id from {{ source('shop', 'events') }} group by hour
"""
UNIQUE = """/*---
streams:
  shop.events: {watermark: at delay 1 hour, dedup: [id], max_files_per_trigger: 1}
---*/
select id from {{ source('shop', 'events') }}
"""
JOINED = """/*---
streams:
  shop.events: {watermark: at delay 1 hour, max_files_per_trigger: 1}
  shop.refunds: {watermark: refunded_at delay 1 hour, max_files_per_trigger: 1}
---*/
select e.id from {{ source('shop', 'events') }} e join {{ source('shop', 'refunds') }} r
  on e.id = r.id and r.refunded_at between e.at and e.at + interval 1 hour
"""
SELF = """/*---
streams:
  shop.events: {watermark: at delay 1 hour, max_files_per_trigger: 1}
---*/
select a.id from {{ source('shop', 'events') }} a join {{ source('shop', 'events') }} b on a.id = b.id and a.at = b.at
"""
MODELS = {"stateless": STATELESS, "window": HOURLY, "dedup": UNIQUE, "join": JOINED, "self-join": SELF}
POISON = ["{no json", '{"id": "three", "at": "2024-05-01T10:00:00Z"}', '{"id": 3, "at": "yesterday"}']
AFTER = "[1, 2]"


def record(number: int, at: str) -> str:
    return json.dumps(event(number, at))


def land(lab: Lab, name: str, lines: list[str], folder: str = "landing/events") -> None:
    """Land lines as they are; a file that is corrected keeps its time."""
    path = lab.root / folder / f"{name}.json"
    stamp = path.stat().st_mtime if path.exists() else lab.land(name, [], folder).stat().st_mtime
    path.write_text("".join(line + "\n" for line in lines))
    os.utime(path, (stamp, stamp))


def shop(lab: Lab, kind: str, policy: str) -> Lab:
    lab.write("sources/shop.yml", SOURCES.format(policy=policy))
    lab.model("sales", MODELS[kind])
    land(lab, "a", [record(1, "10:05"), *POISON, record(2, "11:05")])
    land(lab, "b", [record(4, "12:10")])
    land(lab, "c", [AFTER, record(9, "16:00")])
    for name, numbers in (("a", (1, 2)), ("b", (4,))):
        refund = [json.dumps({"id": n, "refunded_at": f"2024-05-01T{9 + n if n < 4 else 12}:15:00Z"}) for n in numbers]
        land(lab, name, refund, "landing/refunds")
    return lab


def ids(lab: Lab) -> list[int]:
    return sorted(r["id"] for r in lab.rows("sales") if r["id"] != 9)


def quarantined(lab: Lab) -> list[str]:
    rows = lab.rows("sales__quarantine") if lab.table("sales__quarantine") else []
    return sorted(r["raw"].decode() for r in rows)


@pytest.mark.nightly_except("window")
@pytest.mark.parametrize("kind", MODELS)
def test_bad_records_are_taken_out_and_counted(lab: Lab, kind: str) -> None:
    for policy in ("drop", "quarantine"):
        own = Lab(lab.root / policy, lab.session, lab.capsys)
        result = shop(own, kind, policy).build().model("sales")
        assert ids(own) == [1, 2, 4], policy
        assert result["bad_records"] == {"shop.events": 4}, policy
        assert result["bad_reasons"] == {"shop.events": "'at' is not of type timestamp"}, policy
        assert result["quarantined"] == (4 if policy == "quarantine" else 0)
        assert quarantined(own) == (sorted([*POISON, AFTER]) if policy == "quarantine" else [])
        before = own.snapshot("sales"), own.snapshot("sales__quarantine")
        again = own.build().model("sales")
        assert (again["status"], again["bad_records"]) == ("unchanged", {})
        assert before == (own.snapshot("sales"), own.snapshot("sales__quarantine"))
        kept = json.loads((own.root / "target/run_results.json").read_text())
        assert kept["results"][0]["adapter_response"]["quarantined"] == 0


@pytest.mark.nightly_except("stateless")
@pytest.mark.parametrize("kind", MODELS)
def test_a_bad_record_stops_the_model_until_it_is_corrected(lab: Lab, kind: str) -> None:
    shop(lab, kind, "fail")
    failed = lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["bad-record"])
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed"]
    assert found["message"].startswith("3 records of shop.events cannot be read: ")
    for line, text in enumerate(POISON, 2):
        assert f"landing/events/a.json:{line}: " in found["message"]
        assert f"({text})" in found["message"]
    assert "on_bad_record: quarantine" in found["hint"]
    assert "Traceback" not in failed.text
    assert not lab.table("sales").history  # type: ignore[union-attr]
    land(lab, "a", [record(1, "10:05"), record(2, "11:05")])
    corrected = lab.run("build")
    assert "landing/events/c.json:1: " in corrected.text
    assert "a record of shop.events cannot be read" in corrected.text
    # The other way on: the record goes, the file stays.
    lab.write("sources/shop.yml", SOURCES.format(policy="quarantine"))
    lab.build()
    assert ids(lab) == [1, 2, 4]
    assert quarantined(lab) == [AFTER]


def test_what_is_bad_does_not_depend_on_the_query(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES.format(policy="fail"))
    land(lab, "a", [record(1, "10:05"), POISON[1], POISON[2]])
    selected = ("select count(*) as n", "select kind", "select id")
    wheres = ("", " where id > 100", " where kind is not null and amount < 0", " where 1 = 0", " limit 0")
    queries = [f"{select} from {{{{ source('shop', 'events') }}}}{where}" for select in selected for where in wheres]
    models = {f"sales{number}": query for number, query in enumerate(queries)}
    models["streamed"] = (
        f"/*---\nstreams: [shop.events]\n---*/\n{queries[0].replace('count(*) as n', 'kind')} where 1 = 0"
    )
    for name, text in models.items():
        lab.model(name, text)
    failed = lab.run("build")
    told = {e["node"].split(".")[-1]: e for e in failed.events if e["event"] == "Diagnosed"}
    assert (failed.codes(), set(told)) == (["bad-record"] * len(models), set(models))
    for name, query in models.items():
        assert "2 records of shop.events" in told[name]["message"], query
    shown = lab.run("show", "sales0")
    assert shown.code == 1
    assert "a record of shop.events cannot be read" in shown.text


def test_a_quarantined_record_says_where_it_came_from_and_why(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES.format(policy="quarantine"))
    lab.model("sales", STATELESS)
    land(lab, "a", [record(1, "10:05"), POISON[1]])
    lab.build()
    (row,) = lab.rows("sales__quarantine")
    assert row["raw"].decode() == POISON[1]
    assert "id" in row["reason"]
    assert (row["checks"], row["row"], row["batch_id"]) == (None, None, 0)
    shown = lab.run("show", "sales__quarantine", "--table")
    assert (shown.code, POISON[1] in shown.text.replace('\\"', '"')) == (0, True), shown.text
    origin = json.loads(row["origin"])
    assert origin["source"] == "shop.events"
    assert origin["file_path"].endswith("/landing/events/a.json")
    table = lab.table("sales__quarantine")
    assert table is not None
    assert table.history[0].marker("batch-id") == "0"
    assert table.history[0].marker("fingerprint") == lab.model_json("sales")["fingerprint"]


def test_a_time_that_cannot_be_computed_or_is_far_ahead_is_a_bad_record(lab: Lab) -> None:
    text = SOURCES.format(policy="quarantine").replace("at timestamp", "at string")
    lab.write("sources/shop.yml", text)
    mark = "{column: time, as: cast(at as timestamp), delay: 10 minutes, max_future: 1 hour}"
    lab.model("sales", HOURLY.replace("at delay 10 minutes", mark).replace("tumbling(at", "tumbling(time"))
    rows = [
        record(1, "10:05"),
        '{"id": 2, "at": "noon"}',
        '{"id": 3, "at": "2099-01-01T00:00:00Z"}',
        '{"id": 4, "at": null}',
    ]
    land(lab, "a", rows)
    land(lab, "b", [record(5, "12:10")])
    result = lab.build().model("sales")
    assert result["bad_records"] == {"shop.events": 3}
    assert ids(lab) == [1]
    assert result["watermark"].startswith("2024-05-01T12:00")
    found = {json.loads(r["row"])["id"]: r for r in lab.rows("sales__quarantine")}
    assert found[2]["reason"] == "'time' cannot be computed: cast(at as timestamp)"
    assert found[3]["reason"] == "'time' is more than 1 hour ahead of the clock"
    assert found[4]["reason"] == "'time' is NULL: cast(at as timestamp)"
    assert json.loads(found[2]["row"])["at"] == "noon"
    assert found[2]["raw"] is None


def test_bad_records_of_a_static_side_are_counted_once_however_often_it_is_read(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES.format(policy="quarantine"))
    joined = (
        "select e.id from {{ source('shop', 'events') }} e left join {{ source('shop', 'refunds') }} r on r.id = e.id"
    )
    lab.model("sales", f"/*---\nstreams: {{shop.events: {{max_files_per_trigger: 1}}}}\n---*/\n{joined}\n")
    land(lab, "a", [record(1, "10:05"), POISON[0]])
    land(lab, "b", [record(2, "10:05")])
    land(lab, "a", ["not a refund"], "landing/refunds")
    result = lab.build().model("sales")
    assert result["bad_records"] == {"shop.events": 1, "shop.refunds": 1}
    assert quarantined(lab) == [POISON[0]]


def test_a_batch_table_sets_aside_what_it_cannot_read(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES.format(policy="quarantine"))
    lab.model("sales", "select id from {{ source('shop', 'events') }}")
    land(lab, "a", [record(1, "10:05"), *POISON])
    result = lab.build().model("sales")
    assert (result["bad_records"], result["quarantined"], result["rows_out"]) == ({"shop.events": 3}, 3, 1)
    assert quarantined(lab) == sorted(POISON)
    land(lab, "a", [record(1, "10:05"), POISON[0]])
    lab.build()
    assert quarantined(lab) == [POISON[0]]
    lab.write("sources/shop.yml", SOURCES.format(policy="fail"))
    land(lab, "b", [record(2, "10:05")])
    failed = lab.run("build")
    assert failed.codes() == ["bad-record"]
    assert "landing/events/a.json:2: " in failed.text


@pytest.mark.nightly
def test_a_full_refresh_quarantines_what_it_reads_again(lab: Lab) -> None:
    shop(lab, "window", "quarantine").build()
    lab.build("-f", "-s", "sales")
    assert ids(lab) == [1, 2, 4]
    # Rows of the generation before stay.
    assert quarantined(lab) == sorted([*POISON, AFTER] * 2)
    land(lab, "d", [POISON[0], record(10, "18:00")])
    assert lab.build().model("sales")["quarantined"] == 1
    assert len(quarantined(lab)) == 9


@pytest.mark.nightly
def test_a_quarantine_that_was_dropped_is_made_again(lab: Lab) -> None:
    shop(lab, "stateless", "quarantine").build()
    assert lab.session is not None
    lab.session.spark.sql(f"drop table lake.{lab.schema}.sales__quarantine purge")
    land(lab, "d", [POISON[0]])
    assert lab.build().model("sales")["quarantined"] == 1
    assert quarantined(lab) == [POISON[0]]


def test_a_build_warns_of_each_source_whose_records_it_takes_out(lab: Lab) -> None:
    for policy, said in (("drop", "dropped"), ("quarantine", "quarantined")):
        own = Lab(lab.root / policy, lab.session, lab.capsys)
        own.write("sources/shop.yml", SOURCES.format(policy=policy))
        own.model("sales", STATELESS)
        own.model("batch", "select id from {{ source('shop', 'events') }}")
        land(own, "a", [record(1, "10:05"), POISON[0]])
        built = own.run("build")
        told = {e["node"].split(".")[-1]: e for e in built.events if e["event"] == "Diagnosed"}
        assert (built.code, set(built.codes()), set(told)) == (0, {"bad-records"}, {"sales", "batch"})
        assert {e["message"] for e in told.values()} == {f"1 record of shop.events could not be read and was {said}"}
        assert own.build("-s", "sales").codes() == []


def test_more_bad_records_than_a_source_allows_end_a_model_before_it_commits(lab: Lab) -> None:
    text = SOURCES.format(policy="quarantine")
    lab.write("sources/shop.yml", text)
    lab.model("sales", STATELESS)
    lab.model("batch", "select id from {{ source('shop', 'events') }}")
    land(lab, "a", POISON[:1] * 20)
    failed = lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["too-many-bad-records"] * 2)
    assert "20 of 20 records of shop.events cannot be read, all that the build has read: " in failed.text
    assert "landing/events/a.json:1: " in failed.text
    assert (lab.rows("sales"), lab.table("batch"), quarantined(lab)) == ([], None, [])
    # A number counts over the micro-batches of a build; what was committed before stays.
    lab.write("sources/shop.yml", text.replace("on_bad_record", "max_bad_records: 21\n        on_bad_record", 1))
    land(lab, "b", [record(2, "10:05"), POISON[0]])
    land(lab, "c", [record(3, "10:05"), POISON[0]])
    failed = lab.run("build", "-s", "sales")
    assert "22 of 24 records of shop.events cannot be read, more than max_bad_records: 21: " in failed.text
    assert ids(lab) == [2]
    assert len(quarantined(lab)) == 21
    lab.write("sources/shop.yml", text.replace("on_bad_record", "max_bad_records: 100%\n        on_bad_record", 1))
    lab.build()
    assert ids(lab) == [2, 3]
    assert len(quarantined(lab)) == 22


def test_a_bad_record_of_csv_names_its_column_and_the_text(lab: Lab) -> None:
    source = SOURCES.format(policy="quarantine").replace("format: json", "format: csv\n        options: {sep: ';'}", 1)
    lab.write("sources/shop.yml", source)
    lab.model("sales", STATELESS)
    lines = ["id;at;kind;amount", "1;2024-05-01T10:00:00Z;a;1.5", "three;2024-05-01T10:00:00Z;a;1", "4;noon;a;1",
             '5;2024-05-01T10:00:00Z;"x;y";much', "6;2024-05-01T10:00:00Z;a;1;9"]  # fmt: skip
    path = lab.land("a", [], "landing/events").with_suffix(".csv")
    path.write_text("".join(line + "\n" for line in lines))
    path.with_suffix(".json").unlink()
    lab.build()
    assert ids(lab) == [1]
    assert sorted(r["reason"] for r in lab.rows("sales__quarantine")) == [
        "'amount' is not of type double: much",
        "'at' is not of type timestamp: noon",
        "'id' is not of type int: three",
        "the number of fields does not match the declared columns",
    ]
