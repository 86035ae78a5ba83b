"""What a build does to each node, decided from what is deployed: pure functions, no file is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.errors import Diagnostic, Level
from engine.lake.commits import STAGED
from engine.lake.table_facts import SnapshotFacts
from engine.plan import (
    Action,
    ActionKind,
    Deployed,
    DeployedModel,
    DeployedSource,
    Plan,
    PlanOptions,
    Reset,
    make_plan,
)
from engine.plan.actions.action import refused_build
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.state import TableState
from engine.state.file_log import Logged
from tests.plan.deployed import SOURCE, batch, deployed, file, streaming, table
from tests.plan.test_plan import PLAIN, WINDOWED, header, manifest

READER = "/*---\nstreams: [m]\n---*/\nselect id from {{ ref('m') }}"
TOTAL = "select count(*) as n from {{ ref('m') }}"
A, B = file("a"), file("b")


def project(root: Path, **models: str) -> Manifest:
    for name, text in models.items():
        path = root / "models" / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return manifest(root, models.get("m", PLAIN))


def plan(manifest: Manifest, known: Deployed, **options: object) -> Plan:
    return make_plan(manifest, [n for n in manifest.order if n.startswith("model.")], known, PlanOptions(**options))  # type: ignore[arg-type]


def of_m(root: Path, change: Callable[[DeployedModel], DeployedModel], text: str = PLAIN, now: list = [A]) -> Action:  # noqa: B006
    known = project(root, m=text)
    found = change(streaming(known.model("m"), [A]))
    return plan(known, deployed(known, {"m": found}, now)).actions["model.m"]


def changed(**checkpoint: object) -> Callable[[DeployedModel], DeployedModel]:
    def change(found: DeployedModel) -> DeployedModel:
        assert found.checkpoint is not None
        return replace(found, checkpoint=replace(found.checkpoint, **checkpoint))  # type: ignore[arg-type]

    return change


def state(**values: object) -> Callable[[DeployedModel], DeployedModel]:
    def change(found: DeployedModel) -> DeployedModel:
        assert found.state is not None
        return replace(found, state=replace(found.state, **values))  # type: ignore[arg-type]

    return change


def test_a_model_that_was_never_built_is_created_and_reads_all_files(tmp_path: Path) -> None:
    action = of_m(tmp_path, lambda _: DeployedModel(), now=[A, B])
    assert (action.kind, action.unchanged) == (ActionKind.CREATE, False)
    assert [(u.name, u.unit, u.count) for u in action.unread] == [("shop.events", "files", 2)]


def test_a_stream_without_a_new_file_is_unchanged(tmp_path: Path) -> None:
    action = of_m(tmp_path, lambda found: found)
    assert (action.kind, action.unchanged, action.reasons) == (ActionKind.RESUME, True, ())


def test_a_new_file_is_read(tmp_path: Path) -> None:
    action = of_m(tmp_path, lambda found: found, now=[A, B])
    assert action.unchanged is False
    assert [(u.count, u.names) for u in action.unread] == [(1, ("b.json",))]


def test_the_age_of_what_is_unread_is_that_of_the_oldest_file_that_was_not_read(tmp_path: Path) -> None:
    action = of_m(tmp_path, lambda found: found, now=[A, file("c", 9_000), file("b", 5_000), file("d", 7_000)])
    assert [u.oldest_at for u in action.unread] == [5.0]
    assert [u.oldest_at for u in of_m(tmp_path, lambda found: found).unread] == [None]


def test_files_that_only_spark_can_list_leave_it_open(tmp_path: Path) -> None:
    known = project(tmp_path, m=PLAIN)
    found = streaming(known.model("m"), [A])
    assert plan(known, deployed(known, {"m": found}, None)).actions["model.m"].unchanged is None


def test_a_log_that_cannot_be_read_leaves_it_open(tmp_path: Path) -> None:
    assert of_m(tmp_path, changed(logs=None)).unchanged is None


WORK = {
    "an open micro-batch": changed(started=1),
    "a micro-batch that Spark has and the state has not": changed(started=1, committed=1),
    "another query's checkpoint": changed(query_id="other"),
    "a lost checkpoint": lambda found: replace(found, checkpoint=None),
    "a file that was listed and not read": changed(started=1, committed=0),
    "another version": state(engine_version="0.0.1"),
    "another Spark": state(spark_version="3"),
    "another name": state(model="n"),
    "another target": state(environment={"target": "prod"}),
    "what a kill left": lambda found: replace(found, leftovers=True),
    "a table that was replaced": lambda found: replace(found, written=replace(found.written, uuid="other")),
    "a table that was rolled back": state(snapshot=7),
    "a column that somebody dropped": state(columns=("gone",)),
    "staged rows": lambda found: replace(found, table=replace(found.table, branches=frozenset({STAGED}))),
    "another description": lambda found: replace(found, table=replace(found.table, docs=(("id", "older"),))),
    "files before a reset": state(begin={"at": 5}),
}


@pytest.mark.parametrize("change", WORK.values(), ids=WORK)
def test_what_a_build_would_do_is_never_called_unchanged(
    tmp_path: Path, change: Callable[[DeployedModel], DeployedModel]
) -> None:
    action = of_m(tmp_path, change)
    assert action.unchanged is False
    assert action.reasons


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("streams:", "post_hook: select 1\nstreams:"),
        PLAIN.replace("streams:", "explain: true\nstreams:"),
        PLAIN.replace("streams:", "table_properties: {a: b}\nstreams:"),
    ],
)
def test_what_the_header_does_with_each_build_is_work(tmp_path: Path, text: str) -> None:
    old = project(tmp_path, m=PLAIN)
    known = project(tmp_path, m=text)
    found = streaming(known.model("m"), [A], table=table(old.model("m")), written=table(old.model("m")))
    assert plan(known, deployed(known, {"m": found}, [A])).actions["model.m"].unchanged is False


@pytest.mark.slow
def test_a_watermark_that_moved_is_work_for_a_query_with_state(tmp_path: Path) -> None:
    assert of_m(tmp_path, changed(watermark_moved=True)).unchanged is True
    assert of_m(tmp_path, changed(watermark_moved=True), header() + WINDOWED).unchanged is False


def test_a_file_that_changed_after_it_was_read_is_rejected(tmp_path: Path) -> None:
    action = of_m(tmp_path, lambda found: found, now=[file("a", 2000)])
    assert [refusal.code for refusal in action.refusals] == ["file-changed"]
    assert "1970-01-01 00:00:01 when it was read, and 1970-01-01 00:00:02 now" in action.refusals[0].message
    accepted = changed(accepted={A.uri: 2000})
    assert of_m(tmp_path, accepted, now=[file("a", 2000)]).unchanged is True


@pytest.mark.slow
def test_a_file_that_was_listed_and_not_read_must_be_there(tmp_path: Path) -> None:
    def listed(found: DeployedModel) -> DeployedModel:
        assert found.checkpoint is not None
        (log,) = found.checkpoint.logs or ()
        more = replace(log, files=(*log.files, Logged("file:///landing/events/b.json", 1000, 1)))
        return changed(logs=(more,))(found)

    action = of_m(tmp_path, listed, now=[A])
    assert [refusal.code for refusal in action.refusals] == ["file-missing"]
    assert "/landing/events/b.json" in action.refusals[0].message
    there = of_m(tmp_path, listed, now=[A, B])
    assert (there.refusals, [u.count for u in there.unread], there.unchanged) == ((), [1], False)
    # What was read may go.
    assert of_m(tmp_path, lambda found: found, now=[]).unchanged is True


@pytest.mark.slow
def test_an_edit_that_cannot_continue_is_rejected_unless_all_is_rebuilt_or_nothing_is_written(tmp_path: Path) -> None:
    old = project(tmp_path, m=header() + WINDOWED).model("m")
    now = project(tmp_path, m=header(size="2 hours") + WINDOWED)
    found = streaming(old, [A])
    known = deployed(now, {"m": found}, [A])
    assert [r.code for r in plan(now, known).refusals] == ["model-changed"]
    assert plan(now, known, full_refresh=True).actions["model.m"].kind is ActionKind.REFRESH
    assert plan(now, known, full_refresh=True).refusals == ()
    reset = plan(now, known, reset=Reset(1, gap=True)).actions["model.m"]
    assert (reset.kind, reset.refusals) == (ActionKind.RESET, ())
    assert found.state is not None
    empty = table(old, snapshots=0)
    unwritten = replace(found, state=replace(found.state, batch=None), table=empty, written=empty)
    action = plan(now, deployed(now, {"m": unwritten}, [A])).actions["model.m"]
    assert (action.kind, action.refusals) == (ActionKind.CREATE, ())


@pytest.mark.parametrize(
    ("keys", "columns", "from_the_first", "from_now"),
    [
        ("", "id", ["reset-duplicates"], []),
        ("unique_key: id\n", "id", [], []),
        ("output_mode: complete\n", "id, count(*) as n", [], ["reset-totals"]),
    ],
)
def test_rows_that_would_be_read_twice_or_lost_from_totals_forbid_a_new_checkpoint(
    tmp_path: Path, keys: str, columns: str, from_the_first: list[str], from_now: list[str]
) -> None:
    group = " group by id" if "count" in columns else ""
    text = (
        f"/*---\nstreams: [shop.events]\n{keys}---*/\nselect {columns} from {{{{ source('shop', 'events') }}}}{group}"
    )
    now = project(tmp_path, m=text)
    known = deployed(now, {"m": streaming(now.model("m"), [A])}, [A])
    for reset, codes in ((Reset(None), from_the_first), (Reset(1_700_000_000_000, gap=True), from_now)):
        assert [r.code for r in plan(now, known, reset=reset).refusals] == codes


def test_a_refresh_says_all_that_forbids_it_at_once(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN.replace("streams:", "full_refresh: false\nstreams:"), reader=READER)
    models = {name: streaming(now.model(name), [A]) for name in ("m", "reader")}
    known = deployed(now, models, [A])
    both = make_plan(now, ["model.m", "model.reader"], known, PlanOptions(full_refresh=True))
    assert [r.code for r in both.refusals] == ["full-refresh-protected"]
    alone = make_plan(now, ["model.m"], known, PlanOptions(full_refresh=True))
    assert [r.code for r in alone.refusals] == ["full-refresh-protected", "downstream-stops"]
    accepted = PlanOptions(full_refresh=True, accept=("downstream-stops",))
    assert [r.code for r in make_plan(now, ["model.m"], known, accepted).refusals] == ["full-refresh-protected"]


def test_a_source_with_nothing_to_read_forbids_what_reads_it_and_is_said_once(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, other=PLAIN)
    fault = Diagnostic("source-folder-missing", "the folder does not exist")
    known = Deployed(sources={SOURCE: DeployedSource(fault)})
    found = plan(now, known)
    assert found.refusals == (fault,)
    assert list(found.rejected()) == ["model.m", "model.other"]


def test_a_stream_of_a_table_reads_what_is_behind_its_snapshot(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    upstream = streaming(now.model("m"), [A])
    offsets = ({"snapshot_id": 1},)
    found = streaming(now.model("reader"), [])
    assert found.state is not None
    assert found.checkpoint is not None
    found = replace(
        found,
        state=replace(found.state, starts={"model.m": {"uuid": "u", "seed": None}}),
        checkpoint=replace(found.checkpoint, offsets=offsets, logs=()),
    )
    actions = plan(now, deployed(now, {"m": upstream, "reader": found}, [A])).actions
    assert [a.unchanged for a in actions.values()] == [True, True]
    # Rows to come of a table that is built before it are not known.
    actions = plan(now, deployed(now, {"m": upstream, "reader": found}, [A, B])).actions
    assert [a.unchanged for a in actions.values()] == [False, None]
    assert [(u.count, u.present) for u in actions["model.reader"].unread] == [(None, 0)]
    grown = replace(upstream, table=table(now.model("m"), snapshots=3), written=table(now.model("m"), snapshots=3))
    actions = make_plan(now, ["model.reader"], deployed(now, {"m": grown, "reader": found}, [A]), PlanOptions()).actions
    assert [(u.unit, u.count) for u in actions["model.reader"].unread] == [("snapshots", 2)]
    assert [u.oldest_at for u in actions["model.reader"].unread] == [0.002], "the commit time of the second snapshot"
    assert grown.table is not None
    fence = SnapshotFacts(4, 3, "append", {"engine.fence": "7"}, 4)
    fenced = replace(grown, table=replace(grown.table, history=(fence, *grown.table.history)))
    actions = make_plan(
        now, ["model.reader"], deployed(now, {"m": fenced, "reader": found}, [A]), PlanOptions()
    ).actions
    assert [(u.unit, u.count) for u in actions["model.reader"].unread] == [("snapshots", 2)], "a fence has no rows"
    other = replace(upstream, table=table(now.model("m"), uuid="other"))
    actions = make_plan(now, ["model.reader"], deployed(now, {"m": other, "reader": found}, [A]), PlanOptions()).actions
    assert actions["model.reader"].unchanged is None


def test_a_batch_table_is_rebuilt_when_what_it_reads_changed(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, total=TOTAL)
    upstream = streaming(now.model("m"), [A])
    assert upstream.table is not None
    total = batch(now.model("total"), {"model.m": upstream.table.position()})
    actions = plan(now, deployed(now, {"m": upstream, "total": total}, [A])).actions
    assert (actions["model.total"].kind, actions["model.total"].unchanged) == (ActionKind.REBUILD, True)
    grown = replace(upstream, table=table(now.model("m"), snapshots=2), written=table(now.model("m"), snapshots=2))
    actions = make_plan(now, ["model.total"], deployed(now, {"m": grown, "total": total}, [A]), PlanOptions()).actions
    assert actions["model.total"].unchanged is False
    full = "computed in full: its last build did not record the exact snapshots that it read"
    assert actions["model.total"].reasons == ("'m' changed", full)
    waiting = plan(now, deployed(now, {"m": upstream, "total": total}, [A, B])).actions["model.total"]
    assert waiting.unchanged is None


def test_a_batch_table_that_reads_the_clock_is_always_rebuilt(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, total=TOTAL.replace("count(*)", "count(*) + year(now())"))
    upstream = streaming(now.model("m"), [A])
    assert upstream.table is not None
    total = batch(now.model("total"), {"model.m": upstream.table.position()})
    assert plan(now, deployed(now, {"m": upstream, "total": total}, [A])).actions["model.total"].unchanged is False


@pytest.mark.slow
def test_a_refused_build_names_what_could_be_built(tmp_path: Path) -> None:
    old = project(tmp_path, m=header() + WINDOWED).model("m")
    after = {"m": header(size="2 hours") + WINDOWED, "reader": TOTAL, "other": PLAIN, "more": PLAIN}
    now = project(tmp_path, **after)
    found = refused_build(now, plan(now, deployed(now, {"m": streaming(old, [A])}, [A])))
    assert found is not None
    first, last = found.diagnostics
    assert (first.code, last.code, last.level) == ("model-changed", "build-rejected", Level.NOTE)
    assert last.message.endswith("this would be built: more, other") or last.message.endswith("other, more")
    assert "--exclude m+" in last.hint


def test_a_checkpoint_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    from engine.plan.deployed.checkpoint_facts import read_checkpoint

    folder = TableState(tmp_path, "lake", "shop", "paid")
    assert read_checkpoint(folder, 1) == CheckpointFacts(folder.checkpoint(1))
