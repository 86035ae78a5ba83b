"""Hooks, `trigger: once` and the provider of state."""

from __future__ import annotations

import json

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

COUNTED = """/*---
streams: {{shop.events: {{max_files_per_trigger: 1}}}}
output_mode: complete
trigger: once
state_store: {{provider: hdfs, partitions: 1}}
pre_hook: "create temporary view tens as select 'paid' as kind, 10 as ten"
post_hook: "{post}"
---*/
select kind, count(*) * max(t.ten) as n
from {{{{ source('shop', 'events') }}}} cross join (select 10 as ten) t
group by kind
"""
AUDIT = "alter table {{ this }} set tblproperties ('audited' = 'yes')"


def test_hooks_run_around_the_model_and_once_reads_all_in_one_batch(lab: Lab) -> None:
    lab.model("counted", COUNTED.format(post=AUDIT))
    lab.model(
        "dated",
        f'/*---\npre_hook: "set spark.sql.ansi.enabled=false"\npost_hook: "{AUDIT}"\n---*/\nselect cast(\'x\' as int) as n',
    )
    for name in "abc":
        lab.land(name, [event(1)])
    result = lab.build()
    assert "trigger-once" in result.codes()
    counted = result.model("counted")
    assert (counted["batches"], counted["rows_in"]) == (1, 3)
    assert [r["n"] for r in lab.rows("counted")] == [30]
    for name in ("counted", "dated"):
        table = lab.table(name)
        assert table is not None
        assert table.properties["audited"] == "yes"
    # Not in the session of the others: there a text is no number.
    assert lab.rows("dated") == [{"n": None}]
    offsets = (lab.state / "counted" / "1" / "checkpoint" / "offsets" / "0").read_text().splitlines()
    assert (
        "HDFSBackedStateStoreProvider" in json.loads(offsets[1])["conf"]["spark.sql.streaming.stateStore.providerClass"]
    )

    lab.model("counted", COUNTED.format(post="select no_such_column"))
    lab.land("d", [event(1)])
    failed = lab.run("build", "-s", "counted")
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert (found["code"], found["file"], found["line"]) == ("hook-failed", "models/counted.sql", 7)
    assert "no_such_column" in found["message"]
    assert [r["n"] for r in lab.rows("counted")] == [40]
