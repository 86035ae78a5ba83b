"""How commands end: without a reader, without room, in a folder that is read-only, in other encodings, on Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.spark.jars import status
from tests.cli.processes import arguments, descendants, engine, obey_modes, start, wait
from tests.cli.test_commands import PROJECT, run, small, write
from tests.lab import REPOSITORY, Lab
from tests.runtime.test_crash import jvms_of

pytestmark = pytest.mark.slow

__all__ = ["small"]

PRINTING = [
    ["ls"],
    ["ls", "--log-format", "json"],
    ["compile"],
    ["docs", "generate"],
    ["lineage", "b.n"],
    ["ls", "--help"],
]


@pytest.mark.nightly_except("ls", "compile")
@pytest.mark.parametrize("command", PRINTING, ids=" ".join)
def test_without_a_reader_a_command_ends_as_ever(small: Path, command: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = engine(small, *command, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_failure_is_a_failure_without_a_reader_too(small: Path) -> None:
    write(small, "models/a.sql", "selec 1")
    reader, writer = os.pipe()
    os.close(reader)
    ended = engine(small, "compile", stdout=writer)
    os.close(writer)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("command", [["ls"], ["compile"], ["ls", "--help"]], ids=" ".join)
def test_output_that_cannot_be_written_is_an_error(small: Path, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = engine(small, *command, stdout=full)
    assert ended.returncode == 1
    assert ended.stderr == "error: the output cannot be written: No space left on device [output-unwritable]\n"


def test_without_standard_streams_files_are_written_all_the_same(small: Path) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *arguments(small, "compile")]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 0
    json.loads((small / "target/manifest.json").read_text())


@pytest.mark.nightly_except("{'PYTHONIOENCODING': 'ascii'}")
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_what_an_encoding_does_not_have_is_written_out(small: Path, env: dict[str, str]) -> None:
    root = small / "größe 日本"
    write(root, "project.yml", PROJECT)
    model = "/*---\ntags: [日本]\n---*/\nselect 1 as `größe`, '日本 ✈' as place"
    write(root, "models/u.sql", model)
    for command in (
        ["compile"],
        ["ls", "--output", "json"],
        ["lineage", "u.place"],
        ["docs", "generate"],
        ["lineage", "--output", "dot"],
    ):
        ended = engine(root, *command, env=env)
        assert (ended.returncode, ended.stderr) == (0, ""), command
    ended = engine(root, "lineage", "u.place", env=env)
    assert r"\u65e5\u672c \u2708" in ended.stdout
    assert engine(root, "ls", "-s", "日本", env=env).returncode == 2
    write(root, "models/u.sql", model.replace("place", "größe, ✈"))
    ended = engine(root, "compile", env=env)
    assert ended.returncode == 1
    assert "internal" not in ended.stderr


@pytest.fixture
def read_only(small: Path) -> Path:
    # Below folders of its own the engine would put the modes right.
    for folder, _, files in os.walk(small, topdown=False):
        for name in files:
            Path(folder, name).chmod(0o444)
        Path(folder).chmod(0o555)
    return small


@pytest.mark.nightly_except(
    "command0-0", "command3-1", "command5-1", "command6-0", "command7-1", "command8-1", "command13-2"
)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["parse"], 0), (["ls"], 0), (["lineage", "b.n"], 0), (["debug"], 1),
        (["compile"], 1), (["docs", "generate"], 1), (["clean"], 0), (["build"], 1), (["test"], 1), (["maintain"], 1),
        (["source", "freshness"], 1), (["show", "b"], 1), (["show", "b", "--table"], 1), (["docs", "serve"], 2),
    ],
)  # fmt: skip
def test_a_project_that_is_read_only(read_only: Path, command: list[str], code: int | None) -> None:
    ended = engine(read_only, *command, preexec_fn=obey_modes)
    said = ended.stdout + ended.stderr
    assert code is None or ended.returncode == code, said
    assert "internal" not in said
    assert "Traceback" not in said
    if code == 1 and command[0] in {"compile", "build"}:
        assert "Permission denied [target-unwritable]" in ended.stderr


def test_folders_that_cannot_be_read_are_errors(small: Path) -> None:
    run(small, "compile")
    for name in ("models/marts", "target"):
        (small / name).chmod(0)
    for command in (["ls"], ["compile"], ["docs", "serve"], ["ls", "-s", "result:success"]):
        ended = engine(small, *command, preexec_fn=obey_modes)
        assert ended.returncode == 1, command
        assert "Permission denied" in ended.stderr
        assert "internal" not in ended.stderr
    for name in ("models/marts", "target"):
        (small / name).chmod(0o755)


COMMANDS = (
    "parse", "compile", "ls", "build", "run", "test", "show x", "show x --table", "show --inline select", "debug",
    "maintain", "publish x", "source inspect x", "source freshness", "docs generate", "docs serve",
    "lineage", "lineage a.b", "clean", "plan", "retry", "compile --inline select",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_outside_a_project_every_command_says_so_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(tmp_path, *command.split()) == 1
    said = capsys.readouterr()
    assert "there is no project.yml in" in said.out + said.err
    assert "--project-dir" in said.out + said.err
    assert list(tmp_path.iterdir()) == []


def test_below_a_project_the_project_is_named(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small / "models", "ls") == 1
    assert f"--project-dir {small}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["parse", "compile", "ls", "build", "test", "docs generate", "lineage"])
def test_a_project_without_models_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    write(tmp_path, "project.yml", PROJECT)
    assert run(tmp_path, *command.split()) == 0
    said = capsys.readouterr().err
    assert "warning: the project has no models [no-models]" in said
    assert "models/NAME.sql" in said


def test_jars_that_are_missing_are_downloaded_by_a_build(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ENGINE_JARS", str(tmp_path / "jars"))
    assert run(small, "debug") == 0
    said = capsys.readouterr().out
    assert "will be downloaded by the first build" in said
    assert "ERROR" not in said
    assert "Run 'engine jars fetch'" in said


def test_a_damaged_jar_is_not_ok(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "jars").mkdir()
    _, path, _ = status(("core",))[0]
    (tmp_path / "jars" / path.name).write_bytes(b"no jar")
    monkeypatch.setenv("ENGINE_JARS", str(tmp_path / "jars"))
    assert run(small, "debug") == 1
    said = capsys.readouterr().out
    assert "ERROR jars" in said
    assert "and run 'engine jars fetch'" in said


def test_only_jars_that_the_project_needs_must_be_there(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "jars").mkdir()
    for _, path, _ in status(("core",)):
        (tmp_path / "jars" / path.name).symlink_to(path)
    monkeypatch.setenv("ENGINE_JARS", str(tmp_path / "jars"))
    assert run(small, "debug") == 0
    said = capsys.readouterr().out
    assert "ERROR" not in said
    assert "org.postgresql:postgresql:" not in said
    assert "more, of other sources and catalogs, are not downloaded and not needed here" in said


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_models_compile(small: Path, sent: signal.Signals) -> None:
    for number in range(800):
        write(small, f"models/many/m{number}.sql", f"select id + {number} as id from {{{{ ref('a') }}}}")
    process = start(small, "build", "-s", "b")
    wait(lambda: len(descendants(process.pid)) > 2, process)
    began = descendants(process.pid)
    os.killpg(process.pid, sent)
    out, err = process.communicate(timeout=60)
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sent]
    assert err == f"{word}; the next build continues where this one stopped\n"
    assert process.returncode == 128 + sent
    assert not out
    # What the compiling process started notices its end by itself.
    wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in began))
    assert not (small / "target/manifest.json").exists()
    assert run(small, "ls", "-s", "b") == 0


def test_an_interruption_while_a_command_prints(small: Path) -> None:
    script = (
        "import os, signal, sys\nfrom engine.cli import main\nfrom engine.cli.commands import ls_command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "ls_command.write_lines = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.exit(main.invoke(['ls', '--project-dir', {str(small)!r}]))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.nightly
@pytest.mark.spark
def test_an_interruption_while_spark_starts_leaves_nothing_behind(lab: Lab) -> None:
    lab.model("one", "select count(*) as id from range(1000000000) a, range(1000000000) b")
    for command, seconds in (("build", 0.0), ("test", 0.6), ("build", 1.5), ("build", 2.5), ("build", 4.0)):
        if command == "test":
            lab.write("tests/units.yml", "unit_tests: [{name: u, model: one, given: [], expect: {rows: [{id: 1}]}}]")
        process = start(lab.root, command)
        wait(lambda: jvms_of(lab.root), process)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        after = "; the next build continues where this one stopped" if command == "build" else ""
        assert err == f"interrupted{after}\n", (command, seconds, out)
        assert process.returncode == 130
        assert not jvms_of(lab.root)
        assert not list(lab.root.rglob("*.tmp"))
    lab.model("one", "select 1 as id")
    lab.build()
    assert lab.rows("one") == [{"id": 1}]


@pytest.mark.parametrize("module", ["engine.cli.main", "click", "engine.cli.run_commands"])
def test_an_interruption_while_modules_are_loaded_is_one_line(small: Path, module: str) -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    came = False\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r} and not self.came:\n"
        "            self.came = True\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from engine.cli.entry import main\n"
        "sys.argv = ['engine', 'ls']\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=small, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")
