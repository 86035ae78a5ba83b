"""What is below target/ stays below it: no command writes, appends to or removes anything through a link."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.errors import ProjectError
from engine.events import RunResults
from engine.project import load_project
from engine.runtime.context.run_results import read_results, write_results
from engine.spark.jvm import open_log
from tests.security.hostile import HARMLESS, run, tree, write

pytestmark = pytest.mark.slow

BEFORE = ("manifest.json", "run_results.json", "catalog.json", "index.html", "engine.log", "spark.log", "a.sql", "a.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {})


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the user's own, with files of the names that commands write."""
    folder = tmp_path / "precious"
    for name in ("", "data", "small/models", "deep/er"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in (*BEFORE, "nodes9.js", "notes.txt"):
            (folder / name / file).write_text("mine\n")
    return folder


def link(root: Path, name: str, to: Path) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    before = tree(folder)
    yield
    assert tree(folder) == before


FOLDERS = (
    "target", "target/.cache", "target/compiled", "target/compiled/small", "target/compiled/small/models",
    "target/docs", "target/docs/data", "target/logs",
)  # fmt: skip
FILES = (
    "target/manifest.json", "target/compiled/small/models/a.sql", "target/compiled/small/models/a.py",
    "target/docs/index.html", "target/docs/data/index.js", "target/.cache/lock",
)  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS, ids=" ".join)
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_below_target_that_is_a_link_is_never_followed(root, precious, name, command, capsys):
    link(root, name, precious)
    with untouched(precious):
        code = run(root, *command)
    assert code in {0, 1}, capsys.readouterr().err


@pytest.mark.parametrize("command", [["compile"], ["docs", "generate"]], ids=" ".join)
@pytest.mark.parametrize("name", FILES)
def test_a_file_below_target_that_is_a_link_is_never_written_through(root, precious, name, command, capsys):
    link(root, name, precious / "notes.txt")
    with untouched(precious):
        code = run(root, *command)
    assert code in {0, 1}, capsys.readouterr().err


@pytest.mark.parametrize("name", FOLDERS[:5] + FILES[:3])
def test_a_link_below_target_is_named_with_what_to_do(root, precious, name, capsys):
    link(root, name, precious / "notes.txt" if name in FILES else precious)
    assert run(root, "compile") == 1
    shown = capsys.readouterr()
    assert "target-link" in shown.out + shown.err
    assert name in shown.out + shown.err


def test_a_link_that_leads_nowhere_and_one_in_a_circle_are_refused_as_well(root, tmp_path, capsys):
    link(root, "target", tmp_path / "nowhere")
    assert run(root, "compile") == 1
    (root / "target").unlink()
    link(root, "target", root / "target")
    assert run(root, "compile") == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_log_is_appended_to_no_link_and_no_file_with_a_second_name(root, precious, tmp_path):
    for name in ("spark.log", "engine.log"):
        logs = root / "target" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        for make in (os.symlink, os.link):
            make(precious / "notes.txt", logs / name)
            before = (precious / "notes.txt").read_bytes()
            with pytest.raises(ProjectError) as raised:
                _log(root, name)
            assert raised.value.diagnostic.code == "target-link"
            assert (precious / "notes.txt").read_bytes() == before
            (logs / name).unlink()
    (root / "target" / "logs").rmdir()
    link(root, "target/logs", precious)
    with untouched(precious), pytest.raises(ProjectError):
        _log(root, "spark.log")


def _log(root: Path, name: str) -> None:
    if name == "spark.log":
        open_log(root / "target" / "logs").close()
        return
    from engine.cli.command_setup import log_file, read_settings

    with log_file(read_settings(root, None, "{}", "text", quiet=True)):
        pass


def test_a_trace_of_the_engine_itself_is_appended_to_no_link(root, precious, capsys):
    from engine.cli.command_setup import read_settings, report_internal_error

    link(root, "target/logs/engine.log", precious / "notes.txt")
    with untouched(precious):
        report_internal_error(RuntimeError("x"), read_settings(root, None, "{}", "text", quiet=True))
    assert "internal error" in capsys.readouterr().err


def test_results_of_a_run_are_written_and_read_through_no_link(root, precious):
    (precious / "results.json").write_text('{"results": ["theirs"]}')
    link(root, "target/run_results.json", precious / "results.json")
    assert read_results(root / "target") is None
    with untouched(precious), pytest.raises(ProjectError) as raised:
        write_results(RunResults(), root / "target", "small")
    assert raised.value.diagnostic.code == "target-link"


def test_what_the_user_put_below_target_stays(root):
    assert run(root, "docs", "generate") == 0
    own = [root / "target" / name for name in ("notes.txt", "compiled/notes.txt", "compiled/small/models/notes.sql",
                                              "docs/notes.html", "docs/data/notes.js")]  # fmt: skip
    for path in own:
        path.write_text("mine")
    (root / "target" / "compiled" / "empty").mkdir()
    write(root, {"models/a.sql": "select 1 as one"})
    assert run(root, "docs", "generate") == 0
    assert all(path.read_text() == "mine" for path in own)
    assert (root / "target" / "compiled" / "empty").is_dir()


