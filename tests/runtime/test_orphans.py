"""Tables that no model has any more: found in the state, listed, and dropped with all that is theirs and nothing else."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import invoke
from engine.state import known_tables, locked
from engine.state.operations import Drop, DroppedTable
from tests.lab import REPOSITORY
from tests.runtime.orphaned import BUILT, PROJECT, TABLE, Orphaned, project

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Orphaned:
    return project(tmp_path / "project", capsys)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def drop(lab: Orphaned, *names: str) -> Any:
    return lab.run("drop", *names, "--yes")


def test_a_table_of_which_the_model_is_gone_is_an_orphan(lab: Orphaned) -> None:
    lab.built("current")
    lab.built("old")
    lab.built("moved", "marts", model="current")
    assert lab.orphans() == ["lake.marts.moved", "lake.s.old"]
    text = lab.run("ls", "--orphans").out
    assert "the project has no model 'old'" in text
    assert "the table of 'current' is lake.s.current now" in text
    assert lab.run("ls", "--orphans", "--output", "name").out.splitlines() == ["lake.marts.moved", "lake.s.old"]


@pytest.mark.parametrize(
    ("environment", "orphan"),
    [
        (BUILT, True),
        ({}, True),  # an older version noted none
        ({**BUILT, "target": "prod"}, False),
        ({**BUILT, "schema": "before"}, True),
        ({**BUILT, "project": "renamed"}, True),  # the state is in the project's own folder
    ],
)
def test_only_what_this_project_and_target_have_built_is_an_orphan(
    lab: Orphaned, environment: dict[str, str], *, orphan: bool
) -> None:
    lab.built("old", state={"environment": environment})
    assert lab.orphans() == (["lake.s.old"] if orphan else [])


def test_tables_of_other_schemas_of_a_template_are_others(lab: Orphaned, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.built("old", "s_mary", state={"environment": {**BUILT, "schema": "s_mary"}})
    lab.built("gone", "s_john", state={"environment": {**BUILT, "schema": "s_john"}})
    lab.write("project.yml", PROJECT.replace("schema: s}", "schema: \"s_{{ env_var('ME') }}\"}"))
    monkeypatch.setenv("ME", "john")
    assert lab.orphans() == ["lake.s_john.gone"]


def test_projects_that_share_a_state_folder_keep_apart(lab: Orphaned, tmp_path: Path) -> None:
    lab.built("old", state={"environment": {**BUILT, "project": "other"}})
    lab.built("mine")
    (lab.root / ".engine" / "state").rename(tmp_path / "state")
    lab.write("project.yml", PROJECT.replace("schema: s}", f"schema: s, state: {tmp_path / 'state'}}}"))
    assert lab.orphans() == ["lake.s.mine"]


def test_tables_that_are_in_use_or_of_others_are_no_orphans(lab: Orphaned) -> None:
    lab.built("frozen")
    lab.table_of("theirs")
    lab.write("sources/s.yml", "sources: [{name: x, tables: [{name: f, format: iceberg, table: s.frozen}]}]")
    (lab.root / ".engine" / "state" / "lake" / "s" / "empty").mkdir(parents=True)
    assert lab.orphans() == []
    assert drop(lab, "theirs").code == 2


def test_a_state_that_cannot_be_read_hides_no_other(lab: Orphaned) -> None:
    lab.built("old")
    lab.write(".engine/state/lake/s/damaged/1/model.json", "[")
    lab.write(".engine/state/lake/s/odd/drop.json", "[1]")
    assert "lake.s.old" in lab.orphans()
    assert drop(lab, "old").code == 0


def test_a_drop_takes_all_that_is_the_tables(lab: Orphaned) -> None:
    lab.built("current")
    lab.built("old")
    mine = {"engine.model": "old"}
    lab.table_of("old__quarantine", **mine, **{"engine.quarantine": "true"})
    lab.table_of("old__deleted", **mine, **{"engine.deleted": "true"})
    lab.table_of("old__g2", **mine, **{"engine.staging": "true"})
    lab.table_of("old__seed1_events", **mine, **{"engine.seed": "true"})
    others = {"engine.model": "somebody"}
    lab.table_of("old__g3", **others, **{"engine.staging": "true"})
    lab.table_of("old__g4", **mine)
    lab.table_of("old__notes")
    before = {name: files(lab.warehouse / "s" / name) for name in ("current", "old__g3", "old__g4", "old__notes")}
    done = drop(lab, "old")
    assert done.code == 0, done.text
    assert [e["role"] for e in done.events if e["event"] == "TableDropped"] == [
        "table", "deleted keys", "staging table", "quarantine", "initial snapshot",
    ]  # fmt: skip
    assert next(e for e in done.events if e.get("role") == "table")["rows"] == 2
    assert sorted(lab.entries()) == ["current", "old__g3", "old__g4", "old__notes"]
    assert {name: files(lab.warehouse / "s" / name) for name in before} == before
    assert sorted(path.name for path in (lab.warehouse / "s").iterdir()) == sorted(before)
    assert sorted(path.name for path in lab.state.iterdir()) == ["current"]
    assert lab.orphans() == []
    assert drop(lab, "old").code == 2


def test_a_view_goes_too(lab: Orphaned) -> None:
    lab.built("current")
    lab.view("seen")
    assert lab.orphans() == ["lake.s.seen"]
    assert drop(lab, "s.seen").code == 0
    assert sorted(lab.entries()) == ["current"]
    assert not (lab.warehouse / "s" / "seen").exists()
    assert not (lab.state / "seen").exists()


def test_a_table_that_others_have_made_under_the_name_stays(lab: Orphaned) -> None:
    lab.built("old")
    with lab.catalog() as catalog:
        catalog.drop_table("s.old")
    lab.table_of("old")
    kept = files(lab.warehouse / "s" / "old")
    done = drop(lab, "old")
    assert done.code == 0, done.text
    assert list(lab.entries()) == ["old"]
    assert files(lab.warehouse / "s" / "old") == kept
    assert not (lab.state / "old").exists()


def test_state_of_a_table_that_is_gone_is_dropped(lab: Orphaned) -> None:
    lab.built("old")
    with lab.catalog() as catalog:
        catalog.drop_table("s.old")
    assert lab.orphans() == ["lake.s.old"]
    assert drop(lab, "old").code == 0
    assert not (lab.state / "old").exists()


def test_a_table_of_which_the_files_are_gone_leaves_the_catalog(lab: Orphaned) -> None:
    import shutil

    lab.built("old")
    shutil.rmtree(lab.warehouse / "s" / "old")
    assert drop(lab, "old").code == 0
    assert lab.entries() == {}


@pytest.mark.parametrize("how", ["renamed", "registered", "inside"])
def test_files_in_a_folder_that_another_table_uses_stay(lab: Orphaned, how: str) -> None:
    lab.built("old")
    with lab.catalog() as catalog:
        if how == "renamed":
            catalog.rename_table("s.old", "s.other")
            lab.noted("other")
        elif how == "registered":
            catalog.register_table("s.other", lab.entries()["old"].location)
        else:
            catalog.create_table("s.other", catalog.load_table("s.old").schema(), f"{lab.warehouse}/s/old/data/deep")
    before = files(lab.warehouse / "s" / "old")
    done = drop(lab, "old")
    assert done.code == 0, done.text
    assert list(lab.entries()) == ["other"]
    assert files(lab.warehouse / "s" / "old") == before


def test_files_of_a_table_that_keeps_them_stay(lab: Orphaned, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = lab.table_of("old", **{"engine.model": "old", "gc.enabled": "false"})
    lab.noted("old", uuid=uuid)
    assert invoke(["drop", "old", "--yes", "--project-dir", str(lab.root)]) == 0
    assert "the files of lake.s.old stay: its property gc.enabled is false" in capsys.readouterr().out
    assert lab.entries() == {}
    assert files(lab.warehouse / "s" / "old")


def test_names_mean_one_table(lab: Orphaned) -> None:
    lab.write("models/current.sql", TABLE.replace("materialized: table", "materialized: table\nalias: now"))
    lab.built("current")
    lab.built("now", model="current")
    assert lab.orphans() == ["lake.s.current"]
    done = drop(lab, "current")
    assert done.code == 2
    assert "engine drop lake.s.current, engine drop lake.s.now" in done.text
    assert sorted(lab.entries()) == ["current", "now"]
    assert drop(lab, "lake.s.current").code == 0
    assert sorted(lab.entries()) == ["now"]
    typo = drop(lab, "nov")
    assert typo.code == 2
    assert "Did you mean 'now'?" in typo.text


def test_nobody_to_ask_is_an_error_that_names_the_option(lab: Orphaned) -> None:
    lab.built("old")
    done = lab.run("drop", "old")
    assert done.code == 2
    assert "--yes" in done.text
    assert list(lab.entries()) == ["old"]


@pytest.mark.parametrize(("answer", "left"), [("y\n", []), ("n\n", ["old"]), ("", ["old"])])
def test_it_asks(lab: Orphaned, answer: str, left: list[str]) -> None:
    import pty

    lab.built("old")
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode() or b"\x04")
    done = subprocess.run(
        [sys.executable, "-m", "engine", "drop", "old", "--project-dir", str(lab.root)],
        stdin=theirs, capture_output=True, text=True, cwd=REPOSITORY, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert "Remove them? [y/N]" in done.stdout
    assert "table            lake.s.old  (2 rows, " in done.stdout
    assert done.returncode == (1 if left else 0), done.stdout + done.stderr
    assert list(lab.entries()) == left


def test_a_running_build_is_not_disturbed(lab: Orphaned, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.built("old")
    with locked([lab.folder("old")]):
        done = drop(lab, "old")
    assert done.code == 1
    assert done.codes() == ["table-locked"]
    assert list(lab.entries()) == ["old"]


def test_a_build_that_waited_for_the_lock_has_a_folder_of_its_own(lab: Orphaned) -> None:
    """A lock on the file that a drop has removed is none: another build would have made the next one."""
    folder, order = lab.folder("old"), []

    def build() -> None:
        with locked([folder]):
            order.append("build")
            assert (folder.folder / "lock").exists()

    thread = threading.Thread(target=build)
    with locked([folder]):
        # Whoever waits does so for a process that is gone.
        (folder.folder / "lock").write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname()}))
        thread.start()
        time.sleep(0.5)
        known_tables.remove(folder)
        with locked([folder]):
            pass
        order.append("drop")
    thread.join()
    assert order == ["drop", "build"]


STREAM = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}"


def streaming(name: str) -> str:
    return f"/*---\nstreams: [{name}]\n---*/\nselect id from {{{{ ref('{name}') }}}}"


def view(name: str) -> str:
    return f"/*---\nmaterialized: view\n---*/\nselect id from {{{{ ref('{name}') }}}}"


@pytest.mark.parametrize("reader", [streaming("current"), view("current")])
def test_a_model_that_others_stand_on_is_dropped_together_with_them(lab: Orphaned, reader: str) -> None:
    lab.write("models/current.sql", STREAM)
    lab.write("models/reader.sql", reader)
    lab.built("current")
    assert drop(lab, "current").code == 0  # the reader was never built
    lab.built("current")
    lab.view("reader") if "view" in reader else lab.built("reader")
    done = drop(lab, "current")
    assert done.code == 1
    assert done.codes()[-1] == "downstream-stops"
    assert "engine drop lake.s.current lake.s.reader" in done.text
    assert sorted(lab.entries()) == ["current", "reader"]
    assert drop(lab, "current", "reader").code == 0
    assert lab.entries() == {}
    assert list(lab.state.iterdir()) == []


def test_an_orphan_that_a_stream_has_read_is_kept_for_it(lab: Orphaned) -> None:
    lab.write("models/current.sql", STREAM)
    lab.write("models/reader.sql", streaming("current"))
    uuid = lab.built("old")
    lab.built("reader", state={"starts": {"model.old": {"uuid": uuid}}})
    assert lab.orphans() == ["lake.s.old"]
    done = drop(lab, "old")
    assert (done.code, done.codes()[-1]) == (1, "downstream-stops")
    assert drop(lab, "old", "--accept", "downstream-stops").code == 0


def test_a_protected_model_is_not_dropped(lab: Orphaned) -> None:
    lab.write("models/current.sql", TABLE.replace("---*/", "full_refresh: false\n---*/"))
    lab.built("current")
    done = drop(lab, "current")
    assert (done.code, done.codes()[-1]) == (1, "full-refresh-protected")


def test_a_model_without_state_is_known_by_the_marks_of_its_table(lab: Orphaned) -> None:
    lab.table_of("current", **{"engine.model": "current"})
    assert drop(lab, "current").code == 0
    assert lab.entries() == {}


def test_a_build_waits_for_an_unfinished_drop(lab: Orphaned) -> None:
    lab.built("current")
    lab.folder("current").journal.begin(Drop())
    done = lab.run("build")
    assert (done.code, done.codes()[-1]) == (1, "drop-unfinished")
    assert "engine drop lake.s.current" in done.text


class TestHostile:
    """What a project brings along in state and catalog leads no drop out of its own warehouse and state."""

    @pytest.mark.parametrize(
        "place",
        ["file://{precious}", "{warehouse}/s/../../../../../precious", "{warehouse}", "{warehouse}/s", "", "/", "x"],
    )
    def test_a_table_whose_folder_is_elsewhere(self, lab: Orphaned, tmp_path: Path, place: str) -> None:
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "file").touch()
        lab.built("old")
        lab.built("current")
        said = place.format(precious=precious, warehouse=lab.warehouse)
        metadata = Path(lab.entries()["old"].location.removeprefix("file://"))
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "location": said}))
        lab.folder("old").journal.begin(Drop(parts=(DroppedTable("", "s", "old", "x", said),)))
        before = files(lab.warehouse)
        assert drop(lab, "old").code == 0
        assert files(precious) == ["file"]
        assert files(lab.warehouse) == before
        assert "current" in lab.entries()

    @pytest.mark.parametrize("place", ["", "data", "metadata"])
    def test_a_folder_that_is_a_link(self, lab: Orphaned, tmp_path: Path, place: str) -> None:
        lab.built("old")
        folder = lab.warehouse / "s" / "old" / place
        elsewhere = tmp_path / "precious"
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        before = files(elsewhere)
        done = drop(lab, "old")
        assert done.code == 0, done.text
        assert files(elsewhere) == before

    @pytest.mark.parametrize("part", ["lake", "lake/s", "lake/s/old", "lake/s/old/1", "lake/s/old/1/checkpoint"])
    def test_a_state_that_is_a_link(self, lab: Orphaned, tmp_path: Path, part: str) -> None:
        lab.built("old")
        path, elsewhere = lab.root / ".engine" / "state" / part, tmp_path / "precious"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        before = files(elsewhere)
        drop(lab, "old")
        assert files(elsewhere) == before

    def test_files_of_others_in_a_state_folder_stay(self, lab: Orphaned) -> None:
        lab.built("old")
        lab.write(".engine/state/lake/s/old/thesis.txt", "years of work")
        assert drop(lab, "old").code == 0
        assert files(lab.state / "old") == ["thesis.txt"]
        assert lab.orphans() == []

    def test_a_catalog_that_runs_something_is_not_written(self, lab: Orphaned) -> None:
        lab.built("old")
        lab.built("current")
        lab.sql("create trigger t before delete on iceberg_tables begin delete from iceberg_tables; end")
        done = drop(lab, "old")
        assert (done.code, done.codes()[-1]) == (1, "catalog-unusable")
        assert sorted(lab.entries()) == ["current", "old"]

    def test_names_with_a_path_in_them(self, lab: Orphaned) -> None:
        lab.built("old")
        for name in ("../old", "lake/s/old", "s/../s.old", "", "lake.s.old.."):
            assert drop(lab, name).code == 2
        assert list(lab.entries()) == ["old"]


# Each of them changes what is on disk; the names of Python's audit events.
_CHANGES = {"os.remove", "os.rmdir", "os.rename", "os.link", "os.truncate", "shutil.rmtree", "sqlite3.connect"}


def _dying(root: Path, step: int) -> int:
    """Run a drop in a process that kills itself before its n-th change; the exit code, below zero when it was killed."""
    child = os.fork()
    if child == 0:
        code = 70
        signal.alarm(60)
        try:
            seen = 0

            def count(event: str, _: object) -> None:
                nonlocal seen
                if event in _CHANGES:
                    seen += 1
                    if seen == step:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            code = invoke(["drop", "old", "--yes", "-q", "--project-dir", str(root)])
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.gate
def test_a_drop_that_is_killed_at_any_step_is_finished_by_the_next(lab: Orphaned) -> None:
    lab.built("current")
    kept = files(lab.warehouse / "s" / "current"), files(lab.state / "current")
    killed, states = 0, set()
    for step in range(1, 400):
        lab.built("old", rows=False)
        lab.table_of("old__quarantine", rows=False, **{"engine.model": "old", "engine.quarantine": "true"})
        code = _dying(lab.root, step)
        if code == 0:
            break
        assert code == -signal.SIGKILL, f"step {step}: {code}"
        killed += 1
        begun = (lab.state / "old" / "operation.json").exists()
        states.add(
            (
                begun,
                tuple(sorted(lab.entries())),
                (lab.warehouse / "s" / "old").exists(),
                (lab.state / "old" / "1").exists(),
            )
        )
        if (lab.state / "old").exists() and lab.orphans():
            assert drop(lab, "lake.s.old").code == 0, f"step {step}"
        assert sorted(lab.entries()) == ["current"], f"step {step}"
        assert [path.name for path in (lab.warehouse / "s").iterdir()] == ["current"], f"step {step}"
        assert lab.orphans() == [], f"step {step}"
    else:
        pytest.fail("it never ended")
    assert killed > 20
    both, one, none = ("current", "old", "old__quarantine"), ("current", "old__quarantine"), ("current",)
    for seen in [
        (False, both, True, True),  # nothing was done
        (True, both, True, True),  # noted
        (True, one, True, True),  # out of the catalog
        (True, one, False, True),  # without files
        (True, none, False, True),  # the quarantine, too
        (True, none, False, False),  # the state
    ]:
        assert seen in states
    assert (files(lab.warehouse / "s" / "current"), files(lab.state / "current")) == kept


def test_neither_spark_nor_pyiceberg_is_needed(lab: Orphaned) -> None:
    lab.built("old")
    code = (
        "import sys\nfrom engine.cli.main import invoke\n"
        "for command in (['ls', '--orphans'], ['debug'], ['drop', 'old', '--yes']):\n"
        "    done = invoke([*command, '--project-dir', sys.argv[1]])\n"
        "    print('DONE', done, sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'pyiceberg', 'pyarrow', 'py4j'}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(lab.root)], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    done = [line for line in ended.stdout.splitlines() if line.startswith("DONE")]
    # `debug` ends with 1 where no jar was downloaded yet, and for no other reason.
    failed = {line.split()[1] for line in ended.stdout.splitlines() if line.startswith("ERROR")}
    assert failed <= {"jars"}, ended.stdout
    assert done == ["DONE 0 []", f"DONE {len(failed)} []", "DONE 0 []"], ended.stdout + ended.stderr


def test_the_catalog_is_written_beside_readers(lab: Orphaned) -> None:
    lab.built("old")
    with closing(sqlite3.connect(lab.lake_path / "catalog.db")) as connection:
        connection.execute("pragma journal_mode = wal")  # as Spark's sessions set it
        connection.execute("begin")
        connection.execute("select * from iceberg_tables").fetchall()
        assert drop(lab, "old").code == 0
    assert lab.entries() == {}
