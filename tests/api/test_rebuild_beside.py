"""What a rebuild beside the tables is made of, before anything is built: no Java."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Project
from engine.api.one_session import ignore_event
from engine.api.rebuild_beside import check_rebuild, rebuild_of
from engine.cli.main import invoke
from engine.errors import EngineError, StateError, UsageError
from engine.plan.deployed.state_folder import next_state
from engine.runtime.lifecycle.orphaned_tables import notes, orphans
from engine.runtime.rebuild.tables_beside import Rebuild, begin_rebuild, discard, is_publishing
from engine.state import ModelState, TableState
from engine.state.checkpoint import digest_of
from engine.state.first_offsets import offsets_to_move
from engine.state.operations import PUBLISHING
from engine.state.operations import Rebuild as Noted
from tests.lab import EVENTS
from tests.projects import write_files

pytestmark = pytest.mark.slow

FILES = {
    "project.yml": "name: shop\n",
    "sources/shop.yml": EVENTS,
    "models/paid.sql": "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n",
    "models/hourly.sql": """/*---
streams: {paid: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
publish: on_tests_pass
columns: {n: {tests: [not_null, {relationships: {to: paid, field: id}}]}}
---*/
select hour.start as hour, count(*) as n from {{ ref('paid') }} group by hour
""",
    "models/joined.sql": """/*---
streams: [paid]
---*/
select p.id, o.id as other from {{ ref('paid') }} p left join {{ ref('hourly') }} h on p.id = h.n
left join {{ ref('total') }} o on p.id = o.id
""",
    "models/total.sql": "select 1 as id",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_files(tmp_path, FILES)
    (tmp_path / "landing" / "events").mkdir(parents=True)
    return Project(tmp_path)


def rebuild(project: Project, *names: str) -> Rebuild:
    compiled = project.compile()
    assert not compiled.manifest.errors
    nodes = [*(f"model.{name}" for name in names), *(test.id for test in compiled.manifest.tests)]
    return rebuild_of(project, compiled, nodes, 4, ignore_event)


def begun(one: Rebuild, node: str) -> Noted | None:
    return next_state(one.target, one.model(node)).journal.open_operation(Noted)


def test_references_among_the_models_lead_to_their_new_tables(project: Project) -> None:
    one = rebuild(project, "paid", "hourly", "joined", "total")
    assert one.names == ("paid", "hourly", "joined")
    for node in one.models:
        own, made = one.model(node), one.rebuilt_model(node)
        assert made.relation == replace(own.relation, name=f"{own.name}__next")
        # An edit is known by it, and the state that is published has it.
        assert (made.fingerprint, made.facts, made.deferred_from) == (own.fingerprint, own.facts, None)
    joined = one.rebuilt_model("model.joined").sql
    assert "`hourly__next`" in joined
    assert "`total`" in joined
    # Nobody reads the new table, and its tests decide about all.
    assert one.rebuilt_model("model.hourly").write.publish.value == "immediately"
    assert one.model("model.hourly").write.publish.value == "on_tests_pass"
    queries = {test.kind: test.sql for test in one.next_project.tests}
    assert "`hourly__next`" in queries["not_null"]
    assert {"`hourly__next`", "`paid__next`"} <= set(queries["relationships"].replace(".", " ").split())
    assert set(one.tests) == {test.id for test in one.next_project.tests}


def test_a_selection_without_a_stream_has_nothing_to_rebuild(project: Project) -> None:
    with pytest.raises(UsageError):
        rebuild(project, "total")


def test_a_rebuild_is_noted_and_belongs_to_its_models(project: Project) -> None:
    one = rebuild(project, "paid", "hourly", "joined")
    assert not is_publishing(one)
    begin_rebuild(one)
    assert not is_publishing(one)
    known = begun(one, "model.paid")
    assert known is not None
    assert (known.model, known.models) == ("paid", one.names)
    (said,) = notes(one.manifest, one.target, project.root)
    assert (said.code, said.is_error) == ("rebuild-unfinished", False)
    assert orphans(one.manifest, one.target, project.root) == ()
    with pytest.raises(StateError) as failure:
        is_publishing(rebuild(project, "paid"))
    assert failure.value.diagnostic.code == "rebuild-unfinished"
    one.journal("model.hourly").complete(Noted, PUBLISHING)
    assert is_publishing(one)
    # Of its tables one was built with another query.
    folder = next_state(one.target, one.model("model.paid"))
    folder.save(ModelState(folder.name, fingerprint="another"))
    with pytest.raises(StateError) as failure:
        is_publishing(one)
    assert "edited" in failure.value.diagnostic.message
    discard(one)
    assert all(begun(one, node) is None for node in one.models)
    assert list(notes(one.manifest, one.target, project.root)) == []


def test_a_rebuild_of_a_model_that_is_gone_is_no_more_to_be_continued(project: Project) -> None:
    begin_rebuild(rebuild(project, "joined"))
    (project.root / "models/joined.sql").unlink()
    compiled = project.compile()
    found = list(notes(compiled.manifest, compiled.target, project.root))
    assert [said.code for said in found] == ["orphan-table"]
    assert len(orphans(compiled.manifest, compiled.target, project.root)) == 1


def test_what_is_not_noted_is_not_discarded(project: Project) -> None:
    one = rebuild(project, "paid")
    folder = next_state(one.target, one.model("model.paid"))
    folder.save(ModelState(folder.name))
    assert discard(one) == ()
    assert folder.load() is not None
    with pytest.raises(EngineError) as failure:
        check_rebuild(project, project.compile(), one, ())
    assert [found.code for found in failure.value.diagnostics] == ["name-taken"]


def test_state_in_a_bucket_is_rejected(project: Project) -> None:
    one = rebuild(project, "paid")
    compiled = project.compile()
    compiled = replace(compiled, target=replace(compiled.target, state="s3a://bucket/state"))
    from engine.runtime.rebuild.rebuild_checks import rebuild_faults

    found = list(
        rebuild_faults(one.manifest, compiled.target, compiled.target.place(project.root), [one.model("model.paid")])
    )
    assert [fault.code for fault in found] == ["rebuild-unavailable"]


def test_an_offset_moves_behind_the_files_that_were_read(tmp_path: Path) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_text("v1\n{}")
    offsets = [{"version": 1, "snapshot_id": n, "position": 1, "scan_all_files": False} for n in (7, 8)]
    path, folder, state = tmp_path / "offsets" / "0", TableState(tmp_path, "lake", "s", "t"), ModelState("lake.s.t")
    path.write_text("\n".join(["v1", "{}", *map(json.dumps, offsets), "-"]))
    before = digest_of(path.read_bytes())
    found = offsets_to_move(tmp_path, {6, 7}, 9, 3)
    assert found is not None
    noted = found.write(folder, state)
    assert folder.load() == noted
    assert noted.ends == {"0": [before, digest_of(path.read_bytes())]}
    moved, other, none = path.read_text().splitlines()[2:]
    assert json.loads(moved) == {**offsets[0], "snapshot_id": 9, "position": 3}
    assert (json.loads(other), none) == (offsets[1], "-")
    assert offsets_to_move(tmp_path, {6, 7}, 9, 3) is None


@pytest.mark.parametrize(
    "options",
    [("--no-publish",), ("--discard",), ("--rebuild", "-f"), ("--rebuild", "--watch"), ("--rebuild", "--empty"),
     ("--rebuild", "--defer"), ("--rebuild", "--reset-checkpoint", "now"), ("--rebuild", "--discard", "--no-publish")],
)  # fmt: skip
def test_options_that_contradict_a_rebuild(
    project: Project, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["build", *options, "--project-dir", str(project.root)]) == 2
    assert "[usage]" in capsys.readouterr().err
