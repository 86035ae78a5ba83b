"""Giving a table its name without Java: what is moved, in steps that a kill may separate, and what is in the way."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from engine.api import Project
from engine.compile.nodes.facts import plain
from engine.compile.nodes.fingerprint import fingerprint
from engine.errors import EngineError, StateError
from engine.lake.clients.catalog_client import SqliteCatalog
from engine.lake.clients.table_removal import shared_folders
from engine.lake.lake_reader import Lake
from engine.plan.deployed.renamed_tables import Renaming, renamings, state_now
from engine.runtime.lifecycle.rename_table import rename_table
from engine.state import known_tables, locked
from engine.state.operations import Drop, Refresh, Rename, Rollback
from tests.fault_injection.points import KilledError, kill, reached
from tests.runtime.orphaned import TABLE, Orphaned, project

pytestmark = pytest.mark.slow

HOOK = "post_hook: ['delete from {{ this }} where false']"
NEW = TABLE.replace("materialized", f"renamed_from: old\n{HOOK}\nmaterialized")
POINTS = ("begun", "renamed", "rewritten", "moved")


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Orphaned:
    made = project(tmp_path / "project", capsys)
    made.model("new", NEW)
    return made


def built(lab: Orphaned, name: str = "old") -> str:
    """A table with all that may be beside it, whose generation has read another one from an initial snapshot."""
    model = Project(lab.root).compile().manifest.model("new")
    facts = structs.replace(model.facts, relation=f"lake.s.{name}")
    starts = {"model.x": {"uuid": "u", "seed": f"lake.s.{name}__seed1_x"}, "model.y": {"uuid": "v"}}
    uuid = lab.built(name, state={"fingerprint": fingerprint(facts), "starts": starts})
    lab.folder(name).save_facts(1, fingerprint(facts), plain(facts))
    for end, mark in {"quarantine": "quarantine", "deleted": "deleted", "seed1_x": "seed"}.items():
        lab.table_of(f"{name}__{end}", **{"engine.model": name, f"engine.{mark}": "true"})
    lab.table_of(f"{name}__of_others")
    return uuid


def renaming(lab: Orphaned) -> Any:
    compiled = Project(lab.root).compile()
    manifest, target = compiled.manifest, compiled.target
    found = renamings(manifest, target, lab.root, manifest.models, Lake(target.catalog))
    return target, found.get("model.new")


def rename(lab: Orphaned) -> None:
    target, one = renaming(lab)
    assert isinstance(one, Renaming), one
    with locked([one.folder, lab.folder("new")]):
        rename_table(target, one)


def planned(lab: Orphaned) -> dict[str, Any]:
    return plan_of(lab, "new")


def plan_of(lab: Orphaned, name: str) -> dict[str, Any]:
    lines = lab.run("plan", "--output", "json", "-s", name).out.splitlines()
    (found,) = [line for line in map(json.loads, lines) if line.get("name") == name]
    return found


def blocked(lab: Orphaned) -> str:
    found = planned(lab)
    (refusal,) = found["refusals"]
    assert refusal["code"] == "rename-blocked", refusal
    return f"{refusal['message']} {refusal['hint']}"


def is_moved(lab: Orphaned, uuid: str) -> None:
    tables = {f"new{end}" for end in ("", "__quarantine", "__deleted", "__seed1_x")}
    assert set(lab.entries()) == {*tables, "old__of_others"}
    table = Lake(lab.config).table("s", "new")
    assert table is not None
    assert table.uuid == uuid
    assert len(lab.rows("new")) == 2
    assert not lab.folder("old").folder.exists()
    state = lab.folder("new").load()
    assert state is not None
    assert (state.table, state.uuid, state.model) == ("lake.s.new", uuid, "old")
    assert [start.get("seed") for start in state.starts.values()] == ["lake.s.new__seed1_x", None]
    # As if its table had always had that name.
    model = Project(lab.root).compile().manifest.model("new")
    assert state.fingerprint == model.fingerprint
    assert lab.folder("new").facts(state) == json.loads(json.dumps(plain(model.facts)))
    assert (lab.folder("new").checkpoint(1) / "metadata").exists()
    assert not (lab.root / ".engine/state/lake/s/new/operation.json").exists()


def test_a_plan_says_what_is_renamed_and_changes_nothing(lab: Orphaned) -> None:
    built(lab)
    before = sorted(lab.entries())
    found = planned(lab)
    assert found["reasons"][0] == (
        "renamed from lake.s.old to lake.s.new, with its state (also __deleted, __quarantine, __seed1_x)"
    )
    assert (found["change"], found["unchanged"], found["refusals"]) == ("unchanged", False, [])
    assert sorted(lab.entries()) == before
    assert lab.folder("old").journal.open_operation(Rename) is None


def test_table_and_state_are_moved(lab: Orphaned) -> None:
    uuid = built(lab)
    rename(lab)
    is_moved(lab, uuid)
    # The key means nothing any more.
    assert renaming(lab)[1] is None


def test_where_folders_cannot_be_exchanged(lab: Orphaned, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = built(lab)
    monkeypatch.setattr(known_tables, "_exchanged", lambda *_: False)
    rename(lab)
    is_moved(lab, uuid)


# One point is reached several times.
@pytest.mark.gate
@pytest.mark.parametrize(("point", "skipped"), [*((point, 0) for point in POINTS), ("renamed", 2)])
def test_a_kill_at_any_step_is_finished(lab: Orphaned, point: str, skipped: int) -> None:
    uuid = built(lab)
    passed: list[str] = []

    def later(*_: object) -> None:
        passed.append(point)
        if len(passed) > skipped:
            kill()

    with reached(point, later), pytest.raises(KilledError):
        rename(lab)
    if point != "moved":
        assert planned(lab)["reasons"][0].startswith("renamed from lake.s.old to lake.s.new")
        rename(lab)
    else:
        assert renaming(lab)[1] is None
        lab.folder("new").journal.end(Rename)
    is_moved(lab, uuid)


def test_both_names_are_locked_until_the_end(lab: Orphaned) -> None:
    built(lab)
    target, one = renaming(lab)
    with locked([one.folder, lab.folder("new")]):
        rename_table(target, one)
        with pytest.raises(StateError, match="being written by"), locked([lab.folder("new")]):
            pass
    with locked([lab.folder("new")]):
        pass


def test_who_waits_for_the_new_name_gets_it_afterwards(lab: Orphaned) -> None:
    built(lab)
    target, one = renaming(lab)
    ended, found = threading.Event(), []

    def wait() -> None:
        while not ended.is_set():
            try:
                with locked([lab.folder("new")]):
                    found.append(lab.folder("new").load())
                    ended.set()
            except StateError:
                continue

    with locked([one.folder, lab.folder("new")]):
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        rename_table(target, one)
    assert ended.wait(20)
    assert found != [None]


def test_two_tables_are_an_error(lab: Orphaned) -> None:
    built(lab)
    lab.built("new")
    text = blocked(lab)
    assert "lake.s.old cannot become lake.s.new: both exist" in text
    assert "engine drop lake.s.new" in text
    assert "engine drop lake.s.old" in text


def test_a_name_that_somebody_else_has(lab: Orphaned) -> None:
    built(lab)
    lab.table_of("new__quarantine")
    assert "lake.s.old__quarantine cannot become lake.s.new__quarantine: both exist" in blocked(lab)


def test_what_is_unfinished_comes_first(lab: Orphaned) -> None:
    built(lab)
    for operation, what in ((Refresh(), "full refresh"), (Rollback(1, 2), "rollback"), (Drop(), "drop")):
        lab.folder("old").journal.begin(operation)
        text = blocked(lab)
        assert f"a {what} of it was interrupted" in text
        assert "alias: old" in text
        if not isinstance(operation, Drop):
            lab.folder("old").journal.end(type(operation))


def test_a_table_that_is_gone_and_one_that_never_was(lab: Orphaned) -> None:
    lab.built("current")
    lab.noted("old", uuid="u", model="old")
    assert "it is not a table, or was dropped" in blocked(lab)
    lab.model("new", NEW.replace("renamed_from: old", "renamed_from: never"))
    assert renaming(lab)[1] is None
    lab.view("seen")
    lab.model("new", NEW.replace("renamed_from: old", "renamed_from: seen"))
    assert "it is not a table" in blocked(lab)


def test_a_first_build_that_was_interrupted(lab: Orphaned) -> None:
    lab.noted("old", model="old", phase="building")
    assert "its first build was interrupted" in blocked(lab)


def test_a_name_that_several_tables_had(lab: Orphaned) -> None:
    lab.built("one", model="old")
    uuid = lab.built("two", model="old")
    assert "'old' was 2 tables: lake.s.one, lake.s.two" in blocked(lab)
    lab.model("new", NEW.replace("renamed_from: old", "renamed_from: S.two"))
    rename(lab)
    table = Lake(lab.config).table("s", "new")
    assert table is not None
    assert table.uuid == uuid


def test_a_state_that_cannot_be_read(lab: Orphaned) -> None:
    built(lab)
    (lab.folder("old").generation(1) / "model.json").write_text("{")
    (refusal,) = planned(lab)["refusals"]
    assert refusal["code"] == "state-unreadable"


def test_the_model_of_the_old_name_does_not_take_what_is_half_renamed(lab: Orphaned) -> None:
    built(lab)
    with reached("renamed", kill), pytest.raises(KilledError):
        rename(lab)
    (lab.root / "models/new.sql").unlink()
    lab.model("old", TABLE)
    found = plan_of(lab, "old")
    assert "rename-blocked" in {refusal["code"] for refusal in found["refusals"]}
    assert "lake.s.new" in found["refusals"][0]["message"]
    # Nor does a drop.
    assert lab.run("drop", "lake.s.old", "--yes").code == 1


def test_a_catalog_without_renames(lab: Orphaned, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = built(lab)
    monkeypatch.setattr(SqliteCatalog, "renames", False)
    text = blocked(lab)
    assert "ALTER TABLE `lake`.`s`.`old` RENAME TO `lake`.`s`.`new`" in text
    assert "__quarantine" in text
    for name in [name for name in lab.entries() if name != "old__of_others"]:
        lab.sql("update iceberg_tables set table_name = ? where table_name = ?", f"new{name[3:]}", name)
    # What another program has renamed is continued.
    rename(lab)
    is_moved(lab, uuid)


@pytest.mark.parametrize(
    ("models", "word"),
    [
        ({"old": TABLE}, "but that is 'old'"),
        ({"other": TABLE.replace("materialized", "alias: old\nmaterialized")}, "but that is 'other'"),
        ({"other": NEW}, "are both renamed from 'old'"),
        ({"new": NEW.replace("renamed_from: old", "renamed_from: 'a b'")}, "is not the name of a model or table"),
    ],
)
def test_one_model_continues_one_table(lab: Orphaned, models: dict[str, str], word: str) -> None:
    for name, text in models.items():
        lab.model(name, text)
    result = lab.run("compile")
    assert result.code == 1
    assert word in result.text


def test_a_catalog_renames_only_what_was_looked_at(lab: Orphaned) -> None:
    built(lab)
    catalog = SqliteCatalog(lab.config)
    entry = catalog.table("s", "old")
    assert entry is not None
    lab.table_of("taken")
    with pytest.raises(EngineError, match="UNIQUE"):
        catalog.rename(entry, "s", "taken")
    lab.sql("update iceberg_tables set metadata_location = 'x' where table_name = 'old'")
    assert not catalog.rename(entry, "s", "new")
    assert "old" in lab.entries()


def test_the_source_of_a_stream_is_known_by_its_uuid() -> None:
    from engine.plan.deployed.checkpoint_facts import with_earlier_tables
    from engine.plan.source_changes import StreamSource, difference, renames

    before = (StreamSource("model.old", "old", "table", {"table": "lake.s.old", "uuid": "u"}),)
    now = (StreamSource("model.new", "new", "table", {"table": "lake.s.new"}),)
    assert difference(before, now) is not None
    known = with_earlier_tables(now, before, {"model.new": "u"})
    assert difference(before, known) is None
    assert renames(before, known)["model.old"].node == "model.new"
    # Another table, and another of the same name.
    assert difference(before, with_earlier_tables(now, before, {"model.new": "v"})) is not None
    same = (StreamSource("model.new", "new", "table", {"table": "lake.s.old"}),)
    assert with_earlier_tables(same, before, {"model.new": "v"}) == same


def test_what_a_stream_has_read_is_found_under_either_name(lab: Orphaned) -> None:
    built(lab)
    compiled = Project(lab.root).compile()
    model = compiled.manifest.model("new")
    assert state_now(compiled.target, model).table == "old"
    rename(lab)
    assert state_now(compiled.target, model).table == "new"
    assert state_now(compiled.target, compiled.manifest.model("current")).table == "current"


def test_two_tables_of_one_folder_are_known(lab: Orphaned) -> None:
    built(lab)
    assert shared_folders(lab.config, ["s"]) == frozenset()
    folder = lab.warehouse / "s" / "old"
    rename(lab)
    assert shared_folders(lab.config, ["s"]) == frozenset()
    # PyIceberg makes it in the folder of its name, where the other one has its files.
    lab.table_of("old")
    assert shared_folders(lab.config, ["s"]) == {folder.as_uri()}


def test_a_note_that_no_build_wrote(lab: Orphaned) -> None:
    built(lab)
    for tables in ([], {"_x": "u"}, {"__a; b": "u"}):
        entry = {"operation": {"kind": "rename", "to": "lake.s.new", "tables": tables}}
        lab.write(".engine/state/lake/s/old/operation.json", json.dumps({"format": 1, "operations": [entry]}))
        (refusal,) = planned(lab)["refusals"]
        assert refusal["code"] == "state-unreadable"
