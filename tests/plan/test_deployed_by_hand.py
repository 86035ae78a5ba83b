"""What a plan knows of tables that were built: read from a catalog, a state folder and a checkpoint, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import Project
from engine.plan import Deployed
from engine.plan.deployed.read_deployed import read_deployed, read_sources
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh
from tests.plan.lake_by_hand import UUID, built
from tests.plan.test_actions import READER
from tests.plan.test_plan import EVENTS, PLAIN
from tests.plan.test_plan_command import PROJECT, write

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose model `m` was built."""
    for name, text in {
        "project.yml": PROJECT,
        "sources/shop.yml": EVENTS,
        "landing/events/a.json": '{"id": 1}\n',
        "models/m.sql": PLAIN,
    }.items():
        write(tmp_path, name, text)
    built(tmp_path, Project(tmp_path).compile().manifest.model("m"), [tmp_path / "landing/events/a.json"])
    return tmp_path


def known(root: Path, *names: str) -> Deployed:
    compiled = Project(root).compile()
    assert compiled.manifest.errors == ()
    place, selected = compiled.target.place(root), [f"model.{name}" for name in names]
    sources = read_sources(compiled.manifest, place, selected)
    return read_deployed(compiled.manifest, compiled.target, place, selected, sources)


def renamed(root: Path, name: str = "paid") -> None:
    (root / "models/m.sql").rename(root / f"models/{name}.sql")
    write(root, f"models/{name}.sql", PLAIN.replace("streams", "renamed_from: m\nstreams"))


def test_a_model_that_was_built_has_what_its_run_left(root: Path) -> None:
    write(root, "models/n.sql", PLAIN)
    there = known(root, "m", "n")
    found = there.models["model.m"]
    assert there.built == {"model.m"}
    assert found.state is not None
    assert found.table is not None
    assert found.checkpoint is not None
    assert (found.state.uuid, found.table.uuid, found.checkpoint.committed) == (UUID, UUID, 0)
    assert there.models["model.n"].state is None


def test_a_stream_of_what_is_chosen_counts_as_built_where_it_has_begun(root: Path) -> None:
    write(root, "models/reader.sql", READER)
    assert known(root, "m").built == {"model.m"}
    folder = TableState(root / ".engine/state", "lake", "s", "reader")
    folder.save(ModelState(folder.name, 1, Phase.PUBLISHED))
    assert known(root, "m").built == {"model.m", "model.reader"}
    # Of a refresh that is to be finished it begins again in any case.
    folder.journal.begin(Refresh("2026-11-27 10:00:00", before=1))
    assert known(root, "m").built == {"model.m"}


def test_before_a_rename_a_model_has_what_its_table_has_under_the_old_name(root: Path) -> None:
    renamed(root)
    found = known(root, "paid").models["model.paid"]
    assert found.renaming is not None
    assert (str(found.renaming.old), found.faults) == ("lake.s.m", ())
    assert found.writer is not None
    assert found.writer.facts is not None
    assert found.writer.facts.relation == "lake.s.paid"
    assert found.state is not None
    assert found.state.fingerprint == found.writer.fingerprint


def test_a_rename_needs_no_facts_of_the_query_that_wrote_last(root: Path) -> None:
    for path in (root / ".engine/state/lake/s/m").rglob("facts/*.json"):
        path.unlink()
    renamed(root)
    found = known(root, "paid").models["model.paid"]
    assert (found.renaming is not None, found.faults) == (True, ())
    assert found.writer is None or found.writer.facts is None