def test_what_belongs_to_no_model_any_longer_goes_and_its_empty_folders(root):
    write(root, {"models/deep/er/b.sql": "select 1 as one"})
    assert run(root, "compile") == 0
    old = root / "target/compiled/small/models/deep/er/b.sql"
    assert old.is_file()
    (root / "models/deep/er/b.sql").unlink()
    assert run(root, "compile") == 0
    assert not (root / "target/compiled/small/models/deep").exists()
    assert (root / "target/compiled/small/models/a.sql").is_file()


@pytest.mark.parametrize("name", ["target", "target/docs", "target/compiled/small"])
def test_clean_removes_links_and_not_what_they_lead_to(root, precious, name, capsys):
    assert run(root, "compile") == 0
    shutil.rmtree(root / name, ignore_errors=True)
    link(root, name, precious)
    with untouched(precious):
        code = run(root, "clean")
    assert code == (1 if name == "target" else 0)
    assert (root / name).is_symlink() == (name == "target")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("order", [["compile", "docs generate"], ["docs generate", "compile"], ["parse", "compile"]])
def test_folders_are_0700_and_files_0600_whatever_ran_first_and_whatever_the_umask(root, umask, order):
    before = os.umask(umask)
    try:
        for command in order:
            assert run(root, *command.split()) == 0
    finally:
        os.umask(before)
    _all_private(root / "target")


def test_folders_and_files_of_an_earlier_version_become_private(root):
    assert run(root, "docs", "generate") == 0
    for path in (root / "target").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (root / "target").chmod(0o755)
    assert run(root, "docs", "generate") == 0
    _all_private(root / "target")


def _all_private(folder: Path) -> None:
    modes = {str(p.relative_to(folder)): stat.S_IMODE(p.lstat().st_mode) for p in [folder, *folder.rglob("*")]}
    assert {n: oct(m) for n, m in modes.items() if m != (0o700 if (folder / n).is_dir() else 0o600)} == {}


def test_results_logs_and_freshness_are_private_too(root):
    write_results(RunResults(), root / "target", "small")
    open_log(root / "target" / "logs").close()
    _log(root, "engine.log")
    _all_private(root / "target")


@pytest.mark.parametrize("name", ["../out.sql", "/tmp/out.sql", "a/../../out.sql", "a//b.sql", "", ".", "a/\0b"])
def test_a_path_that_leads_out_of_target_is_refused_by_its_writer(tmp_path, name):
    from engine.target_folder import TargetFolder

    with TargetFolder(tmp_path / "target") as folder, pytest.raises(ProjectError) as raised:
        folder.write(name, b"x")
    assert raised.value.diagnostic.code == "path-outside"
    assert {path.name for path in tmp_path.iterdir()} <= {"target"}


def test_a_folder_exchanged_for_a_link_while_it_is_written_leads_nowhere(tmp_path):
    from engine.target_folder import TargetFolder

    (tmp_path / "precious").mkdir()
    with TargetFolder(tmp_path / "target") as folder:
        folder.write("a/one", b"1")
        (tmp_path / "target/a").rename(tmp_path / "target/b")
        (tmp_path / "target/a").symlink_to(tmp_path / "precious")
        folder.write("a/two", b"2")
    assert list((tmp_path / "precious").iterdir()) == []
    assert (tmp_path / "target/b/two").read_bytes() == b"2"


def test_a_file_with_a_second_name_is_replaced_and_not_written(root, precious):
    (root / "target").mkdir()
    os.link(precious / "notes.txt", root / "target/manifest.json")
    assert run(root, "compile") == 0
    assert (precious / "notes.txt").read_text() == "mine\n"
    assert "metadata" in (root / "target/manifest.json").read_text()


def test_a_run_that_cannot_be_written_says_so(root):
    (root / "target").write_text("a file")
    manifest = compile_project(load_project(root), env={}).manifest
    with pytest.raises(ProjectError) as raised:
        write_artifacts(manifest, root / "target")
    assert raised.value.diagnostic.code == "target-unwritable"


@pytest.mark.parametrize("command", HARMLESS, ids=" ".join)
@pytest.mark.parametrize("name", [".engine", ".engine/lake", ".engine/state"])
def test_a_link_in_place_of_state_or_lake_is_followed_and_made_by_no_command(root, precious, name, command, capsys):
    link(root, name, precious)
    with untouched(precious):
        assert run(root, *command) == (0 if command[0] == "lineage" else 1), "lineage draws what there is"
    shown = capsys.readouterr()
    assert "path-outside" in shown.out + shown.err


@pytest.mark.parametrize("command", HARMLESS, ids=" ".join)
def test_commands_that_run_nothing_make_neither_state_nor_lake(root, command):
    assert run(root, *command) == 0
    assert not (root / ".engine").exists()


def test_of_a_log_that_is_too_large_the_newest_lines_stay_and_its_writer_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.target_folder._LOG_LIMIT", 1000)
    monkeypatch.setattr("engine.target_folder._LOG_TAIL", 300)
    folder = tmp_path / "target" / "logs"
    with open_log(folder) as java:
        java.write(b"".join(b"line %d\n" % number for number in range(60)))
        java.flush()
        open_log(folder).close()
        assert (folder / "spark.log").read_text().startswith("line 0\n"), "small enough"
        java.write(b"".join(b"line %d\n" % number for number in range(60, 200)))
        java.flush()
        open_log(folder).close()
        java.write(b"the end\n")
    lines = (folder / "spark.log").read_text().splitlines()
    assert lines == [*(f"line {number}" for number in range(200 - len(lines) + 1, 200)), "the end"]
    assert 30 < len(lines) < 40
