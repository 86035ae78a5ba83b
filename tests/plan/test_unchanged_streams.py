"""When a build of a stream has nothing to do, as far as files, topics and snapshots tell without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Manifest
from engine.plan import Action, DeployedSource, PlanOptions, Reset, make_plan
from engine.plan.refresh.batch_inputs import same_rows
from engine.sources.spec import ClusterOffsets, TopicOffsets
from engine.state import Phase
from engine.state.file_log import Logged
from tests.plan.deployed import SOURCE, batch, deployed, file, streaming, table
from tests.plan.test_actions import TOTAL, of_m, project
from tests.plan.test_plan import PLAIN
from tests.project.small_projects import clean
from tests.projects import sources_yaml

A, B = file("a"), file("b")
PROJECT_FILE = """
name: lab
targets: {dev: {schema: s, connections: {main: {bootstrap_servers: "localhost:1"}}}}
"""
KAFKA = sources_yaml(
    events={"format": "kafka", "connection": "main", "topic": "events", "schema": "id int, kind string"}
)
KEPT = {"topics": {"events": "t1"}, "start": "starting_offsets: earliest", "cluster": "c"}


def of_topic(root: Path, *, kept: dict[str, Any], topic: str = "t1", cluster: str = "c", **more: Any) -> Action:
    """What becomes of a stream that has read the first ten records of the one partition of its topic."""
    first, end, source = more.get("first", 0), more.get("end", 10), more.get("source", KAFKA)
    now = clean(root, {"project.yml": PROJECT_FILE, "sources/shop.yml": source, "models/m.sql": PLAIN})
    there = TopicOffsets(topic, {0: first}, {0: end}, {0: more.get("written", end)})
    found = streaming(now.model("m"), [])
    assert found.state is not None
    assert found.checkpoint is not None
    at: dict[str, Any] = {"offsets": ({"events": {"0": 10}},)}
    if more.get("begun"):
        at = {"offsets": (), "beginnings": at["offsets"], "committed": None}
    checkpoint = replace(found.checkpoint, logs=(), **at)
    found = replace(found, state=replace(found.state, sources={SOURCE: kept}), checkpoint=checkpoint)
    known = deployed(now, {"m": found}, None)
    topics = ClusterOffsets(cluster, {"events": there}, "localhost:1")
    known = replace(known, sources={SOURCE: DeployedSource(topics=topics)})
    return make_plan(now, ["model.m"], known, PlanOptions()).actions["model.m"]


def test_a_topic_without_a_new_record_leaves_its_reader_unchanged(tmp_path: Path) -> None:
    assert of_topic(tmp_path, kept=KEPT).unchanged is True


@pytest.mark.parametrize(
    "other",
    [{"kept": {**KEPT, "start": "starting_offsets: latest"}}, {"kept": {}}],
    ids=["another beginning", "not known"],
)
def test_another_topic_of_the_name_is_looked_at(tmp_path: Path, other: dict[str, Any]) -> None:
    action = of_topic(tmp_path, **{"kept": KEPT, **other})
    assert (action.unchanged, action.refusals) == (None, ())


@pytest.mark.parametrize(
    ("other", "code", "message"),
    [
        (
            {"topic": "t2", "end": 60},
            "source-replaced",
            "the topic 'events' of 'shop.events' was deleted and recreated",
        ),
        ({"cluster": "d"}, "source-changed", "another Kafka cluster (c); the brokers at localhost:1 are d"),
        ({"first": 15, "end": 60}, "source-gap", "5 offsets of 'shop.events' were deleted by the broker"),
        ({"first": 15, "end": 60, "begun": True}, "source-gap", "(events-0: 10 to 14)"),
        ({"end": 9}, "source-shrunk", "up to offset 10, and it ends at 9 now"),
    ],
)
def test_a_plan_rejects_a_stream_that_a_build_would_reject(
    tmp_path: Path, other: dict[str, Any], code: str, message: str
) -> None:
    (refusal,) = of_topic(tmp_path, **{"kept": KEPT, **other}).refusals
    assert (refusal.code, refusal.node) == (code, "m")
    assert message in refusal.message
    assert "engine build -f -s m" in refusal.hint
    assert refusal.location is not None
    assert refusal.location.file == "sources/shop.yml"


def test_open_transactions_and_an_accepted_gap_are_no_faults(tmp_path: Path) -> None:
    # A consumer of committed records sees the end before an open transaction, behind which the stream may be.
    assert of_topic(tmp_path, kept=KEPT, end=9, written=12).refusals == ()
    accepted = KAFKA.replace("topic: events,", "topic: events, fail_on_data_loss: false,")
    assert of_topic(tmp_path, kept=KEPT, first=15, end=60, source=accepted).refusals == ()


def codes(root: Path, *, committed: bool, written: bool, entry: int) -> list[str]:
    """What is said of a file that changed, of an entry of the log that a second micro-batch was begun with."""

    def change(found: Any) -> Any:
        (log,) = found.checkpoint.logs
        log = replace(log, files=(*log.files, Logged("file:///landing/events/b.json", 1000, entry)), started_to=1)
        ends = {"started": 1, "committed": 1 if committed else 0}
        batch = 1 if written else 0
        return replace(
            found, checkpoint=replace(found.checkpoint, logs=(log,), **ends), state=replace(found.state, batch=batch)
        )

    return [refusal.code for refusal in of_m(root, change, now=[A, file("b", 2000)]).refusals]


def test_a_file_that_changed_counts_once_its_rows_are_written(tmp_path: Path) -> None:
    assert codes(tmp_path, committed=False, written=True, entry=1) == ["file-changed"]
    assert codes(tmp_path, committed=False, written=False, entry=1) == []
    # It was listed behind the micro-batch.
    assert codes(tmp_path, committed=False, written=True, entry=2) == []


def of_total(root: Path, sql: str = TOTAL) -> tuple[Manifest, Any]:
    now = project(root, m=PLAIN, total=sql)
    return now, batch(now.model("total"), {"model.m": table(now.model("m")).position()})


def test_a_batch_table_over_the_same_inputs_has_the_same_rows(tmp_path: Path) -> None:
    now, known = of_total(tmp_path)
    model, inputs = now.model("total"), dict(known.state.inputs)
    assert same_rows(now, model, known.state, known.table, inputs)
    assert not same_rows(now, model, known.state, known.table, {"model.m": None})
    assert not same_rows(now, model, known.state, table(model, uuid="other"), inputs)
    assert not same_rows(now, model, known.state, None, inputs)
    assert not same_rows(now, model, replace(known.state, fingerprint="other"), known.table, inputs)
    assert not same_rows(now, model, replace(known.state, phase=Phase.STAGED), known.table, inputs)


def test_a_batch_table_that_reads_the_clock_has_other_rows_each_time(tmp_path: Path) -> None:
    now, known = of_total(tmp_path, TOTAL.replace("count(*)", "count(*) + year(now())"))
    assert not same_rows(now, now.model("total"), known.state, known.table, dict(known.state.inputs))


@pytest.mark.parametrize("options", [{"full_refresh": True}, {"reset": Reset(1, gap=True)}], ids=["refresh", "reset"])
def test_what_a_user_asks_for_is_never_called_unchanged(tmp_path: Path, options: dict[str, Any]) -> None:
    now = project(tmp_path, m=PLAIN)
    known = deployed(now, {"m": streaming(now.model("m"), [A])}, [A])
    assert make_plan(now, ["model.m"], known, PlanOptions()).actions["model.m"].unchanged is True
    assert make_plan(now, ["model.m"], known, PlanOptions(**options)).actions["model.m"].unchanged is not True


def test_a_refresh_of_a_batch_table_is_never_called_unchanged(tmp_path: Path) -> None:
    now, known = of_total(tmp_path)
    there = deployed(now, {"m": streaming(now.model("m"), [A]), "total": known}, [A])
    for options, unchanged in ((PlanOptions(), True), (PlanOptions(full_refresh=True), None)):
        assert make_plan(now, ["model.total"], there, options).actions["model.total"].unchanged is unchanged
