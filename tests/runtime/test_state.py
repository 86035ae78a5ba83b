"""State and tables that do not belong together stop a model; nothing is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import EVENTS, REPOSITORY, Lab, event, run_alone

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"


@pytest.fixture
def built(lab: Lab) -> Lab:
    """A table of two micro-batches, and a file that is not read yet."""
    lab.write("sources/shop.yml", f"{EVENTS}        max_files_per_trigger: 1\n")
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1), event(2, 2)])
    lab.land("b", [event(3, 3)])
    lab.build()
    lab.land("c", [event(4, 4)])
    return lab


def refused(lab: Lab, code: str, *names: str) -> dict[str, object]:
    before = {name: lab.snapshot(name) for name in names}
    result = lab.run("build")
    assert result.code == 1
    assert result.codes() == [code], result.text
    assert {name: lab.snapshot(name) for name in names} == before
    assert "Traceback" not in result.text
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert found["hint"]
    return found


def test_a_lost_checkpoint(built: Lab) -> None:
    shutil.rmtree(built.state / "paid" / "1" / "checkpoint")
    refused(built, "checkpoint-lost", "paid")


def test_a_checkpoint_without_its_metadata(built: Lab) -> None:
    for name in ("metadata", ".metadata.crc"):
        (built.state / "paid" / "1" / "checkpoint" / name).unlink()
    refused(built, "checkpoint-lost", "paid")


def test_a_checkpoint_whose_logs_are_gone_but_not_its_metadata(built: Lab) -> None:
    for name in ("offsets", "commits", "sources"):
        shutil.rmtree(built.state / "paid" / "1" / "checkpoint" / name)
    refused(built, "checkpoint-lost", "paid")


def test_lost_state(built: Lab) -> None:
    shutil.rmtree(built.state / "paid")
    refused(built, "state-missing", "paid")


def test_a_dropped_table(built: Lab) -> None:
    built.session.spark.sql(f"drop table lake.{built.schema}.paid purge")  # type: ignore[union-attr]
    refused(built, "table-missing")


def test_a_table_dropped_and_made_again(built: Lab) -> None:
    spark = built.session.spark  # type: ignore[union-attr]
    spark.sql(f"drop table lake.{built.schema}.paid purge")
    spark.sql(f"create table lake.{built.schema}.paid (id int, at timestamp) using iceberg")
    refused(built, "table-replaced", "paid")


def test_a_table_rolled_back(built: Lab) -> None:
    table = built.table("paid")
    assert table is not None
    first = table.history[-1].id
    built.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.rollback_to_snapshot('{built.schema}.paid', {first})"
    )
    refused(built, "table-rolled-back", "paid")


def test_a_compaction_by_somebody_else_does_no_harm(built: Lab) -> None:
    built.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.rewrite_data_files(table => '{built.schema}.paid', options => map('rewrite-all', 'true'))"
    )
    built.build()
    assert built.ids("paid") == [1, 2, 3, 4]


def rewritten_and_expired(lab: Lab) -> None:
    """What maintenance by others leaves: one snapshot, whose parent has expired too."""
    table, spark = f"{lab.schema}.paid", lab.session.spark  # type: ignore[union-attr]
    for _ in range(2):
        spark.sql(f"call lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    spark.sql(f"call lake.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
    facts = lab.table("paid")
    assert facts is not None
    assert (len(facts.history), facts.complete) == (1, False)


@pytest.mark.nightly
def test_a_compaction_and_an_expiry_by_others_lose_no_rows_and_hide_no_rollback(built: Lab) -> None:
    older = built.model_json("paid")
    rewritten_and_expired(built)
    built.build()
    assert built.ids("paid") == [1, 2, 3, 4]
    # A kill behind the table's commit: neither model.json nor Spark know of it, and its marker expires.
    state = built.model_json("paid")
    commits = built.state / "paid" / "1" / "checkpoint" / "commits"
    for name in (str(state["batch"]), f".{state['batch']}.crc"):
        (commits / name).unlink(missing_ok=True)
    assert older["batch"] == state["batch"] - 1
    (built.state / "paid" / "1" / "model.json").write_text(json.dumps(older))
    rewritten_and_expired(built)
    built.build()
    assert built.ids("paid") == [1, 2, 3, 4]
    # A rollback before the same maintenance is one nevertheless.
    built.land("d", [event(5, 5)])
    built.build()
    table = built.table("paid")
    assert table is not None
    built.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.rollback_to_snapshot('{built.schema}.paid', {table.history[1].id})"
    )
    rewritten_and_expired(built)
    refused(built, "table-rolled-back", "paid")


def test_a_foreign_table_is_left_alone(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1)])
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.paid using iceberg as select 7 as id")
    refused(lab, "name-taken", "paid")


def test_an_upstream_table_rolled_back_stops_its_reader(built: Lab) -> None:
    built.model("copy", COPY)
    built.build()
    table = built.table("paid")
    assert table is not None
    built.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.rollback_to_snapshot('{built.schema}.paid', {table.history[-1].id})"
    )
    result = built.run("build", "-s", "copy")
    assert (result.code, result.codes()) == (1, ["upstream-replaced"])


def test_a_new_reader_of_a_compacted_table_reads_every_row(built: Lab) -> None:
    built.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.rewrite_data_files(table => '{built.schema}.paid', options => map('rewrite-all', 'true'))"
    )
    built.model("copy", COPY)
    built.build()
    assert built.ids("copy") == [1, 2, 3, 4]


WINDOWED = """/*---
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, {size})'}}
---*/
select hour.start as hour, count(*) as n from {{{{ source('shop', 'events') }}}} group by hour
"""


def test_a_changed_window_over_old_state_is_refused_and_undone(built: Lab) -> None:
    built.model("windowed", WINDOWED.format(size="1 hour"))
    built.build()
    built.model("windowed", WINDOWED.format(size="2 hours"))
    before = built.snapshots()
    result = built.run("build", "-s", "windowed")
    assert (result.code, result.codes()) == (1, ["model-changed"])
    assert "the window of GROUP BY changed from" in result.text
    assert result.text.index("'1 hour'") < result.text.index("'2 hours'")
    assert built.snapshots() == before
    built.model("windowed", WINDOWED.format(size="1 hour") + "-- a comment is no change\n")
    assert built.build().model("windowed")["status"] == "unchanged"


def test_a_changed_filter_of_a_stateless_model_counts_for_new_rows_and_is_noted(built: Lab) -> None:
    built.model("paid", PAID + "where id > 3\n")
    built.land("d", [event(5, 5)])
    result = built.build().model("paid")
    assert "keeps no state" in result["note"]
    assert built.ids("paid") == [1, 2, 3, 4, 5]


def test_a_new_column_without_a_place_in_the_table_is_refused(built: Lab) -> None:
    built.model("paid", PAID.replace("id, at", "id, at, amount"))
    refused(built, "table-schema", "paid")


def test_a_table_becomes_no_stream(built: Lab) -> None:
    built.model("total", "select count(*) as n from {{ ref('paid') }}")
    built.build()
    built.model("total", "/*---\nmaterialized: view\n---*/\nselect count(*) as n from {{ ref('paid') }}")
    result = built.run("build", "-s", "total")
    assert (result.code, result.codes()) == (1, ["model-changed"])


def test_a_start_that_spark_refuses_leaves_nothing_behind(lab: Lab) -> None:
    lab.model("paid", PAID.replace("id, at", "id, to_number(kind, 'XX') as n"))
    lab.land("a", [event(1, 1)])
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["query-failed"])
    lab.model("paid", PAID)
    assert lab.build().model("paid")["rows_out"] == 1


def test_a_record_that_does_not_fit_names_its_file_and_the_way_on(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1)])
    bad = lab.land("b", [])
    bad.write_text('{"id": "no number", "at": "2024-05-01T10:00:00Z"}\n')
    found = refused(lab, "bad-record")
    assert "b.json" in str(found["message"])
    bad.write_text(json.dumps(event(2, 2)) + "\n")
    lab.build()
    assert lab.ids("paid") == [1, 2]


def test_a_missing_source_folder_is_said_before_anything_starts(lab: Lab) -> None:
    lab.model("paid", PAID)
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["source-folder-missing"])
    assert not lab.state.exists()


def test_a_state_folder_that_cannot_be_written(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1)])
    lab.write(".engine/state", "a file where the folder should be")
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["state-unwritable"])


def test_a_second_build_at_the_same_time_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    lab = Lab(tmp_path, None, None, schema="shop")
    lab.model("paid", PAID)
    lab.land("a", [event(1, 1)])
    code = "import sys\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))"
    first = subprocess.Popen(
        [sys.executable, "-c", code, "build", "--project-dir", str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    lock = lab.state / "paid" / "lock"
    while not (lock.exists() and lock.read_text()):
        assert first.poll() is None
        time.sleep(0.05)
    second = run_alone(tmp_path, "build")
    assert second.returncode == 1
    assert '"table-locked"' in second.stdout
    assert str(first.pid) in second.stdout
    assert first.wait(timeout=300) == 0
    assert first.stdout is not None
    first.stdout.close()
    assert [r["id"] for r in lab.rows("paid")] == [1]
    assert not (tmp_path / "spark-warehouse").exists()
