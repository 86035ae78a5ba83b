"""What a run notes of full refreshes before it touches a table, and how one that was killed ends: without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from engine.api import Project
from engine.compile import Model
from engine.compile.pipeline.compile_project import Compiled
from engine.lake.lake_reader import Lake
from engine.plan import Action, ActionKind, Deployed, DeployedModel, Plan, PlanOptions
from engine.plan.deployed.state_folder import table_state
from engine.runtime.lifecycle.full_refresh import note_refreshes, settle_interrupted_refresh
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh
from tests.lab import EVENTS
from tests.plan.deployed import table
from tests.plan.test_data_test_passes import LakeByHand
from tests.projects import write_files

BEGUN = Refresh("2026-11-27 10:00:00", ("downstream-stops",), before=1)


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    files = {
        "project.yml": "name: shop\n",
        "sources/shop.yml": EVENTS,
        "models/m.sql": "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n",
    }
    write_files(tmp_path, files)
    return Project(tmp_path).compile()


def built(model: Model, **changes: Any) -> DeployedModel:
    state = ModelState(str(model.relation), 1, Phase.PUBLISHED, "u", model.fingerprint)
    return replace(DeployedModel(state, table=table(model)), **changes)


@pytest.fixture
def noted(compiled: Compiled) -> Callable[..., tuple[frozenset[str], Any]]:
    """What a run says is new, and what is noted of the model then."""
    model = compiled.manifest.model("m")
    folder = table_state(compiled.target, model)

    def note(kind: ActionKind, known: DeployedModel, **said: Any) -> tuple[frozenset[str], Any]:
        if known.refresh is not None:
            folder.journal.begin(known.refresh)
        plan, there = Plan({model.id: Action(model.id, kind)}), Deployed({model.id: known})
        new = note_refreshes(compiled.target, [model], plan, there, PlanOptions(**said))
        return new, folder.journal.open_operation(Refresh)

    return note


def test_a_refresh_is_noted_with_the_generation_that_it_replaces(noted: Any, compiled: Compiled) -> None:
    model = compiled.manifest.model("m")
    new, begun = noted(ActionKind.REFRESH, built(model), accept=("downstream-stops",))
    assert (new, begun.before, begun.accept) == ({"model.m"}, 1, ("downstream-stops",))


def test_what_is_not_there_or_not_published_is_no_generation_to_go_back_to(noted: Any, compiled: Compiled) -> None:
    model = compiled.manifest.model("m")
    assert noted(ActionKind.REFRESH, DeployedModel()) == (frozenset(), None)
    known = built(model)
    assert known.state is not None
    _, begun = noted(ActionKind.REFRESH, replace(known, state=replace(known.state, phase=Phase.BUILDING)))
    assert begun.before == 0


def test_a_refresh_that_goes_on_keeps_its_beginning_and_what_was_accepted(noted: Any, compiled: Compiled) -> None:
    known = built(compiled.manifest.model("m"), refresh=BEGUN)
    assert noted(ActionKind.REFRESH, known) == (frozenset(), BEGUN)
    new, begun = noted(ActionKind.REFRESH, known, accept=("files-gone", "downstream-stops"))
    assert (new, begun) == (frozenset(), structs.replace(BEGUN, accept=("downstream-stops", "files-gone")))


@pytest.mark.parametrize(
    ("kind", "said", "kept"),
    [
        (ActionKind.RESUME, {}, True),
        (ActionKind.RESUME, {"discard_refresh": True}, False),
        (ActionKind.RESET, {}, False),
        (ActionKind.EMPTY, {}, True),
    ],
)
def test_a_note_is_forgotten_where_the_user_decides_for_the_table(
    noted: Any, compiled: Compiled, kind: ActionKind, said: dict[str, Any], kept: bool
) -> None:
    new, begun = noted(kind, built(compiled.manifest.model("m"), refresh=BEGUN), **said)
    assert (new, begun) == (frozenset(), BEGUN if kept else None)


@pytest.fixture
def killed(compiled: Compiled, tmp_path: Path) -> Callable[..., TableState]:
    """How a refresh ends whose second generation was written beside the table, as the table's last commit tells."""
    model = compiled.manifest.model("m")
    folder = table_state(compiled.target, model)
    for number, phase, name in ((1, Phase.PUBLISHED, ""), (2, Phase.BUILDING, "__g2")):
        state = ModelState(f"{model.relation}{name}", number, phase, "u", model.fingerprint, generation_id=f"g{number}")
        folder.save(state)
        folder.checkpoint(number).mkdir(parents=True)
    folder.journal.begin(BEGUN)

    def settled(generation: str) -> TableState:
        summary = {"operation": "append", "engine.generation-id": generation, "engine.batch-id": "4"}
        lake = LakeByHand(tmp_path)
        lake.table("shop", "m", snapshots=[{"snapshot-id": 1, "timestamp-ms": 1, "summary": summary}])
        settle_interrupted_refresh(model, folder, Lake(compiled.target.catalog))
        return folder

    return settled


@pytest.mark.slow
def test_a_refresh_that_was_killed_before_its_table_was_replaced_goes(killed: Callable[..., TableState]) -> None:
    folder = killed("g1")
    assert folder.unpublished() is None
    assert [folder.checkpoint(number).exists() for number in (1, 2)] == [True, False]
    assert folder.journal.open_operation(Refresh) == BEGUN, "it is still to be done"


@pytest.mark.slow
def test_a_refresh_that_was_killed_behind_that_is_the_table_s(killed: Callable[..., TableState]) -> None:
    folder = killed("g2")
    known = folder.load()
    assert known is not None
    assert (known.generation, known.phase, known.table) == (2, Phase.PUBLISHED, folder.name)
    assert [folder.checkpoint(number).exists() for number in (1, 2)] == [False, True]
    assert folder.journal.open_operation(Refresh) is None


@pytest.mark.parametrize(("generation", "kept"), [(1, True), (2, False)])
def test_the_note_of_a_refresh_goes_once_its_generation_is_the_table_s(
    compiled: Compiled, generation: int, kept: bool
) -> None:
    model = compiled.manifest.model("m")
    folder = table_state(compiled.target, model)
    folder.save(ModelState(str(model.relation), generation, Phase.PUBLISHED, "u", model.fingerprint))
    folder.journal.begin(BEGUN)
    settle_interrupted_refresh(model, folder, Lake(compiled.target.catalog))
    assert (folder.journal.open_operation(Refresh) is not None) is kept
